"""Operators that read or write elements at places that other elements name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from dala.errors import ModelError
from dala.ir.types import BOOL, S64
from dala.kernels.base import language
from dala.kernels.base.builtin import written
from dala.kernels.tensor.elementwise import cast
from dala.kernels.tensor.gathering import gather
from dala.kernels.tensor.matmul import transposed
from dala.kernels.tensor.ranking import top_k as ranked
from dala.lang.lower import Definition
from dala.lang.source import from_text
from dala.ml.executor.dtypes import on_device
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.sizes import axis_in, require
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

UPDATES = {
    "none": "out[{at}] = v",
    "add": "out.add(({at}), v)",
    "min": "out.min(({at}), v)",
    "max": "out.max(({at}), v)",
}
"""What each kind of reduction writes."""


def check_places(context: NodeContext, index: int, sizes: Sequence[int]) -> None:
    """Refuse places outside, where they are known; the last axis names a size each, if several."""
    if not context.is_constant(index):
        return
    places = np.asarray(context.array(index))
    limits = np.asarray(sizes) if len(sizes) != 1 else np.asarray(sizes[0])
    if places.size and not ((places >= -limits) & (places < limits)).all():
        where = f"{places.min()} to {places.max()}"
        raise ModelError(f"{context.node}: places {where} lie outside of {tuple(sizes)}.")


# -- reading ---------------------------------------------------------------------------------------


def gather_elements(context: NodeContext) -> Iterator[Stage]:
    """GatherElements: what lies at the place that each index names along an axis."""
    x, indices = context.input(0), context.input(1)
    axis = axis_in(context.node, context.node.get("axis", 0), len(x.shape))
    alike = len(x.shape) == len(indices.shape)
    require(context.node, alike, f"indices {indices.shape} have other axes than {x.shape}")
    check_places(context, 1, [x.shape[axis]])
    out = context.output(indices.shape, x.scalar)
    yield Stage(_element_kernel(len(x.shape), axis), [x, indices], out)


@cache
def _element_kernel(rank: int, axis: int) -> Kernel:
    names = [f"p{i}" for i in range(rank)]
    lines = [f"({', '.join(names)},) = dala.position({rank})", f"k = indices[{', '.join(names)}]"]
    names[axis] = "k"
    lines += [f"k = k + x.shape[{axis}] if k < 0 else k", f"return x[{', '.join(names)}]"]
    return written("gather", "def gather(x, indices):\n    " + "\n    ".join(lines))


def gather_places(context: NodeContext) -> Iterator[Stage]:
    """GatherND: what lies at places that are named by a row of positions each."""
    node, x, indices = context.node, context.input(0), context.input(1)
    many = int(node.get("batch_dims", 0))
    rank = indices.shape[-1] if indices.shape else 0
    fits = 1 <= rank <= len(x.shape) - many and x.shape[:many] == indices.shape[:many]
    require(node, fits, f"places of {rank} numbers, {indices.shape}, are none in {x.shape}")
    check_places(context, 1, x.shape[many : many + rank])
    rest = x.shape[many + rank :]
    out = context.output((*indices.shape[:-1], *rest), x.scalar)
    batch, inner = math.prod(x.shape[:many]), math.prod(rest)
    count = math.prod(indices.shape[many:-1])
    inputs = [
        reshaped(x, (batch, *x.shape[many : many + rank], inner)),
        reshaped(indices, (batch, count, rank)),
    ]
    yield Stage(_gathering_kernel(rank), inputs, reshaped(out, (batch, count, inner)))


@cache
def _gathering_kernel(rank: int) -> Kernel:
    lines = ["b, i, j = dala.position(3)"]
    for axis in range(rank):
        lines.append(f"p{axis} = indices[b, i, {axis}]")
        lines.append(f"p{axis} = p{axis} + x.shape[{axis + 1}] if p{axis} < 0 else p{axis}")
    index = ", ".join(f"p{axis}" for axis in range(rank))
    lines.append(f"return x[b, {index}, j]")
    return written("gather", "def gather(x, indices):\n    " + "\n    ".join(lines))


# -- writing ---------------------------------------------------------------------------------------


def scatter_elements(context: NodeContext) -> Iterator[Stage]:
    """ScatterElements: updates go where each index says along an axis, the rest stays."""
    node, x = context.node, context.input(0)
    indices, updates = context.input(1), context.input(2)
    axis = axis_in(node, node.get("axis", 0), len(x.shape))
    alike = len(x.shape) == len(indices.shape) and indices.shape == updates.shape
    require(node, alike, f"indices {indices.shape} are not as updates {updates.shape} of {x.shape}")
    check_places(context, 1, [x.shape[axis]])
    out = context.output(x.shape, x.scalar)
    rank = len(x.shape)
    names = [f"p{i}" for i in range(rank)]
    own = ", ".join(names)
    names[axis] = "k"
    how = node.get("reduction", "none")
    lines: tuple[str, ...] = (f"({own},) = dala.position({rank})", f"k = indices[{own}]")
    lines += (f"k = k + out.shape[{axis}] if k < 0 else k", "v = updates")
    yield from _scattered(context, lines, ", ".join(names), how, [x, indices, updates, out])


def scatter_places(context: NodeContext) -> Iterator[Stage]:
    """ScatterND: updates go to places that are named by a row of positions each."""
    node, x = context.node, context.input(0)
    indices, updates = context.input(1), context.input(2)
    rank = indices.shape[-1] if indices.shape else 0
    rest = x.shape[rank:]
    fits = 1 <= rank <= len(x.shape) and updates.shape == (*indices.shape[:-1], *rest)
    require(node, fits, f"updates {updates.shape} do not fit {indices.shape} places of {x.shape}")
    check_places(context, 1, x.shape[:rank])
    out = context.output(x.shape, x.scalar)
    count, inner = math.prod(indices.shape[:-1]), math.prod(rest)
    lines: tuple[str, ...] = ("i, j = dala.position(2)",)
    for axis in range(rank):
        lines += (f"p{axis} = indices[i, {axis}]",)
        lines += (f"p{axis} = p{axis} + out.shape[{axis}] if p{axis} < 0 else p{axis}",)
    at = ", ".join([*(f"p{axis}" for axis in range(rank)), "j"])
    seen = [
        reshaped(x, (*x.shape[:rank], inner)),
        reshaped(indices, (count, rank)),
        reshaped(updates, (count, inner)),
        reshaped(out, (*x.shape[:rank], inner)),
    ]
    yield from _scattered(context, (*lines, "v = updates"), at, node.get("reduction", "none"), seen)


def _scattered(
    context: NodeContext, lines: tuple[str, ...], at: str, how: str, seen: Sequence[Buffer]
) -> Iterator[Stage]:
    x, indices, updates, out = seen
    if how not in UPDATES:
        raise ModelError(f"{context.node}: reduction {how!r} is not computed by kernels.")
    yield Stage(cast, [x], out)
    if 0 not in updates.shape:
        kernel = _scattering_kernel(lines, UPDATES[how].format(at=at))
        yield Stage(kernel, [updates, indices], out)


@cache
def _scattering_kernel(lines: tuple[str, ...], write: str) -> Kernel:
    body = "\n    ".join([*lines, write])
    text = f"def scatter(updates, indices, out: dala.Out):\n    {body}"
    source = from_text(text, {"dala": language}, "<scatter>")
    return Kernel("scatter", "", lambda: Definition(source, accumulate=True))


def one_hot(context: NodeContext) -> Iterator[Stage]:
    """OneHot: a row for each index, which is one value but for the place that it names."""
    node, indices, values = context.node, context.input(0), context.input(2)
    depth = int(np.asarray(context.array(1)).reshape(()))
    axis = axis_in(node, node.get("axis", -1), len(indices.shape) + 1)
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])
    out = context.output(shape, values.scalar)
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    seen = reshaped(indices, (outer, inner))
    yield Stage(_one_hot, [seen, values], reshaped(out, (outer, depth, inner)))


_one_hot = written(
    "one_hot",
    "def one_hot(indices, values):\n"
    "    i, k, j = dala.position(3)\n"
    "    (n, depth, m) = dala.shape(3)\n"
    "    at = dala.s32(indices[i, j])\n"
    "    at = at + depth if at < 0 else at\n"
    "    return values[1] if at == k else values[0]",
)


def trilu(context: NodeContext) -> Iterator[Stage]:
    """Trilu: the upper or the lower triangle of matrices, zeros elsewhere."""
    node, x = context.node, context.input()
    require(node, len(x.shape) > 1, f"there are no matrices in {x.shape}")
    given = context.array(1)
    shift = 0 if given is None else int(given.reshape(()))
    flat = (math.prod(x.shape[:-2]), *x.shape[-2:])
    out = context.output(x.shape, x.scalar)
    limit = x.shape[-1] + x.shape[-2]
    params = {"shift": max(min(shift, limit), -limit)}
    kernel = _triangle_kernel(bool(node.get("upper", 1)), x.scalar == BOOL)
    yield Stage(kernel, [reshaped(x, flat)], reshaped(out, flat), params)


@cache
def _triangle_kernel(upper: bool, conditions: bool) -> Kernel:
    compare = ">=" if upper else "<="
    value = f"x[n, i, j] {'and' if conditions else 'if'} j - i {compare} shift"
    return written(
        "triangle",
        "def triangle(x, shift: dala.s32):\n    n, i, j = dala.position(3)\n"
        f"    return {value}{'' if conditions else ' else 0'}",
    )


def reverse_sequence(context: NodeContext) -> Iterator[Stage]:
    """ReverseSequence: the first elements of each row turned around, as many as its length says."""
    node, x, lengths = context.node, context.input(0), context.input(1)
    rank = len(x.shape)
    time = axis_in(node, node.get("time_axis", 0), rank)
    batch = axis_in(node, node.get("batch_axis", 1), rank)
    fits = {time, batch} == {0, 1} and lengths.shape == (x.shape[batch],)
    require(node, fits, f"lengths {lengths.shape} are none for axis {batch} of {x.shape}")
    flat = (*x.shape[:2], math.prod(x.shape[2:]))
    out = context.output(x.shape, x.scalar)
    kernel = _reversing_kernel(time)
    yield Stage(kernel, [reshaped(x, flat), lengths], reshaped(out, flat))


@cache
def _reversing_kernel(time: int) -> Kernel:
    t, b = ("i", "j") if time == 0 else ("j", "i")
    return written(
        "reverse",
        "def reverse(x, lengths):\n    i, j, k = dala.position(3)\n"
        f"    n = dala.s32(lengths[{b}])\n    {t} = n - 1 - {t} if {t} < n else {t}\n"
        "    return x[i, j, k]",
    )


def places_kept(context: NodeContext) -> Iterator[Stage]:
    """Compress: what lies where a condition holds, along an axis or among all."""

    node, x = context.node, context.input()
    named = node.get("axis")
    x = reshaped(x, (math.prod(x.shape),)) if named is None else x
    axis = 0 if named is None else axis_in(node, named, len(x.shape))
    kept = np.flatnonzero(np.asarray(context.array(1)))
    require(node, kept.size == 0 or kept[-1] < x.shape[axis], f"it keeps more than {x.shape}")
    indices = context.builder.uploaded("", kept.astype(np.int64))
    out = context.output((*x.shape[:axis], kept.size, *x.shape[axis + 1 :]), x.scalar)
    if kept.size:
        yield Stage(gather, [x, indices], out, {"axis": axis})


def top_k(context: NodeContext) -> Iterator[Stage]:
    """TopK along an axis: the values, and where they lie."""

    node, x = context.node, context.input()
    rank = len(x.shape)
    axis = axis_in(node, node.get("axis", -1), rank)
    given = node.get("k") if node.opset < 10 else context.array(1)
    count = int(np.asarray(given).reshape(()))
    require(node, 0 <= count <= x.shape[axis], f"{count} of axis {axis} are not in {x.shape}")
    order = (*(i for i in range(rank) if i != axis), axis)
    back = tuple(int(i) for i in np.argsort(order))
    rows = scratch(tuple(x.shape[i] for i in order), x.scalar)
    shape = tuple(count if i == axis else size for i, size in enumerate(x.shape))
    yield from transposed(x, rows, order)
    for index, scalar in enumerate((x.scalar, on_device(S64))):
        out = context.output(shape, scalar, index)
        made = scratch(tuple(shape[i] for i in order), scalar)
        params = {"largest": bool(node.get("largest", 1)), "indices": index == 1}
        if count:
            yield Stage(ranked, [rows], made, params)
            yield from transposed(made, out, back)
