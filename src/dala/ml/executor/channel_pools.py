"""Pools of planes with channels last: neighboring channels are computed together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper, zero_outside
from dala.kernels.tensor.reductions import reduce_max, reduce_mean
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.pipelines.composite import Stage

LOWEST = -3.4028234663852886e38


def pooled(largest: bool, x: Buffer, out: Buffer, params: Mapping[str, int]) -> Stage:
    """Returns the stage that finds the largest or the mean of windows of x (n, h, w, c)."""
    return Stage(_largest if largest else _mean, [x], out, params)


def pooled_whole(largest: bool, x: Buffer, out: Buffer) -> Stage:
    """Returns the stage that finds the largest or the mean of each plane of x (n, h, w, c)."""
    batch, height, width, channels = x.shape
    seen = reshaped(x, (batch, height * width, channels))
    kernel = reduce_max if largest else reduce_mean
    return Stage(kernel, [seen], reshaped(out, (batch, channels)), {"axis": 1})


@helper
def _largest(
    x: Any,
    height: dala.const,
    width: dala.const,
    down: dala.const,
    across: dala.const,
    apart_down: dala.const,
    apart_across: dala.const,
    top: dala.const,
    left: dala.const,
) -> Any:
    n, y, z, c = dala.position(4)
    largest = dala.f32(LOWEST)
    for a in range(height):
        row = y * down - top + a * apart_down
        for b in range(width):
            column = z * across - left + b * apart_across
            inside = row >= 0 and row < x.shape[1] and column >= 0 and column < x.shape[2]
            largest = max(largest, x[n, row, column, c] if inside else LOWEST)
    return largest


@zero_outside
def _mean(
    x: Any,
    height: dala.const,
    width: dala.const,
    down: dala.const,
    across: dala.const,
    apart_down: dala.const,
    apart_across: dala.const,
    top: dala.const,
    left: dala.const,
    first_row: dala.const,
    first_column: dala.const,
    end_row: dala.const,
    end_column: dala.const,
) -> Any:
    n, y, z, c = dala.position(4)
    total, count = dala.f32(0), dala.f32(0)
    for a in range(height):
        row = y * down - top + a * apart_down
        for b in range(width):
            column = z * across - left + b * apart_across
            total += x[n, row, column, c]
            in_rows = row >= first_row and row < end_row
            in_columns = column >= first_column and column < end_column
            count += 1.0 if in_rows and in_columns else 0.0
    return total / count
