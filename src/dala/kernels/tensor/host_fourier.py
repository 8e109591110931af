"""The Fourier transform by NumPy, its rows shared by threads.

A long row is a matrix whose columns are transformed, turned and transposed, and transformed again:
shorter rows, which threads can share, and which stay in their caches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from dala.devices.cpu.threads import thread_count
from dala.kernels.base.builtin import host_call
from dala.kernels.base.host_threads import share

SHARED = 1 << 15
"""Elements from which on threads share a transform."""
LONG, LONGEST = 1 << 17, 1 << 22
"""The lengths of rows that are taken apart where there are fewer than threads.

Tables for longer ones would take too much memory.
"""
COLUMNS = 32
"""Columns that are transformed together, at least."""
MOST_TABLES = 4

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
    n, rows = x.shape[-1], math.prod(x.shape[:-1])
    is_long = rows < thread_count() and LONG <= n <= LONGEST
    if is_long and (first := _near_root(n)) >= COLUMNS:
        for place in np.ndindex(x.shape[:-1]):
            _transform_long(x[place], out[place], function, first)
    elif x.size < SHARED or rows == 1:
        function(x, out=out)
    else:
        # The axis with the most rows; the others are walked by NumPy.
        along = int(np.argmax(x.shape[:-1]))
        lines, made = (np.moveaxis(item, along, 0) for item in (x, out))
        least = max(1, SHARED * len(lines) // x.size)
        share(lambda part: function(lines[part], out=made[part]), len(lines), least)


def _near_root(n: int) -> int:
    """The largest divisor of n that is no larger than its square root."""
    return next(size for size in range(math.isqrt(n), 0, -1) if n % size == 0)


def _transform_long(x: np.ndarray, out: np.ndarray, function: Function, rows: int) -> None:
    """Transforms one row as a matrix of so many rows."""
    columns = len(x) // rows
    matrix, between = x.reshape(rows, columns), np.empty((columns, rows), out.dtype)
    turns = _turns(columns, rows, out.dtype, function is np.fft.ifft)
    made = np.empty((columns, rows), out.dtype)

    def begin(part: slice) -> None:
        lines = function(np.ascontiguousarray(matrix[:, part].T, out.dtype))
        np.multiply(lines, turns[part], out=between[part])

    def end(part: slice) -> None:
        made[:, part] = function(np.ascontiguousarray(between[:, part].T)).T

    share(begin, columns, COLUMNS)
    share(end, rows, COLUMNS)
    out[...] = made.reshape(-1)


@lru_cache(MOST_TABLES)
def _turns(columns: int, rows: int, dtype: Any, inverse: bool) -> np.ndarray:
    """The turn between both transforms, for each column and row."""
    angles = np.outer(np.arange(columns), np.arange(rows)) * (2 * np.pi / (columns * rows))
    turns: np.ndarray = np.exp(angles * (1j if inverse else -1j)).astype(dtype)
    return turns
