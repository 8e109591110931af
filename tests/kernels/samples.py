"""Arrays to compute with."""

from __future__ import annotations

import numpy as np

FLOATS = ["f32", "f64"]
INTEGERS = ["s32", "s64", "u32", "u8", "s8", "s16", "u16", "u64"]
DTYPES = [*FLOATS, *INTEGERS]
NUMPY = {
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
    "s32": np.dtype("i4"),
    "s64": np.dtype("i8"),
    "u32": np.dtype("u4"),
    "u8": np.dtype("u1"),
    "s8": np.dtype("i1"),
    "s16": np.dtype("i2"),
    "u16": np.dtype("u2"),
    "u64": np.dtype("u8"),
}
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 3e38, -3e38, 1e-45, 0.5, -2.5]


def sample(shape: tuple[int, ...], dtype: str, seed: int = 1) -> np.ndarray:
    """Random numbers: floats of either sign, integers over the whole range of their type."""
    random = np.random.default_rng(seed)
    numpy = NUMPY[dtype]
    if dtype in FLOATS:
        return random.normal(0, 10, shape).astype(numpy)
    limits = np.iinfo(numpy)
    return random.integers(limits.min, limits.max, shape, numpy, endpoint=True)


def small(shape: tuple[int, ...], dtype: str, seed: int = 1) -> np.ndarray:
    """Random numbers of which many are equal: 0 to 9."""
    return np.random.default_rng(seed).integers(0, 10, shape).astype(NUMPY[dtype])


def stored(values: np.ndarray, dtype: str) -> np.ndarray:
    """Exact values as a buffer of that dtype stores them: rounded, bounded, NaN as 0."""
    if dtype in FLOATS:
        with np.errstate(over="ignore"):
            return values.astype(NUMPY[dtype])
    limits = np.iinfo(NUMPY[dtype])
    whole = np.nan_to_num(np.rint(values), nan=0.0, posinf=np.inf, neginf=-np.inf)
    bounded = np.clip(whole, float(limits.min), float(limits.max))
    with np.errstate(invalid="ignore"):
        result = np.array(bounded.astype(NUMPY[dtype]))
    result[whole >= float(limits.max)] = limits.max
    return result


def tolerance(dtype: str) -> float:
    return 1e-12 if dtype == "f64" else 2e-6
