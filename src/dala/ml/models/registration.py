"""Has kernels that are models found by their names, and loaded then."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dala.ml.catalog.entries import MODELS
from dala.runtime.kernels.kernel import PROVIDERS

if TYPE_CHECKING:
    from dala.ml.models.model import Model
    from dala.runtime.kernels.kernel import Kernel


def _load(name: str) -> Model:
    from dala.ml.models.loading import load_model

    return load_model(name)


def _detect() -> Kernel:
    from dala.ml.models.annotation import DETECT

    return DETECT


PROVIDERS.update({name: partial(_load, name) for name in MODELS}, detect=_detect)
