"""Kernels over a frame and those before it, for filters that keep what they have seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from dala.ir.types import F32
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper, written
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

MOST_SHARE = 0.9
"""The share that the past has of a pixel at rest, at full strength."""
AT_ONCE = 6
"""Frames that one pass adds up: with a total and an output, all that every WebGPU device binds."""


@helper
def settle(image: dala.Image, settled: dala.Image, share: dala.f32, inverse: dala.f32) -> Any:
    """x + w · (y - x), with w = share · (1 - (d / threshold)²)² where d < threshold, else 0

    y is the pixel that was settled on before, d the largest difference of a channel (alpha, too)
    between x and y, and `inverse` is 1 / threshold. A y that is not finite has no part in it.
    """
    x, y = image.pixel, settled.pixel
    red, green, blue, alpha = abs(x.r - y.r), abs(x.g - y.g), abs(x.b - y.b), abs(x.a - y.a)
    away = max(red, green, blue, alpha) * inverse
    alike = 1.0 - away * away
    mixed = x + (share * alike * alike) * (y - x)
    # NaN is not below 1: what it was mixed into would never be a number again.
    return mixed if away < 1.0 else x


@helper
def store(image: dala.Image) -> Any:
    """The pixels, as the output has them"""
    return image.pixel


@helper
def mix_frames(x: Any, previous: Any, amount: dala.f32) -> Any:
    """x + amount · (previous - x), on numbers as they are stored

    Levels are integers, so halves of them are exact, and ties go to even on every device.
    """
    here = dala.f32(x)
    return here + amount * (dala.f32(previous) - here)


def mean_stages(frames: Sequence[Buffer], output: Buffer) -> Iterator[Stage]:
    """Stages that compute the mean of frames, all of the output's shape and dtype.

    Of u8 and u16 it is exact and ties go up; floats are added from the first to the last.
    """
    # With a quarter of a level more, a tie lies above the half by far more than f32 errs, and
    # nothing else crosses it: sums of n levels over n are 1 / (2 · n) away from a half, or on it.
    bias = 0.25 if output.scalar.is_integer else 0.0
    total: list[Buffer] = []
    for first in range(0, len(frames), AT_ONCE):
        part = frames[first : first + AT_ONCE]
        last = first + AT_ONCE >= len(frames)
        into = output if last else scratch(output.shape, F32)
        given = {"bias": bias if last else 0.0, "share": 1 / len(frames) if last else 1.0}
        yield Stage(_sum_kernel(len(part) + len(total)), [*total, *part], into, given)
        total = [into]


@cache
def _sum_kernel(count: int) -> Kernel:
    names = [f"x{number}" for number in range(count)]
    total = " + ".join(f"dala.f32({name})" for name in names)
    return written(
        "mean_frames",
        f"def mean_frames({', '.join(names)}, bias: dala.f32, share: dala.f32):\n"
        f"    return ({total} + bias) * share",
    )
