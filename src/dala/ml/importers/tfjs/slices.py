"""Parts of tensors: from where to where, and in which steps."""

from __future__ import annotations

from collections.abc import Sequence

from dala.errors import ModelError
from dala.ml.importers.tfjs.operation import LAST, Operation, Tensor, axis_of, placed, translates


def sliced(
    op: Operation,
    tensor: Tensor,
    starts: Sequence[int],
    ends: Sequence[int],
    steps: Sequence[int] | None = None,
) -> Tensor:
    """The part from starts to ends, one of each per axis; an end below 0 is before the first."""
    taken = [1] * tensor.rank if steps is None else list(steps)
    whole = all(
        (start, end, step) == (0, size, 1)
        for start, end, step, size in zip(starts, ends, taken, tensor.shape, strict=True)
    )
    if whole:
        return tensor
    layout = op.layout(tensor) if tensor.rank == 4 else LAST
    # For ONNX −1 is the last element: what is before the first is far below.
    lowest = [end if end >= 0 else -(2**31) for end in ends]
    lists = (starts, lowest, range(tensor.rank), taken)
    names = [
        op.new([placed(axis, layout) for axis in each] if each is lists[2] else each)
        for each in lists
    ]
    return op.emit("Slice", [op.name(tensor, layout), *names], layout)


@translates("Slice")
def _slice(op: Operation) -> Tensor:
    tensor = op.inputs[0]
    starts, sizes = op.wholes(1, "where it begins"), op.wholes(2, "its size")
    if not len(starts) == len(sizes) == tensor.rank:
        raise ModelError(f"{tensor.shape} cannot be cut from {starts} by {sizes}.")
    ends = [
        whole if size == -1 else start + size
        for start, size, whole in zip(starts, sizes, tensor.shape, strict=True)
    ]
    if any(
        not 0 <= start <= end <= size
        for start, end, size in zip(starts, ends, tensor.shape, strict=True)
    ):
        raise ModelError(f"{tensor.shape} has no part from {starts} to {ends}.")
    return sliced(op, tensor, starts, ends)


@translates("StridedSlice")
def _strided_slice(op: Operation) -> Tensor:
    tensor = op.inputs[0]
    begins, ends, steps = (op.wholes(place, "a bound") for place in (1, 2, 3))
    begin_mask, end_mask, ellipsis, new_axis, shrink = (
        op.node.whole(f"{name}_mask", 0)
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    )
    spans: list[slice] = []
    shape: list[int] = []
    # What an ellipsis stands for: the axes that the other entries leave over.
    taken = sum(1 for bit in range(len(begins)) if not (ellipsis | new_axis) >> bit & 1)
    for bit, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        if ellipsis >> bit & 1:
            for _ in range(tensor.rank - taken):
                shape.append(tensor.shape[len(spans)])
                spans.append(slice(0, shape[-1], 1))
        elif new_axis >> bit & 1:
            shape.append(1)
        elif len(spans) == tensor.rank or step == 0:
            raise ModelError(f"{tensor.shape} has no part {begins} to {ends} by {steps}.")
        else:
            size = tensor.shape[len(spans)]
            if shrink >> bit & 1:
                place = axis_of(begin, size)
                spans.append(slice(place, place + 1, 1))
                continue
            bounds = slice(
                None if begin_mask >> bit & 1 else begin, None if end_mask >> bit & 1 else end, step
            ).indices(size)
            spans.append(slice(*bounds))
            shape.append(len(range(*bounds)))
    for size in tensor.shape[len(spans) :]:
        spans.append(slice(0, size, 1))
        shape.append(size)
    part = sliced(
        op, tensor, [s.start for s in spans], [s.stop for s in spans], [s.step for s in spans]
    )
    return op.reshape(part, shape)
