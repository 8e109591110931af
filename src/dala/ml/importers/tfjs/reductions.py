"""Operators that sum up, choose or look up: reductions, the largest, gathering, matrices."""

from __future__ import annotations

from dala.errors import ModelError
from dala.ml.importers.tfjs.activations import activated, elementwise
from dala.ml.importers.tfjs.convolutions import check_images
from dala.ml.importers.tfjs.operation import (
    FIRST,
    LAST,
    Operation,
    Tensor,
    axis_of,
    placed,
    translates,
)

REDUCTIONS = {
    **{"Max": "ReduceMax", "Min": "ReduceMin", "Sum": "ReduceSum"},
    **{"Mean": "ReduceMean", "Prod": "ReduceProd"},
}


@translates(*REDUCTIONS)
def _reduce(op: Operation) -> Tensor:
    tensor, kind = op.inputs[0], REDUCTIONS[op.node.op]
    axes = sorted(set(op.axes(1, tensor.rank))) if op.inputs[1].count else []
    if not axes:
        return tensor
    keep = op.node.flag("keep_dims")
    layout = op.layout(tensor) if keep and tensor.rank == 4 else LAST
    axes = [placed(axis, layout) for axis in axes]
    name = op.name(tensor, layout)
    if kind == "ReduceSum":
        return op.emit(kind, [name, op.new(axes)], layout, keepdims=int(keep))
    return op.emit(kind, [name], layout, axes=axes, keepdims=int(keep))


@translates("ArgMax", "ArgMin")
def _place_of_best(op: Operation) -> Tensor:
    tensor = op.inputs[0]
    (axis,) = op.axes(1, tensor.rank)
    best = op.emit(op.node.op, [op.name(tensor)], axis=axis, keepdims=0)
    return op.cast(best, op.node.dtype("output_type", "int32"))


@translates("TopKV2")
def _largest(op: Operation) -> list[Tensor]:
    (count,) = op.wholes(1, "how many")
    ordered = int(op.node.flag("sorted", True))
    values, places = op.emit_several(
        "TopK", [op.name(op.inputs[0]), op.new([count])], 2, sorted=ordered
    )
    return [values, op.cast(places, "int32")]


@translates("Gather", "GatherV2")
def _look_up(op: Operation) -> Tensor:
    tensor, places = op.inputs[:2]
    axis = op.axes(2, tensor.rank)[0] if len(op.inputs) > 2 else 0
    if op.node.whole("batch_dims", 0):
        raise ModelError("it gathers within batches (batch_dims), which is not known here.")
    return op.emit("Gather", [op.name(tensor), op.name(places)], axis=axis)


@translates("GatherNd")
def _look_up_points(op: Operation) -> Tensor:
    tensor, places = op.inputs
    return op.emit("GatherND", [op.name(tensor), op.name(op.cast(places, "int64"))])


@translates("MatMul", "_FusedMatMul", "BatchMatMul", "BatchMatMulV2")
def _multiply_matrices(op: Operation) -> Tensor:
    names = []
    for tensor, flags in zip(
        op.inputs, (("transpose_a", "adj_x"), ("transpose_b", "adj_y")), strict=False
    ):
        name = op.name(tensor)
        if any(op.node.flag(flag) for flag in flags):
            order = [*range(tensor.rank - 2), axis_of(-1, tensor.rank), axis_of(-2, tensor.rank)]
            name = op.name(op.emit("Transpose", [name], perm=order))
        names.append(name)
    result = op.emit("MatMul", names)
    extra = list(op.inputs[2:])
    for fused in op.node.texts("fused_ops"):
        if fused in ("BiasAdd", "Prelu") and not extra:
            raise ModelError(f"it is fused with {fused}, but has no input for that.")
        if fused == "BiasAdd":
            result = elementwise(op, "Add", result, extra.pop(0))
        else:
            result = activated(op, result, fused, extra.pop(0) if fused == "Prelu" else None)
    return result


@translates("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _normalize(op: Operation) -> Tensor:
    if op.node.flag("is_training"):
        raise ModelError("it normalizes by what it is given, as in training; freeze the model.")
    check_images(op, 0)
    tensor, scale, offset, mean, variance = op.inputs
    epsilon = op.node.number("epsilon", 1e-3)
    names = [op.name(each) for each in (scale, offset, mean, variance)]
    return op.emit("BatchNormalization", [op.name(tensor, FIRST), *names], FIRST, epsilon=epsilon)
