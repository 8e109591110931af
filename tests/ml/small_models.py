"""Small ONNX models, made here, of which one can say by heart what they compute."""

from collections.abc import Sequence

import onnx
from onnx import TensorProto, helper

FLOAT, BOOL, INT64, UINT8 = (
    TensorProto.FLOAT,
    TensorProto.BOOL,
    TensorProto.INT64,
    TensorProto.UINT8,
)
Declared = tuple[str, int, Sequence[int | str | None]]


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Declared],
    outputs: Sequence[Declared],
    initializers: Sequence[onnx.TensorProto] = (),
) -> bytes:
    """A model of these nodes, as the bytes of its file."""
    graph = helper.make_graph(
        list(nodes),
        "small",
        [helper.make_tensor_value_info(*item) for item in inputs],
        [helper.make_tensor_value_info(*item) for item in outputs],
        list(initializers),
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made)
    return made.SerializeToString()


def number(name: str, value: float) -> onnx.TensorProto:
    return helper.make_tensor(name, FLOAT, [], [value])


def doubling(shape: Sequence[int | str | None] = (1, 4)) -> bytes:
    """`y` is 2 · x."""
    node = helper.make_node("Mul", ["x", "two"], ["y"], name="double")
    return model_of([node], [("x", FLOAT, shape)], [("y", FLOAT, shape)], [number("two", 2.0)])


def sum_and_difference() -> bytes:
    """`sum` is a + b, `difference` is a − b, of (2, 3)."""
    nodes = [
        helper.make_node("Add", ["a", "b"], ["sum"]),
        helper.make_node("Sub", ["a", "b"], ["difference"]),
    ]
    given = [(name, FLOAT, (2, 3)) for name in ("a", "b")]
    made = [(name, FLOAT, (2, 3)) for name in ("sum", "difference")]
    return model_of(nodes, given, made)


def comparing() -> bytes:
    """`larger` says where x > 0, as truth values."""
    node = helper.make_node("Greater", ["x", "zero"], ["larger"])
    return model_of(
        [node], [("x", FLOAT, (1, 3))], [("larger", BOOL, (1, 3))], [number("zero", 0.0)]
    )


def positives() -> bytes:
    """`places` are those of the elements that are not 0: as many as there are."""
    node = helper.make_node("NonZero", ["x"], ["places"])
    return model_of([node], [("x", FLOAT, (4,))], [("places", INT64, (1, None))])
