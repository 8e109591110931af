"""Filters held against what others make of the same images; the differences go into the docs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Agree = Callable[..., None]


@pytest.fixture
def agree(device: str, record_property: Callable[[str, Any], None]) -> Agree:
    """Compare what a filter gave with what a reference gave, in levels of 255."""

    def compare(
        name: str, reference: str, got: np.ndarray, want: np.ndarray, *, within: float = 1.0
    ) -> None:
        assert got.shape == want.shape
        levels = 1 if got.dtype == np.uint8 else 255
        wanted = want.astype(np.float64) * (1 if want.dtype == np.uint8 else levels)
        apart = np.abs(got.astype(np.float64) * levels - wanted)
        most = float(apart.max(initial=0))
        record_property("agreement", (name, reference, device, most))
        assert most <= within, f"{name} is {most:.3f} levels off {reference}"

    return compare
