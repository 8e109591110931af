"""Compares results of two devices within the tolerance that devices may differ by."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.base.record import record
from dala.errors import ArgumentError

_RELATIVE = {"float32": 1e-5, "float64": 1e-12, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The tolerance relative to the larger of the two values."""
_FLOOR = 0.1
"""The part of that tolerance that applies relative to the largest value of all, near zero."""
_ULPS = 4
_LEVEL_STEPS = 1


@record
class Difference:
    """The first element out of tolerance, and how many there are."""

    index: tuple[int, ...]
    got: Any
    want: Any
    count: int
    largest: float


def difference(got: np.ndarray, want: np.ndarray) -> Difference | None:
    """Returns where two results of one computation are out of tolerance, or None.

    Integers must be equal, u8 and u16 within 1, f32 within 1e-5, f64 within 1e-12, f16 and bf16
    within a unit in the last place of the value, or a tenth of that of the largest value. NaN
    equals NaN, and infinities equal those of their own sign.
    """
    if got.shape != want.shape or got.dtype != want.dtype:
        raise ArgumentError(
            f"{got.dtype} {got.shape} cannot be compared with {want.dtype} {want.shape}: give "
            f"arrays of one dtype and one shape."
        )
    wrong, apart = compared(got, want)
    if not wrong.any():
        return None
    where = np.unravel_index(int(np.argmax(wrong)), want.shape)
    index = tuple(int(i) for i in where)
    largest = float(np.max(apart[wrong]))
    return Difference(index, got[index].item(), want[index].item(), int(wrong.sum()), largest)


def compared(got: np.ndarray, want: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns which elements are out of tolerance, and each element's distance."""
    if want.dtype.name in _RELATIVE:
        return _floats(got, want, _RELATIVE[want.dtype.name])
    return _integers(got, want)


def _integers(got: np.ndarray, want: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # Unsigned, so that the difference of 64-bit integers cannot overflow.
    apart = np.where(got > want, got, want).astype(np.uint64)
    apart -= np.where(got > want, want, got).astype(np.uint64)
    return apart > (_LEVEL_STEPS if want.dtype in (np.uint8, np.uint16) else 0), apart


def _floats(got: np.ndarray, want: np.ndarray, relative: float) -> tuple[np.ndarray, np.ndarray]:
    ulps_of = want.dtype if want.dtype.kind == "f" else np.dtype(np.float32)  # bf16 has none
    with np.errstate(invalid="ignore"):
        got, want = (
            item if item.dtype == ulps_of else item.astype(ulps_of) for item in (got, want)
        )
    many = _ULPS if ulps_of != np.float16 else 1
    finite = np.isfinite(got) & np.isfinite(want)
    a = np.where(finite, got, 0).astype(np.float64)
    b = np.where(finite, want, 0).astype(np.float64)
    size = np.maximum(np.abs(a), np.abs(b))
    floor = _FLOOR * relative * float(np.max(np.abs(b), initial=0.0))
    ulps = many * np.spacing(size.astype(want.dtype)).astype(np.float64)
    with np.errstate(over="ignore"):  # opposite ends of f64
        apart = np.abs(a - b)
    wrong = apart > np.maximum(np.maximum(relative * size, ulps), floor)
    same = (np.isnan(got) & np.isnan(want)) | (got == want)
    unlike = ~finite & ~same
    return np.where(finite, wrong, unlike), np.where(unlike, np.inf, apart)
