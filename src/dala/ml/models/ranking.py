"""The likeliest classes of what a classifier gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.devices import current_device, using
from dala.errors import ArgumentError, ShapeError
from dala.ml.models.model import Model, require_model
from dala.ml.results.results import Classification
from dala.ml.tasks.classification import ranked
from dala.runtime.buffers.buffer import Buffer, from_numpy
from dala.runtime.buffers.views import reshaped


def top_k(output: Any, k: int = 5, model: Model | None = None) -> list[Classification]:
    """The k likeliest classes, the best first, with probabilities: the softmax of the output.

    `output` is a row of logits, as `predict` gives it, in an array or a Buffer. Labels are those of
    the model; without one, and for a model that was loaded without `like`, they are the indices.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ArgumentError(f"top_k: k is an integer from 1 on, not {k!r}.")
    if not isinstance(output, np.ndarray | Buffer):
        raise ArgumentError(
            f"top_k: the output is an array or a Buffer, not {type(output).__name__}."
        )
    count = int(np.prod(output.shape))
    if not count or count != max(output.shape, default=0):
        raise ShapeError(
            f"top_k: the output is {tuple(output.shape)}, but it has to be one row of logits, such "
            f"as (1, 1000): of a batch, give each row by itself."
        )
    device = output.memory.device if isinstance(output, Buffer) else current_device()
    with using(device):
        logits = output if isinstance(output, Buffer) else from_numpy(output)
        return list(ranked(reshaped(logits, (1, count)), k, _names(model, count)))


def _names(model: Model | None, count: int) -> list[str]:
    entry = None if model is None else require_model("top_k", model).entry
    if entry is None:
        return [str(index) for index in range(count)]
    names = entry.names or tuple(map(str, range(count)))
    if len(names) != count:
        raise ShapeError(
            f"top_k: the output has {count:,} classes, but {entry.name} has {len(names):,}."
        )
    return list(names)
