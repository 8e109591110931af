"""Convolutions along any number of axes, with weights that are constants or computed.

What lies under each window becomes a column, and the convolution a product of matrices.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache

from dala.ir.nodes import Border
from dala.kernels.base import language
from dala.kernels.tensor.windows import Windows
from dala.lang.lower import Definition
from dala.lang.source import from_text
from dala.ml.executor.epilogue import Epilogue, pointwise_stage
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.steps import Steps
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

MOST_OPERANDS = 4
"""Operands of an epilogue beside the sums and the bias."""


def unfolded_conv(context: NodeContext, windows: Sequence[Windows], groups: int) -> Iterator[Stage]:
    """Leave a convolution to be computed with what follows it, as a product of columns."""
    x, weight = context.input(), context.input(1)
    bias = context.input(2) if context.node.has(2) else None
    shape = (x.shape[0], weight.shape[0], *(item.count for item in windows))

    def finish(epilogue: Epilogue, operands: Sequence[Buffer], out: Buffer) -> Iterator[Stage]:
        steps = Steps()
        sums = convolved(steps, x, weight, windows, groups)
        return iter([*steps, ended(reshaped(sums, shape), bias, epilogue, operands, out)])

    return context.defer(shape, finish, lambda given: len(given) <= MOST_OPERANDS)


def convolved(
    steps: Steps, x: Buffer, weight: Buffer, windows: Sequence[Windows], groups: int
) -> Buffer:
    """The sums of a convolution, (batch, made, …), in the type of x; what lies outside is 0."""
    inside = groups > 1 and x.shape[0] > 1
    kernel = _unfolding_kernel(tuple(windows), inside)
    return weighed(steps, kernel, [x], weight, windows, groups)


def weighed(
    steps: Steps,
    kernel: Kernel,
    inputs: Sequence[Buffer],
    weight: Buffer,
    windows: Sequence[Windows],
    groups: int,
) -> Buffer:
    """The sums of weights and of what a kernel finds under each tap of each window.

    It runs over (batch, channels, taps, …). If there are several groups and a batch, it runs over
    (channels, taps, batch, …), so that the weights of a group serve all of the batch.
    """
    x = inputs[0]
    batch, channels = x.shape[:2]
    taps = math.prod(item.size for item in windows)
    places = tuple(item.count for item in windows)
    inside = groups > 1 and batch > 1
    sizes = (channels, taps, batch, *places) if inside else (batch, channels, taps, *places)
    columns = steps.run(kernel, inputs, sizes, scalar=x.scalar)
    made, depth, count = weight.shape[0], channels // groups * taps, math.prod(places)
    by = reshaped(weight, (groups, made // groups, depth))
    seen = reshaped(columns, (groups, depth, batch * count))
    if not inside:
        seen = reshaped(columns, (batch * groups, depth, count))
    sums = steps.multiply(by, seen)
    if inside:
        sums = steps.transpose(reshaped(sums, (made, batch, count)), (1, 0, 2))
    return reshaped(sums, (batch, made, *places))


def ended(
    sums: Buffer,
    bias: Buffer | None,
    epilogue: Epilogue,
    operands: Sequence[Buffer],
    out: Buffer,
) -> Stage:
    """Returns the stage that adds a bias for each channel to sums, and applies the epilogue."""
    own = [sums]
    if bias is not None:
        own.append(reshaped(bias, (bias.shape[0], *(1,) * (len(sums.shape) - 2))))
    moved = [
        re.sub(r"\bx(\d+)\b", lambda it: f"x{int(it[1]) + len(own)}", line)
        for line in epilogue.lines
    ]
    first = "v0 = x0" if bias is None else "v0 = x0 + x1"
    return pointwise_stage(Epilogue((first, *moved), epilogue.result), [*own, *operands], out)


def kernel_of(name: str, text: str, border: Border) -> Kernel:
    """A kernel whose text was generated, with a border rule of its own."""
    source = from_text(text, {"dala": language}, f"<{name}>")
    return Kernel(name, "", lambda: Definition(source, border))


@cache
def _unfolding_kernel(windows: tuple[Windows, ...], inside: bool) -> Kernel:
    places = [f"p{axis}" for axis in range(len(windows))]
    names = ["c", "t", "n", *places] if inside else ["n", "c", "t", *places]
    taps = _tap_numbers([item.size for item in windows])
    at = [
        f"{place} * {item.step} + {tap} * {item.apart} - {item.before}"
        for place, tap, item in zip(places, taps, windows, strict=True)
    ]
    lines = [
        f"({', '.join(names)},) = dala.position({len(names)})",
        f"return x[n, c, {', '.join(at)}]",
    ]
    return kernel_of("unfold", "def unfold(x):\n    " + "\n    ".join(lines), "zero")


def _tap_numbers(sizes: Sequence[int]) -> list[str]:
    """Where a tap, counted through all axes, lies along each of them."""
    found = []
    for axis, size in enumerate(sizes):
        rest = math.prod(sizes[axis + 1 :])
        found.append(f"(t // {rest} % {size})" if size > 1 else "0")
    return found
