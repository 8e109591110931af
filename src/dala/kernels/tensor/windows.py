"""Where the windows of convolutions and pools lie, and planes with a rim of zeros around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dala.base.record import changed
from dala.errors import ArgumentError, ShapeError
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import zero_outside
from dala.kernels.base.parameters import other
from dala.kernels.base.shapes import pair_of
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.pipelines.composite import Stage

STRIDE = other("axes", "how far windows are apart: one number, or (vertical, horizontal)", 1)
PADDING = other("axes", "zeros added at each end: one number, (vertical, horizontal) or 'same'", 0)
STEPS = {
    "stride": STRIDE,
    "padding": PADDING,
    "dilation": other("axes", "how far the taps of a window are apart: one number, or two", 1),
}
"""Parameters of convolutions."""
WINDOW = {
    "size": other("axes", "the size of a window: one number, or (vertical, horizontal)", 2),
    "stride": changed(STRIDE, default=None, doc=f"{STRIDE.doc}; its size unless given"),
    "padding": PADDING,
}
"""Parameters of pools."""


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows along one axis: window i begins at i · step - before, its taps are apart."""

    size: int
    step: int
    apart: int
    before: int
    count: int

    @property
    def far(self) -> int:
        """How far the last tap is from the first, in steps."""
        return (self.size - 1) * self.apart // self.step

    @property
    def reach(self) -> int:
        """How far it is from the first tap of the first window to the last of the last."""
        return (self.count - 1) * self.step + (self.size - 1) * self.apart + 1


def windows_of(
    kernel: str,
    plane: tuple[int, int],
    size: tuple[int, int],
    stride: Any,
    padding: Any,
    dilation: Any = 1,
) -> tuple[Windows, Windows]:
    """The windows down and across a plane; an error that says why there are none."""
    steps = pair_of(kernel, "stride", stride, 1)
    gaps = pair_of(kernel, "dilation", dilation, 1)
    down, across = (
        _along(kernel, plane[axis], size[axis], steps[axis], gaps[axis], sides)
        for axis, sides in enumerate(_paddings(kernel, padding))
    )
    return down, across


def _paddings(kernel: str, padding: Any) -> tuple[int | None, int | None]:
    """How much is added before and after along each axis; None for as much as keeps the size."""
    if padding == "same":
        return None, None
    if isinstance(padding, str):
        raise ArgumentError(
            f"{kernel}: padding {padding!r} is not known: give a number, a pair (vertical, "
            f"horizontal), or 'same'."
        )
    return pair_of(kernel, "padding", padding, 0)


def _along(
    kernel: str, length: int, size: int, step: int, apart: int, padding: int | None
) -> Windows:
    reach = (size - 1) * apart + 1
    if padding is None:
        count = -(-length // step)
        added = max(0, (count - 1) * step + reach - length)
        return Windows(size, step, apart, added // 2, count)
    if length + 2 * padding < reach:
        raise ShapeError(
            f"{kernel}: a window that reaches over {reach} does not fit an input of {length} with "
            f"{padding} added at both ends: pad more, or take a smaller window."
        )
    return Windows(size, step, apart, padding, (length + 2 * padding - reach) // step + 1)


def padded(
    x: Buffer, down: Windows, across: Windows, height: int, width: int, *, in_phases: bool = False
) -> Stage:
    """The stage that makes planes of x that begin where its first window does.

    In phases, elements as far apart as the windows are put together, in planes of their own.
    """
    batch, channels = x.shape[:2]
    steps = (down.step, across.step) if in_phases else (1, 1)
    planes = scratch((batch * channels, steps[0] * steps[1], height, width), x.scalar)
    given = {"down": steps[0], "across": steps[1], "top": down.before, "left": across.before}
    return Stage(_pad, [reshaped(x, (batch * channels, *x.shape[2:]))], planes, given)


@zero_outside
def _pad(x: Any, down: dala.const, across: dala.const, top: dala.const, left: dala.const) -> Any:
    i, phase, y, z = dala.position(4)
    column = z * across - left
    if across > 1:
        column += phase % across
    return x[i, y * down + phase // across - top, column]


def are_single(windows: Sequence[Windows], plane: Sequence[int]) -> bool:
    """Whether each element is made of the one at its own place."""
    return all(item == Windows(1, 1, 1, 0, size) for item, size in zip(windows, plane, strict=True))
