"""Operators on rows and columns: pooling, resizing, and pixels that move to other axes."""

from __future__ import annotations

from dala.errors import ModelError
from dala.ml.importers.tfjs.convolutions import (
    Blocked,
    Pads,
    check_images,
    flat,
    pads_of,
    spatial,
    undealt,
)
from dala.ml.importers.tfjs.operation import FIRST, Operation, Tensor, translates
from dala.ml.importers.tfjs.shapes import padded
from dala.ml.importers.tfjs.slices import sliced


@translates("MaxPool", "AvgPool")
def _pool(op: Operation) -> Tensor:
    check_images(op, 0)
    source = op.inputs[0]
    window, strides = spatial(op, "ksize"), spatial(op, "strides")
    pads = pads_of(op, source.shape[1:3], window, strides)
    name = op.name(source, FIRST)
    kind = {"MaxPool": "MaxPool", "AvgPool": "AveragePool"}[op.node.op]
    if window == source.shape[1:3] and not any(flat(pads)):
        return op.emit(f"Global{kind}", [name], FIRST)
    attrs = {"kernel_shape": window, "pads": flat(pads), "strides": strides}
    return op.emit(kind, [name], FIRST, **attrs)


@translates("ResizeBilinear", "ResizeNearestNeighbor")
def _resize(op: Operation) -> Tensor:
    check_images(op, 0)
    source, size = op.inputs[0], op.wholes(1, "the new size")
    if len(size) != 2 or min(size) < 1:
        raise ModelError(f"its new size is {size}, but has to be [rows, columns], from 1 on.")
    batch, rows, columns, channels = source.shape
    is_bilinear = op.node.op == "ResizeBilinear"
    dtype = "float32" if is_bilinear else source.dtype
    if [rows, columns] == size:
        return op.cast(source, dtype)
    aligned, centred = op.node.flag("align_corners"), op.node.flag("half_pixel_centers")
    if is_bilinear:
        how = {"mode": "linear"}
    else:
        rounding = "round_prefer_ceil" if aligned or centred else "floor"
        how = {"mode": "nearest", "nearest_mode": rounding}
    how["coordinate_transformation_mode"] = (
        "align_corners" if aligned else "half_pixel" if centred else "asymmetric"
    )
    sizes = op.new([batch, channels, *size])
    names = [op.name(op.cast(source, "float32"), FIRST), "", "", sizes]
    return op.cast(op.emit("Resize", names, FIRST, **how), dtype)


@translates("DepthToSpace", "SpaceToDepth")
def _depth(op: Operation) -> Tensor:
    check_images(op, 0)
    source, block = op.inputs[0], op.node.whole("block_size", 0)
    batch, rows, columns, channels = source.shape
    to_space = op.node.op == "DepthToSpace"
    divided = ((channels, block * block),) if to_space else ((rows, block), (columns, block))
    if block < 1 or any(size % parts for size, parts in divided):
        raise ModelError(f"{source.shape} cannot be taken apart into blocks of {block} × {block}.")
    if to_space:
        return op.emit("DepthToSpace", [op.name(source, FIRST)], FIRST, blocksize=block, mode="DCR")
    split = op.reshape(source, (batch, rows // block, block, columns // block, block, channels))
    moved = op.emit("Transpose", [op.name(split)], perm=(0, 1, 3, 2, 4, 5))
    return op.reshape(moved, (batch, rows // block, columns // block, block * block * channels))


@translates("SpaceToBatchND")
def _deal(op: Operation) -> Tensor:
    check_images(op, 0)
    source = op.inputs[0]
    block, pads = _block_and_pairs(op, "paddings")
    wide = padded(op, source, [(0, 0), *pads, (0, 0)])
    batch, rows, columns, channels = wide.shape
    if rows % block[0] or columns % block[1]:
        raise ModelError(f"{wide.shape} cannot be taken apart into blocks of {block}.")
    split = (batch, rows // block[0], block[0], columns // block[1], block[1], channels)
    moved = op.emit("Transpose", [op.name(op.reshape(wide, split))], perm=(2, 4, 0, 1, 3, 5))
    dealt = op.reshape(
        moved, (batch * block[0] * block[1], rows // block[0], columns // block[1], channels)
    )
    op.origins[op.name(dealt)] = Blocked(source, block, pads)
    return dealt


@translates("BatchToSpaceND")
def _gather_dealt(op: Operation) -> Tensor:
    check_images(op, 0)
    block, crops = _block_and_pairs(op, "crops")
    whole = undealt(op, crops, block)
    if whole is not None:
        return whole
    dealt, rows, columns, channels = op.inputs[0].shape
    batch, rest = divmod(dealt, block[0] * block[1])
    if rest:
        raise ModelError(f"{op.inputs[0].shape} is not made of blocks of {block}.")
    split = op.reshape(op.inputs[0], (*block, batch, rows, columns, channels))
    moved = op.emit("Transpose", [op.name(split)], perm=(2, 3, 0, 4, 1, 5))
    joined = op.reshape(moved, (batch, rows * block[0], columns * block[1], channels))
    starts = [0, crops[0][0], crops[1][0], 0]
    ends = [batch, joined.shape[1] - crops[0][1], joined.shape[2] - crops[1][1], channels]
    return sliced(op, joined, starts, ends)


def _block_and_pairs(op: Operation, what: str) -> tuple[tuple[int, int], Pads]:
    block, pairs = op.wholes(1, "the block"), op.wholes(2, f"the {what}")
    if len(block) != 2 or min(block) < 1 or len(pairs) != 4 or min(pairs) < 0:
        raise ModelError(
            f"its block {block} has to be two from 1 on, its {what} {pairs} two pairs."
        )
    return (block[0], block[1]), ((pairs[0], pairs[1]), (pairs[2], pairs[3]))
