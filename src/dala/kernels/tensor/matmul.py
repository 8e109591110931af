"""Products of matrices, and transposition."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from dala.errors import ArgumentError, ShapeError
from dala.ir.types import F32, F64
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper, host_call, written
from dala.kernels.base.parameters import other
from dala.kernels.base.results import common_dtype
from dala.kernels.base.shapes import Shape, axes_of, require_shape
from dala.kernels.tensor.elementwise import cast
from dala.kernels.tensor.reductions import MOST_COUNTED, accumulator
from dala.lang.language_names import SCALARS
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

MOST_AXES = 8
NARROW = 16
"""A last axis shorter than this is walked together with the one before it."""


# -- products --------------------------------------------------------------------------------------


@composite("a", "b")
def matmul(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The matrix product of a and b; with three axes, one product for each place of the first

    On the CPU, floats of one dtype are multiplied by NumPy's BLAS. Integers wrap in the output's
    dtype. A batch of one, or a matrix without that axis, is multiplied with every matrix of the
    other's batch.
    """
    a, b = inputs
    batch = _batch(a.shape, b.shape)
    wanted = (*batch, a.shape[-2], b.shape[-1])
    require_shape("matmul(a, b)", output, f"a is {a.shape}, b is {b.shape}", wanted)
    if 0 in output.shape:
        return
    alike = a.scalar == b.scalar == output.scalar
    if alike and output.scalar in (F32, F64) and output.is_host:
        yield Stage(multiply, inputs, output)
        return
    to = SCALARS[accumulator(output.scalar, a.scalar, b.scalar).name]
    if batch:
        a, b = (reshaped(item, (1, *item.shape)[-3:]) for item in inputs)
    yield Stage(_product_kernel(to, bool(batch)), [a, b], output)


@host_call("a", "b")
def multiply(a: np.ndarray, b: np.ndarray, *, out: np.ndarray) -> None:
    """NumPy's product, which BLAS computes."""
    with np.errstate(all="ignore"):
        np.matmul(a, b, out=out)


matmul.typed(common_dtype)


@matmul.sized
def _product_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    a, b = shapes
    return (*_batch(a, b), a[-2], b[-1])


def _batch(a: Shape, b: Shape) -> Shape:
    """The batch of the product, () for a single matrix; a ShapeError where none is defined."""
    given = f"a is {a}, b is {b}"
    for name, shape in (("a", a), ("b", b)):
        if len(shape) not in (2, 3):
            raise ShapeError(
                f"matmul(a, b): {name} has {len(shape)} axes, but a matrix has 2, or 3 with a "
                f"batch before them ({given})."
            )
    if a[-1] != b[-2]:
        raise ShapeError(f"matmul(a, b): a has {a[-1]} columns but b has {b[-2]} rows ({given}).")
    batches = [shape[0] for shape in (a, b) if len(shape) == 3]
    larger = [count for count in batches if count != 1]
    if len(set(larger)) > 1:
        raise ShapeError(
            f"matmul(a, b): a has a batch of {batches[0]} but b one of {batches[1]} ({given}): "
            f"give as many, or one."
        )
    return (larger[0] if larger else 1,) if batches else ()


@cache
def _product_kernel(to: Any, batch: bool) -> Kernel:
    def multiply_batches(a: Any, b: Any) -> Any:
        n, i, j = dala.position(3)
        return sum(to(a[n, i, k]) * to(b[n, k, j]) for k in range(a.shape[2]))

    def multiply_matrices(a: Any, b: Any) -> Any:
        i, j = dala.position(2)
        return sum(to(a[i, k]) * to(b[k, j]) for k in range(a.shape[1]))

    return helper(multiply_batches if batch else multiply_matrices)


# -- transposition ---------------------------------------------------------------------------------


@composite(
    "x",
    axes=other("axes", "the input's axis for each of the output; reversed unless given", None),
)
def transpose(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """x with its axes in another order, reversed unless it is given

    `axes` says for each axis of the output which one of the input it is, as in NumPy.
    """
    x = inputs[0]
    order = _order(x.shape, params["axes"])
    require_shape("transpose", output, f"{x.shape} with axes {order}", _ordered(x.shape, order))
    if 0 not in x.shape:
        yield from transposed(x, output, order)


@transpose.sized
def _transposed_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    return _ordered(shapes[0], _order(shapes[0], params["axes"]))


def _order(shape: Shape, axes: Any) -> Shape:
    """The axis of the input for each axis of the output."""
    rank = len(shape)
    if axes is None:
        return tuple(range(rank))[::-1]
    given = tuple(axes) if isinstance(axes, tuple | list) else (axes,)
    found = tuple(axes_of("transpose", (item,), rank)[0] for item in given)
    if sorted(found) != list(range(rank)):
        raise ArgumentError(
            f"transpose: axes {axes!r} is no order of the {rank} axes of {shape}: name each "
            f"of 0 to {rank - 1} once."
        )
    return found


def transposed(x: Buffer, output: Buffer, order: Shape) -> Iterator[Stage]:
    """Stages that write x with its axes in another order."""
    shape, order = _merged(x.shape, order)
    x = reshaped(x, shape)
    if len(order) <= 1:
        yield Stage(cast, [reshaped(x, output.shape)], output)
    elif len(order) > MOST_AXES:
        yield from _through_flat_memory(x, output, order)
    else:
        sizes = _ordered(shape, order)
        narrow = sizes[-1] if sizes[-1] < NARROW else 1
        if narrow > 1:
            output = reshaped(output, (*sizes[:-2], sizes[-2] * narrow))
        else:
            output = reshaped(output, sizes)
        yield Stage(_order_kernel(order, narrow), [x], output)


def _ordered(shape: Shape, order: Shape) -> Shape:
    return tuple(shape[axis] for axis in order)


def _merged(shape: Shape, order: Shape) -> tuple[Shape, Shape]:
    """The same transposition of fewer axes: without those of one element, neighbors joined."""
    groups: list[list[int]] = []
    for axis in order:
        if shape[axis] == 1:
            continue
        if groups and math.prod(shape[groups[-1][-1] + 1 : axis]) == 1 and axis > groups[-1][-1]:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    places = sorted(groups)
    sizes = tuple(math.prod(shape[axis] for axis in group) for group in places)
    return sizes, tuple(places.index(group) for group in groups)


@cache
def _order_kernel(order: Shape, narrow: int) -> Kernel:
    """A kernel that reads where each element comes from; `narrow` last elements share a row."""
    names = [f"p{place}" for place in range(len(order))]
    positions = ", ".join(names[:-1] if narrow > 1 else names)
    lines = [f"({positions},) = dala.position({len(order) - (narrow > 1)})"]
    if narrow > 1:
        lines.append(f"{names[-2]}, {names[-1]} = {names[-2]} // {narrow}, {names[-2]} % {narrow}")
    index = ", ".join(names[order.index(axis)] for axis in range(len(order)))
    lines.append(f"return x[{index}]")
    return written("transpose", "def transpose(x):\n    " + "\n    ".join(lines))


def _through_flat_memory(x: Buffer, output: Buffer, order: Shape) -> Iterator[Stage]:
    """Transpose more axes than a kernel can run over: as one, taken apart by division."""
    count = math.prod(x.shape)
    if count >= MOST_COUNTED:
        raise ShapeError(
            f"transpose: {count:,} elements in {len(order)} axes that cannot be joined are too "
            f"many: give fewer than {MOST_COUNTED:,}, or transpose fewer axes at a time."
        )
    yield Stage(_flat_kernel(x.shape, order), [reshaped(x, (count,))], reshaped(output, (count,)))


@cache
def _flat_kernel(shape: Shape, order: Shape) -> Kernel:
    """A kernel that finds in flat memory where each element of the flat output comes from."""
    sizes = _ordered(shape, order)
    terms = [
        f"p // {math.prod(sizes[place + 1 :])} % {sizes[place]} * {math.prod(shape[axis + 1 :])}"
        for place, axis in enumerate(order)
    ]
    lines = ["(p,) = dala.position(1)", f"return x[{' + '.join(terms)}]"]
    return written("transpose", "def transpose(x):\n    " + "\n    ".join(lines))
