"""Random arrays that rows of compute are measured on."""

from __future__ import annotations

import numpy as np

f32 = np.float32


def uniform(*shape: int, seed: int = 1) -> np.ndarray:
    """Of 0 to 1."""
    return np.random.default_rng(seed).random(shape, f32)


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, f32)
