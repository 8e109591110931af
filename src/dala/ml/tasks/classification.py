"""The likeliest classes of an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dala.kernels.tensor.normalization import softmax
from dala.kernels.tensor.ranking import top_k
from dala.ml.catalog.reading import Reading
from dala.ml.results.placement import Placement
from dala.ml.results.results import Classification, Results
from dala.ml.tasks.options import chosen
from dala.ml.tasks.outputs import Outputs, computed, require_output
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped

SUM_TOLERANCE = 1e-3
"""How far from 1 probabilities may add up to, rounded as they are."""


def decode(
    outputs: Outputs, placement: Placement, entry: Reading, options: Mapping[str, Any]
) -> Results[Classification]:
    """Returns the likeliest classes with their probabilities, from logits or from these.

    What has no label is called by its number.
    """
    count = chosen(entry, options, "top_k")["top_k"]
    axis = len(entry.names) or None
    logits = require_output(outputs, entry, "logits", (1, axis), (1, axis, 1, 1))
    return ranked(logits, count, entry.names_of(logits.shape[1]))


def _are_shares(row: np.ndarray) -> bool:
    """Whether they are probabilities already: some models end with a softmax of their own.

    Logits have negative ones among them, or add up to something else than 1.
    """
    total = float(row.sum(dtype=np.float64))
    return bool(row.size > 1 and row.min() >= 0 and abs(total - 1) <= SUM_TOLERANCE)


def ranked(logits: Buffer, count: int, names: Sequence[str]) -> Results[Classification]:
    """The `count` likeliest of as many classes as there are logits, or all if there are fewer."""
    row = reshaped(logits, (1, len(names)))
    count = min(count, len(names))
    shares = row if _are_shares(np.asarray(row)) else computed(softmax, [row], row.shape)
    order = computed(top_k, [shares], (1, count), "s32", {"indices": True})
    scores = np.asarray(shares)[0]
    found = np.asarray(order)[0].tolist()
    return Results(Classification(index, names[index], float(scores[index])) for index in found)
