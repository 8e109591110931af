"""Convolutions of planes whose taps lie where another input says."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

from dala.kernels.base.builtin import written
from dala.kernels.tensor.windows import Windows
from dala.ml.executor.convolutions import windows_of
from dala.ml.executor.epilogue import Epilogue
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.sizes import check_convolution, check_spatial, require
from dala.ml.executor.steps import Steps
from dala.ml.executor.unfolding import ended, weighed
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage


def deformed_conv(context: NodeContext) -> Iterable[Stage]:
    """DeformConv: each tap is moved by an offset of its own, and may be weighed by a mask."""
    node, x, weight, offset = context.node, *(context.input(i) for i in range(3))
    bias = context.input(3) if node.has(3) else None
    mask = context.input(4) if node.has(4) else None
    groups, parts = node.get("group", 1), int(node.get("offset_group", 1))
    check_spatial(node, x.shape)
    check_convolution(node, x.shape, weight.shape, None if bias is None else bias.shape, groups)
    down, across = windows_of(node, weight.shape[2:], x.shape[2:])
    taps, places = down.size * across.size, (down.count, across.count)
    fits = parts > 0 and x.shape[1] % parts == 0
    fits = fits and offset.shape == (x.shape[0], 2 * parts * taps, *places)
    fits = fits and (mask is None or mask.shape == (x.shape[0], parts * taps, *places))
    require(node, fits, f"offsets of {offset.shape} are none for {taps} taps at {places}")
    steps = Steps()
    kernel = _sampling_kernel(
        (down, across), x.shape[1] // parts, mask is not None, groups > 1 < x.shape[0]
    )
    inputs = [x, offset] + ([] if mask is None else [mask])
    sums = weighed(steps, kernel, inputs, weight, (down, across), groups)
    out = context.output((x.shape[0], weight.shape[0], *places), x.scalar)
    steps.append(ended(sums, bias, Epilogue((), "v0"), [], out))
    return steps


@cache
def _sampling_kernel(
    windows: tuple[Windows, Windows], own: int, masked: bool, inside: bool
) -> Kernel:
    """A kernel that reads between four elements; each of `own` channels shares its offsets."""
    down, across = windows
    taps = math.prod(item.size for item in windows)
    names = "c, t, n, i, j" if inside else "n, c, t, i, j"
    moved = f"(c // {own} * {taps} + t)"
    lines = [
        f"{names} = dala.position(5)",
        f"a, b = t // {across.size}, t % {across.size}",
        f"y = dala.f32(i * {down.step} - {down.before} + a * {down.apart})",
        f"z = dala.f32(j * {across.step} - {across.before} + b * {across.apart})",
        f"y, z = y + offset[n, 2 * {moved}, i, j], z + offset[n, 2 * {moved} + 1, i, j]",
        "h, w = dala.f32(x.shape[2]), dala.f32(x.shape[3])",
        "total = 0.0",
        "for k in range(4):",
        "    u, v = dala.floor(y) + dala.f32(k // 2), dala.floor(z) + dala.f32(k % 2)",
        "    share = (1.0 - dala.abs(y - u)) * (1.0 - dala.abs(z - v))",
        "    reached = u >= 0.0 and u < h and v >= 0.0 and v < w",
        "    total += x[n, c, int(u), int(v)] * share if reached else 0.0",
        f"return total * mask[n, {moved}, i, j]" if masked else "return total",
    ]
    given = "x, offset, mask" if masked else "x, offset"
    return written("deform", f"def deform({given}):\n    " + "\n    ".join(lines))
