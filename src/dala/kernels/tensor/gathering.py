"""Elements put together, picked out by position, and counted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from dala.errors import ArgumentError, DtypeError, ShapeError
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper, host_call, written
from dala.kernels.base.parameters import integer, number, other
from dala.kernels.base.results import position_dtype, require_size
from dala.kernels.base.shapes import (
    Shape,
    around,
    axis_of,
    integer_of,
    number_within,
    require_shape,
)
from dala.kernels.tensor.reductions import accumulator, averaging, reduced
from dala.lang.language_names import SCALARS
from dala.runtime.buffers.buffer import Buffer, over, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

COUNTED_ROWS, FEWEST_TIMES = 16, 64
"""Rows that are counted by themselves, where they have so many times as many elements as bins."""
SHARED_BYTES = 1 << 23
"""How much threads copy faster than NumPy alone."""
MOST_JOINED = 4
"""Inputs that one kernel joins: a device may give it few buffers at a time."""


@composite("*inputs", axis=integer("the axis along which inputs follow each other", 0))
def concat(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The inputs one after another along an axis"""
    axis = axis_of("concat", params["axis"], len(inputs[0].shape))
    wanted = _joined_shape([item.shape for item in inputs], params)
    for i, item in enumerate(inputs):
        if item.scalar != output.scalar:
            raise DtypeError(
                f"concat: input {i} is {item.dtype}, but the output is {output.dtype}: convert it "
                f"with the kernel 'cast' first."
            )
    require_shape("concat", output, f"{len(inputs)} inputs along axis {axis}", wanted)
    if 0 in output.shape:
        return
    if output.is_host:
        yield Stage(join, inputs, output, {"axis": axis})
    else:
        yield from _joined([item for item in inputs if item.shape[axis]], output, axis)


@concat.sized
def _joined_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    first = shapes[0]
    axis = axis_of("concat", params["axis"], len(first))
    before, after = first[:axis], first[axis + 1 :]
    for i, shape in enumerate(shapes):
        if shape != (*before, *shape[axis : axis + 1], *after):
            raise ShapeError(
                f"concat: input {i} is {shape}, but input 0 is {first}: they are the same but for "
                f"axis {axis}, along which they follow one another."
            )
    return (*before, sum(shape[axis] for shape in shapes), *after)


@host_call("*inputs")
def join(*inputs: np.ndarray, out: np.ndarray, axis: int) -> None:
    """NumPy's concatenation, which copies whole rows; threads copy large inputs."""
    if math.prod(out.shape[:axis]) > 1 or out.nbytes < SHARED_BYTES:
        np.concatenate(inputs, axis, out=out)
        return
    rest = out.reshape(-1).view(np.uint8)
    for part in inputs:
        given = np.ascontiguousarray(part).reshape(-1).view(np.uint8)
        if given.size:
            _same.run([over(given)], over(rest[: given.size]))
        rest = rest[given.size :]


@helper
def _same(x: Any) -> Any:
    return x


def _joined(parts: Sequence[Buffer], output: Buffer, axis: int) -> Iterator[Stage]:
    """Stages of kernels that join what is not empty, a few at a time."""
    outer, _, inner = around(output.shape, axis, axis)
    rows = [reshaped(part, (outer, part.shape[axis] * inner)) for part in parts]
    while len(rows) > MOST_JOINED:
        whole = len(rows) // MOST_JOINED * MOST_JOINED
        groups = [rows[i : i + MOST_JOINED] for i in range(0, whole, MOST_JOINED)]
        rows = rows[whole:]
        for place, group in enumerate(groups):
            width = sum(part.shape[1] for part in group)
            rows.insert(place, scratch((outer, width), output.scalar))
            yield Stage(_joining_kernel(MOST_JOINED), group, rows[place])
    target = reshaped(output, (outer, math.prod(output.shape) // outer))
    yield Stage(_joining_kernel(len(rows)), rows, target)


@cache
def _joining_kernel(count: int) -> Kernel:
    names = [f"x{place}" for place in range(count)]
    lines = ["i, j = dala.position(2)"]
    for name in names[:-1]:
        lines += [f"if j < {name}.shape[1]:", f"    return {name}[i, j]", f"j -= {name}.shape[1]"]
    lines.append(f"return {names[-1]}[i, j]")
    return written("concat", f"def concat({', '.join(names)}):\n    " + "\n    ".join(lines))


@composite("x", "indices", axis=integer("the axis that indices count along", 0))
def gather(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The elements of x that indices name along an axis

    The indices' shape takes the place of that axis. Negative ones count from the end; one that lies
    outside gives the nearest element, as a read outside a buffer does.
    """
    x, indices = inputs
    axis = axis_of("gather", params["axis"], len(x.shape))
    if not indices.scalar.is_integer:
        raise DtypeError(
            f"gather: indices is {indices.dtype}, but positions are integers: give s32 or s64."
        )
    wanted = _gathered_shape([x.shape, indices.shape], params)
    why = f"x {x.shape} along axis {axis} at indices {indices.shape}"
    require_shape("gather", output, why, wanted)
    if 0 in output.shape:
        return
    outer, n, inner = around(x.shape, axis, axis)
    if n == 0:
        raise ShapeError(f"gather: x is {x.shape}: along axis {axis} there is nothing to take.")
    count = math.prod(indices.shape)
    flat = reshaped(indices, (count,))
    kernel = _gathering_kernel(indices.scalar.kind == "s", inner > 1)
    if inner == 1:
        target = reshaped(output, (outer, count))
        yield Stage(kernel, [reshaped(x, (outer, n)), flat], target)
    else:
        target = reshaped(output, (outer, count, inner))
        yield Stage(kernel, [reshaped(x, (outer, n, inner)), flat], target)


@gather.sized
def _gathered_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    x, indices = shapes
    axis = axis_of("gather", params["axis"], len(x))
    return (*x[:axis], *indices, *x[axis + 1 :])


@cache
def _gathering_kernel(signed: bool, rows: bool) -> Kernel:
    def gather_elements(x: Any, indices: Any) -> Any:
        i, j = dala.position(2)
        index = indices[j]
        if signed:
            index = index + x.shape[1] if index < 0 else index
        return x[i, index]

    def gather_rows(x: Any, indices: Any) -> Any:
        i, k, j = dala.position(3)
        index = indices[k]
        if signed:
            index = index + x.shape[1] if index < 0 else index
        return x[i, index, j]

    return helper(gather_rows if rows else gather_elements)


@composite(
    "x",
    low=other("any", "the number at which the first bin begins", 0),
    high=number("the number at which the last bin ends; a bin for each integer unless given", None),
)
def histogram(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """How many elements fall into each bin, as many bins as the output is long

    Without `high`, an integer v is counted in bin v - low. With it, low to high is split evenly,
    and high itself belongs to the last bin. Elements outside, and NaN, are not counted.
    """
    (x,) = inputs
    low, high = params["low"], params["high"]
    if len(output.shape) != 1:
        raise ShapeError(
            f"histogram: the output is {output.shape}, but bins lie along one axis: give (bins,)."
        )
    if high is None:
        if x.scalar.is_float:
            raise ArgumentError(
                f"histogram: x is {x.dtype}: give low and high, the range that the bins divide."
            )
        params = {"low": integer_of("histogram", "low", low)}
        kernel, kernel_of_rows = _count_values, _count_values_of_rows
    else:
        low = number_within("histogram", "low", low)
        if not low < high:
            raise ArgumentError(
                f"histogram: low is {low:g} and high is {high:g}: low is the smaller one."
            )
        params = {"low": low, "high": high, "scale": output.shape[0] / (high - low)}
        to = SCALARS[averaging(x.scalar, x.scalar).name]
        kernel, kernel_of_rows = _count_range(to, False), _count_range(to, True)
    count, bins = math.prod(x.shape), output.shape[0]
    rows = next((rows for rows in range(COUNTED_ROWS, 1, -1) if count % rows == 0), 1)
    if output.is_host and rows > 1 and count // rows >= FEWEST_TIMES * bins:
        # Threads share the rows, each of which is counted by itself.
        counts = scratch((rows, bins), output.scalar)
        yield Stage(kernel_of_rows, [reshaped(x, (rows, count // rows))], counts, params)
        yield from reduced(sum, accumulator(output.scalar), counts, output, (1, rows, bins))
    else:
        yield Stage(kernel, [reshaped(x, (count,))], output, params)


require_size(histogram, "the output has as many elements as there are bins")
histogram.typed(position_dtype)


@helper
def _count_values(x: Any, out: dala.Out, low: dala.number) -> Any:
    if x >= low:
        out.add(x - low, 1)


@helper
def _count_values_of_rows(x: Any, out: dala.Out, low: dala.number) -> Any:
    i, _ = dala.position(2)
    if x >= low:
        out.add((i, x - low), 1)


@cache
def _count_range(to: Any, rows: bool) -> Kernel:
    def count_range(
        x: Any, out: dala.Out, low: dala.number, high: dala.number, scale: dala.number
    ) -> Any:
        value = to(x)
        if value >= low and value <= high:
            place = dala.s32(dala.floor((value - low) * scale))
            if rows:
                i, _ = dala.position(2)
                out.add((i, min(place, out.shape[1] - 1)), 1)
            else:
                out.add(min(place, out.shape[0] - 1), 1)

    return helper(count_range)
