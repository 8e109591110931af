"""The Fourier transform by NumPy, its rows shared by threads."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dala.kernels.base.builtin import host_call
from dala.kernels.base.host_threads import share

SHARED = 1 << 15
"""Elements from which on threads share a transform."""

Function = Callable[..., Any]


@host_call("x")
def transform(x: np.ndarray, *, out: np.ndarray, axis: int, inverse: bool) -> None:
    """NumPy's transform of pairs, or of real numbers."""
    real = out.dtype if out.dtype.itemsize > 2 else np.dtype(np.float32)
    pairs = np.result_type(real, np.complex64)
    function = np.fft.ifft if inverse else np.fft.fft
    target = out if out.dtype == real else np.empty(out.shape, real)
    with np.errstate(all="ignore"):
        values = x.astype(real, copy=False)
        if x.ndim == out.ndim:
            values = values.view(pairs)[..., 0]
        _transform_rows(
            np.moveaxis(values, axis, -1),
            np.moveaxis(target.view(pairs)[..., 0], axis, -1),
            function,
        )
        if target is not out:
            out[...] = target


def _transform_rows(x: np.ndarray, out: np.ndarray, function: Function) -> None:
    """Transforms along the last axis."""
    rows = math.prod(x.shape[:-1])
    if x.size < SHARED or rows == 1:
        function(x, out=out)
        return
    # The axis with the most rows; the others are walked by NumPy.
    along = int(np.argmax(x.shape[:-1]))
    lines, made = (np.moveaxis(item, along, 0) for item in (x, out))
    least = max(1, SHARED * len(lines) // x.size)
    share(lambda part: function(lines[part], out=made[part]), len(lines), least)
