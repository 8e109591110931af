"""How far a result is from what it should be, and how far it may be."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.base.record import record

RELATIVE = 1e-5
"""Of the value itself, and of the largest value beside it: sums round in another order."""
SUMS = frozenset(
    [
        "Conv",
        "ConvTranspose",
        "MatMul",
        "Gemm",
        "Einsum",
        "Attention",
        "LSTM",
        "GRU",
        "RNN",
        "ReduceSum",
        "ReduceMean",
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSumExp",
        "ReduceSumSquare",
        "GlobalAveragePool",
        "AveragePool",
        "LayerNormalization",
        "InstanceNormalization",
        "GroupNormalization",
        "RMSNormalization",
        "Softmax",
        "LogSoftmax",
        "CumSum",
        "LRN",
        "Resize",
        "BatchNormalization",
        "GridSample",
    ]
)
"""Operators that add up many terms, which may be four times as far apart."""
STEPS = frozenset(
    [
        "Floor",
        "Ceil",
        "Round",
        "Sign",
        "Equal",
        "Greater",
        "GreaterOrEqual",
        "Less",
        "LessOrEqual",
        "ArgMax",
        "ArgMin",
        "TopK",
        "Cast",
        "Mod",
        "Not",
        "And",
        "Or",
        "Xor",
        "Where",
        "QuantizeLinear",
        "DynamicQuantizeLinear",
        "NonZero",
        "NonMaxSuppression",
    ]
)
"""Operators that make a step of the least difference: after others they are not compared."""


@record
class Deviation:
    """The largest distances between a result and its reference, and whether all are allowed."""

    fits: bool
    largest: float
    relative: float
    """Of the largest value of the reference."""
    ulps: float
    """Units in the last place of the largest value of the reference."""
    count: int
    """Elements that are too far away."""
    note: str = ""
    """What is wrong where nothing can be measured, such as another shape."""


def deviation(got: np.ndarray, want: np.ndarray, operators: set[str]) -> Deviation:
    """Returns how far a result of these operators is from what it should be."""
    if got.shape != want.shape:
        return Deviation(False, np.inf, np.inf, np.inf, want.size, f"{got.shape}, not {want.shape}")
    if want.dtype.kind != "f":
        return _of_integers(got, want)
    a, b = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.where(same, 0.0, np.where(finite, np.abs(a - b), np.inf))
    size = np.where(np.isfinite(b), np.abs(b), 0.0)
    most = float(size.max(initial=0.0))
    factor = 4.0 if operators & SUMS else 1.0
    allowed = factor * RELATIVE * (size + most) + np.finfo(np.float32).tiny
    wrong = ~same & ~(apart <= allowed)
    unit = float(np.spacing(np.float32(max(most, float(np.finfo(np.float32).tiny)))))
    largest = float(apart.max(initial=0.0))
    return Deviation(
        not wrong.any(),
        largest,
        largest / most if most else largest,
        largest / unit,
        int(wrong.sum()),
    )


def _of_integers(got: np.ndarray, want: np.ndarray) -> Deviation:
    apart = np.abs(got.astype(np.float64) - want.astype(np.float64))
    largest: Any = float(apart.max(initial=0.0))
    most = float(np.abs(want.astype(np.float64)).max(initial=0.0))
    count = int(np.count_nonzero(apart))
    return Deviation(count == 0, largest, largest / (most or 1.0), largest, count)
