"""Writes kernels for the passes of a Fourier transform, by Stockham.

A pass of n = radix · rest numbers transforms those that lie `rest` apart, turns them, and writes
them side by side, each with the `width` numbers that were written side by side before. Between
passes real and imaginary parts lie in planes of their own, so that neighbors are computed together.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from dala.ir.types import Scalar
from dala.kernels.base.builtin import written
from dala.kernels.tensor.fourier_lines import Complex, Lines
from dala.runtime.kernels.kernel import Kernel

Reads = Literal["pairs", "real", "planes"]
Axes = Literal["", "p", "j", "pj"]
"""What positions have beside rows: p counts the rest, j the width, each if it is more than 1."""


@cache
def pass_kernel(radix: int, axes: Axes, reads: Reads, inverse: bool, scalar: Scalar) -> Kernel:
    """A pass over (…, radix, rest, width) numbers; one without a rest is the last: it writes pairs.

    It runs over its first input, which it does not read. Exchanged parts, before all passes and
    after them, make the transform the inverse one.
    """
    lines, last = Lines(), "p" not in axes
    x = [_read(lines, radix, t, axes, reads, scalar) for t in range(radix)]
    y = lines.transform([(b, a) for a, b in x] if inverse and reads != "planes" else x)
    if not last:
        turns = [(f"turns[{k}, 0, p]", f"turns[{k}, 1, p]") for k in range(1, radix)]
        y[1:] = [lines.times(value, *turn) for value, turn in zip(y[1:], turns, strict=True)]
    elif inverse:
        y = [(f"{b} * scale", f"{a} * scale") for a, b in y]
    for k, value in enumerate(y):
        for part in (0, 1):
            lines.texts.append(f"out[{_place(radix, k, part, axes)}] = {value[part]}")
    inputs = "over, x" if last else "over, x, turns"
    scale = ", scale: dala.number" if inverse and last else ""
    head = f"def transform({inputs}, out: dala.Out{scale}):"
    position = f"{', '.join(['i', *axes])}, = dala.position({1 + len(axes)})"
    return written("transform", "\n    ".join([head, position, *lines.texts]))


def _read(lines: Lines, radix: int, t: int, axes: Axes, reads: Reads, scalar: Scalar) -> Complex:
    """Names what a pass reads; all but planes are converted."""
    *outer, last = ["i", str(t), *axes] if axes else [f"{radix} * i + {t}"]
    if reads == "planes":
        re, im = (lines.name(f"x[{', '.join([str(part), *outer, last])}]") for part in (0, 1))
        return re, im
    if reads == "real":
        value = lines.name(f"dala.{scalar.name}(x[{', '.join([*outer, last])}])")
        return value, lines.name(f"dala.{scalar.name}(0)")
    re, im = (
        lines.name(f"dala.{scalar.name}(x[{', '.join([*outer, f'2 * ({last}) + {part}'])}])")
        for part in (0, 1)
    )
    return re, im


def _place(radix: int, k: int, part: int, axes: Axes) -> str:
    """Returns the index that a pass writes to."""
    match axes:
        case "p":
            return f"{part}, i, {radix} * p + {k}"
        case "pj":
            return f"{part}, i, p, {k}, j"
        case "j":
            return f"i, {k}, 2 * j + {part}"
        case _:
            return f"2 * ({radix} * i + {k}) + {part}"
