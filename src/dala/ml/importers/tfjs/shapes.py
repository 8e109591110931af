"""Operators that move values without changing them: shapes, joins, paddings."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dala.errors import ModelError
from dala.ml.importers.tfjs.convolutions import Padded
from dala.ml.importers.tfjs.operation import (
    LAST,
    Operation,
    Tensor,
    axis_of,
    ordered,
    placed,
    translates,
)

MOST_PARTS = 4096


def padded(op: Operation, tensor: Tensor, pairs: Sequence[tuple[int, int]]) -> Tensor:
    """Returns the tensor with zeros around it, a pair of widths per axis."""
    return _pad(op, tensor, pairs, 0.0)


def _pad(
    op: Operation,
    tensor: Tensor,
    pairs: Sequence[tuple[int, int]],
    fill: float,
    mode: str = "constant",
) -> Tensor:
    if len(pairs) != tensor.rank or min((min(pair) for pair in pairs), default=0) < 0:
        raise ModelError(f"{tensor.shape} needs a pair of widths from 0 on per axis, not {pairs}.")
    if not any(map(any, pairs)):
        return tensor
    layout = op.layout(tensor) if tensor.rank == 4 else LAST
    before, after = (ordered([pair[end] for pair in pairs], layout) for end in (0, 1))
    names = [op.name(tensor, layout), op.new([*before, *after])]
    if mode == "constant":
        names.append(op.new(fill, tensor.dtype))
    result = op.emit("Pad", names, layout, mode=mode)
    if tensor.rank == 4 and mode == "constant" and fill == 0 and not any(pairs[0] + pairs[3]):
        op.origins[result.forms[layout]] = Padded(tensor, (pairs[1], pairs[2]))
    return result


def _pairs(op: Operation) -> list[tuple[int, int]]:
    flat = op.wholes(1, "the paddings")
    return list(zip(flat[::2], flat[1::2], strict=True))


@translates("Pad", "PadV2")
def _pad_with(op: Operation) -> Tensor:
    fill = op.constant(2, "the padding's value").item() if len(op.inputs) > 2 else 0
    return _pad(op, op.inputs[0], _pairs(op), float(fill))


@translates("MirrorPad")
def _mirror(op: Operation) -> Tensor:
    tensor, pairs, mode = op.inputs[0], _pairs(op), op.node.text("mode", "REFLECT")
    if mode == "REFLECT":
        return _pad(op, tensor, pairs, 0, "reflect")
    if mode != "SYMMETRIC" or len(pairs) != tensor.rank:
        raise ModelError(f"its mode is {mode!r} with {pairs}; REFLECT and SYMMETRIC are known.")
    # ONNX does not mirror the edge itself; picking every element by its place does.
    for axis, pair in enumerate(pairs):
        if min(pair) < 0 or max(pair) > tensor.shape[axis]:
            raise ModelError(f"{tensor.shape} cannot be mirrored by {pairs}: it is too small.")
        if any(pair):
            places = np.pad(np.arange(tensor.shape[axis]), pair, "symmetric")
            tensor = op.emit("Gather", [op.name(tensor), op.new(places)], axis=axis)
    return tensor


@translates("Identity", "StopGradient", "Snapshot")
def _same(op: Operation) -> Tensor:
    return op.inputs[0]


@translates("Shape")
def _shape(op: Operation) -> Tensor:
    return op.tensor(np.array(op.inputs[0].shape, op.node.dtype("out_type", "int32")))


@translates("Size", "Rank")
def _size(op: Operation) -> Tensor:
    tensor = op.inputs[0]
    number = tensor.count if op.node.op == "Size" else tensor.rank
    return op.tensor(np.array(number, op.node.dtype("out_type", "int32")))


@translates("Reshape")
def _reshape(op: Operation) -> Tensor:
    tensor, sizes = op.inputs[0], op.wholes(1, "the new shape")
    if op.inputs[1].count == 0:
        sizes = []
    if sizes.count(-1) == 1:
        known = math.prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = tensor.count // known if known else 0
    return op.reshape(tensor, sizes)


@translates("ExpandDims")
def _expand(op: Operation) -> Tensor:
    tensor = op.inputs[0]
    (axis,) = op.axes(1, tensor.rank + 1)
    return op.reshape(tensor, (*tensor.shape[:axis], 1, *tensor.shape[axis:]))


@translates("Squeeze")
def _squeeze(op: Operation) -> Tensor:
    tensor = op.inputs[0]
    named = op.node.wholes("squeeze_dims") or op.node.wholes("axis")
    axes = {axis_of(axis, tensor.rank) for axis in named}
    axes = axes or {axis for axis, size in enumerate(tensor.shape) if size == 1}
    return op.reshape(tensor, [size for axis, size in enumerate(tensor.shape) if axis not in axes])


@translates("Transpose")
def _transpose(op: Operation) -> Tensor:
    order = [axis_of(axis, op.inputs[0].rank) for axis in op.wholes(1, "the order of axes")]
    return op.emit("Transpose", [op.name(op.inputs[0])], perm=order)


@translates("ConcatV2", "Concat")
def _join(op: Operation) -> Tensor:
    place = len(op.inputs) - 1 if op.node.op == "ConcatV2" else 0
    tensors = op.inputs[:-1] if place else op.inputs[1:]
    (axis,) = op.axes(place, tensors[0].rank)
    layout = op.layout(*tensors) if tensors[0].rank == 4 else LAST
    names = [op.name(tensor, layout) for tensor in tensors]
    return op.emit("Concat", names, layout, axis=placed(axis, layout))


@translates("Pack")
def _stack(op: Operation) -> Tensor:
    rank = op.inputs[0].rank
    axis = axis_of(op.node.whole("axis", 0), rank + 1)
    shape = op.inputs[0].shape
    rows = [op.reshape(tensor, (*shape[:axis], 1, *shape[axis:])) for tensor in op.inputs]
    return op.emit("Concat", [op.name(row) for row in rows], axis=axis)


@translates("Unpack")
def _unstack(op: Operation) -> list[Tensor]:
    tensor = op.inputs[0]
    axis = axis_of(op.node.whole("axis", 0), tensor.rank)
    shape = tensor.shape[:axis] + tensor.shape[axis + 1 :]
    rows = _split(op, tensor, axis, _equal_parts(tensor.shape[axis], tensor.shape[axis]))
    return [op.reshape(row, shape) for row in rows]


@translates("Split")
def _split_evenly(op: Operation) -> list[Tensor]:
    (axis,) = op.axes(0, op.inputs[1].rank)
    count = op.node.whole("num_split", 1)
    return _split(op, op.inputs[1], axis, _equal_parts(op.inputs[1].shape[axis], count))


@translates("SplitV")
def _split_unevenly(op: Operation) -> list[Tensor]:
    tensor, sizes = op.inputs[0], op.wholes(1, "the sizes of the parts")
    (axis,) = op.axes(2, tensor.rank)
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = tensor.shape[axis] - sum(sizes) - 1
    return _split(op, tensor, axis, sizes)


def _equal_parts(size: int, count: int) -> list[int]:
    if not 1 <= count <= MOST_PARTS or size % count:
        raise ModelError(
            f"{size:,} elements cannot be split into {count:,} equal parts; at most {MOST_PARTS:,} "
            f"can be made."
        )
    return [size // count] * count


def _split(op: Operation, tensor: Tensor, axis: int, sizes: list[int]) -> list[Tensor]:
    if len(sizes) == 1:
        return [tensor]
    layout = op.layout(tensor) if tensor.rank == 4 else LAST
    names = [op.name(tensor, layout), op.new(sizes)]
    return op.emit_several("Split", names, len(sizes), layout, axis=placed(axis, layout))


@translates("Tile")
def _tile(op: Operation) -> Tensor:
    counts = op.wholes(1, "how often")
    return op.emit("Tile", [op.name(op.inputs[0]), op.new(counts)])


@translates("Fill")
def _fill(op: Operation) -> Tensor:
    sizes = op.wholes(0, "the shape") if op.inputs[0].count else []
    return op.emit("Expand", [op.name(op.inputs[1]), op.new(sizes)])


@translates("BroadcastTo")
def _broadcast(op: Operation) -> Tensor:
    return op.emit("Expand", [op.name(op.inputs[0]), op.new(op.wholes(1, "the shape"))])


@translates("Range")
def _range(op: Operation) -> Tensor:
    if not op.constant(2, "the step").all():
        raise ModelError("its step is 0: it would never end.")
    return op.emit("Range", [op.name(tensor) for tensor in op.inputs])
