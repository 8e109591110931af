"""Operators that work on each element by itself: arithmetic, comparisons, activations."""

from __future__ import annotations

from dala.ml.importers.tfjs.activations import activated, clipped, elementwise
from dala.ml.importers.tfjs.convolutions import check_layout, merged_bias, merged_scale
from dala.ml.importers.tfjs.operation import FIRST, Operation, Tensor, translates

UNARY = {
    **{name: name for name in ("Abs", "Ceil", "Cos", "Elu", "Exp", "Floor", "Log", "Neg", "Relu")},
    **{name: name for name in ("Reciprocal", "Round", "Selu", "Sigmoid", "Sin", "Softplus")},
    **{name: name for name in ("Sqrt", "Tanh")},
    "LogicalNot": "Not",
}
BINARY = {
    **{"Sub": "Sub", "RealDiv": "Div", "Div": "Div", "Pow": "Pow"},
    **{"Minimum": "Min", "Maximum": "Max", "Equal": "Equal"},
    **{"Less": "Less", "LessEqual": "LessOrEqual"},
    **{"Greater": "Greater", "GreaterEqual": "GreaterOrEqual"},
    **{"LogicalAnd": "And", "LogicalOr": "Or"},
}
INTEGERS = ("uint8", "int32", "int64")


def _same_dtype(op: Operation, *tensors: Tensor) -> list[Tensor]:
    """Returns the tensors, in 64 bits where some are: constants of such graphs are kept in 32."""
    kinds = {tensor.dtype for tensor in tensors}
    if len(kinds) == 1 or not kinds <= set(INTEGERS):
        return list(tensors)
    widest = max(kinds, key=INTEGERS.index)
    return [op.cast(tensor, widest) for tensor in tensors]


@translates(*UNARY)
def _unary(op: Operation) -> Tensor:
    return elementwise(op, UNARY[op.node.op], op.inputs[0])


@translates(*BINARY)
def _binary(op: Operation) -> Tensor:
    return elementwise(op, BINARY[op.node.op], *_same_dtype(op, *op.inputs))


@translates("NotEqual")
def _not_equal(op: Operation) -> Tensor:
    return elementwise(op, "Not", elementwise(op, "Equal", *_same_dtype(op, *op.inputs)))


@translates("Add", "AddV2", "BiasAdd")
def _add(op: Operation) -> Tensor:
    check_layout(op)
    return merged_bias(op) or elementwise(op, "Add", *_same_dtype(op, *op.inputs))


@translates("Mul")
def _multiply(op: Operation) -> Tensor:
    return merged_scale(op) or elementwise(op, "Mul", *_same_dtype(op, *op.inputs))


@translates("AddN")
def _add_several(op: Operation) -> Tensor:
    return elementwise(op, "Add" if len(op.inputs) == 2 else "Sum", *op.inputs)


@translates("Square")
def _square(op: Operation) -> Tensor:
    return elementwise(op, "Mul", op.inputs[0], op.inputs[0])


@translates("SquaredDifference")
def _squared_difference(op: Operation) -> Tensor:
    difference = elementwise(op, "Sub", *_same_dtype(op, *op.inputs))
    return elementwise(op, "Mul", difference, difference)


@translates("Rsqrt")
def _reciprocal_root(op: Operation) -> Tensor:
    return elementwise(op, "Reciprocal", elementwise(op, "Sqrt", op.inputs[0]))


@translates("FloorDiv")
def _floor_divide(op: Operation) -> Tensor:
    left, right = _same_dtype(op, *op.inputs)
    if left.dtype not in INTEGERS:
        return elementwise(op, "Floor", elementwise(op, "Div", left, right))
    # ONNX divides integers towards zero, but its remainder has the divisor's sign.
    rest = elementwise(op, "Mod", left, right)
    return elementwise(op, "Div", elementwise(op, "Sub", left, rest), right)


@translates("FloorMod")
def _floor_remainder(op: Operation) -> Tensor:
    left, right = _same_dtype(op, *op.inputs)
    if left.dtype in INTEGERS:
        return elementwise(op, "Mod", left, right)
    whole = elementwise(op, "Floor", elementwise(op, "Div", left, right))
    return elementwise(op, "Sub", left, elementwise(op, "Mul", whole, right))


@translates("Relu6")
def _relu6(op: Operation) -> Tensor:
    return clipped(op, op.inputs[0], 0, 6)


@translates("ClipByValue")
def _clip(op: Operation) -> Tensor:
    least, most = (float(op.constant(place, "a bound").item()) for place in (1, 2))
    return clipped(op, op.inputs[0], least, most)


@translates("LeakyRelu")
def _leaky_relu(op: Operation) -> Tensor:
    return activated(op, op.inputs[0], "LeakyRelu")


@translates("Prelu")
def _prelu(op: Operation) -> Tensor:
    return activated(op, op.inputs[0], "Prelu", op.inputs[1])


@translates("Cast")
def _cast(op: Operation) -> Tensor:
    return op.cast(op.inputs[0], op.node.dtype("DstT", "float32"))


@translates("Select", "SelectV2")
def _select(op: Operation) -> Tensor:
    condition, left, right = op.inputs
    left, right = _same_dtype(op, left, right)
    if op.node.op == "Select" and condition.rank == 1 < left.rank:
        # The old operator takes a vector as one choice per row.
        condition = op.reshape(condition, condition.shape + (1,) * (left.rank - 1))
    return elementwise(op, "Where", condition, left, right)


@translates("Softmax", "LogSoftmax")
def _softmax(op: Operation) -> Tensor:
    tensor = op.inputs[0]
    layout = op.layout(tensor)
    axis = 1 if layout == FIRST else -1
    return op.emit(op.node.op, [op.name(tensor, layout)], layout, axis=axis)


@translates("ZerosLike", "OnesLike")
def _filled_like(op: Operation) -> Tensor:
    tensor = op.inputs[0]
    fill = op.new(op.node.op == "OnesLike", tensor.dtype)
    return op.emit("Expand", [fill, op.new(tensor.shape)])
