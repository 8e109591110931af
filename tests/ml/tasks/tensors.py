"""Outputs of models as tests make them: arrays on the current device."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.base.record import changed
from dala.gpu import compute
from dala.ml.catalog.entries import MODELS
from dala.ml.results.placement import placed
from dala.ml.tasks import decode


def decoded(
    name: str,
    outputs: dict[str, np.ndarray],
    image: tuple[int, int],
    fit: str | None = None,
    shape: tuple[int, int] | None = None,
    **options: Any,
) -> Any:
    """What a model of the catalogue says of these outputs; its input may be of another shape."""
    entry = MODELS[name] if shape is None else changed(MODELS[name], size=shape[::-1])
    buffers = {key: compute.from_numpy(np.ascontiguousarray(x)) for key, x in outputs.items()}
    return decode(buffers, placed(image, entry.shape, fit or entry.fit), entry, options)
