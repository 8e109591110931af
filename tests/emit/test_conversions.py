"""Floats to narrow integers: rounded to even, held to the limits, whatever is known of them."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.devices import current_device
from dala.ir.types import SCALARS

NARROW = ["u8", "u16", "s8", "s16"]
MARKED = float(np.array(0x7FF8_0246_8ACE_1234, np.uint64).view(np.float64))
"""NaN with bits set, also as f32."""
ODD = [np.nan, MARKED, np.inf, -np.inf, 1e30, -1e30, 3e9, -0.0]


@dala.kernel
def same(x):
    return x


@dala.kernel
def held(x):
    return min(max(x, 0.0), 100.0)


def near(narrow: str) -> list[float]:
    limits = np.iinfo(SCALARS[narrow].numpy)
    centers = [limits.min, limits.max, 0, 1, 2, 100]
    return [n + d for n in centers for d in (-1, -0.5, -0.25, 0, 0.49, 0.5, 0.75, 1)]


def rounded(x: np.ndarray, narrow: str) -> np.ndarray:
    limits = np.iinfo(SCALARS[narrow].numpy)
    whole = np.nan_to_num(np.rint(x), nan=0.0, posinf=1e30, neginf=-1e30)
    return whole.clip(limits.min, limits.max).astype(SCALARS[narrow].numpy)


@pytest.mark.parametrize("wide", ["f32", "f64"])
@pytest.mark.parametrize("narrow", NARROW)
def test_every_float_becomes_the_nearest_integer(device, wide, narrow):
    if wide == "f64" and not current_device().supports(wide):
        pytest.skip(f"{device} lacks {wide}")
    x = np.tile(np.array([*near(narrow), *ODD], SCALARS[wide].numpy), 5)
    np.testing.assert_array_equal(same(x, dtype=narrow), rounded(x, narrow))


@pytest.mark.parametrize("narrow", NARROW)
def test_what_was_held_before_may_still_be_nan(device, narrow):
    x = np.tile(np.array([*near(narrow), *ODD], np.float32), 5)
    with np.errstate(invalid="ignore"):
        want = rounded(np.clip(x, 0, 100), narrow)
    np.testing.assert_array_equal(held(x, dtype=narrow), want)
