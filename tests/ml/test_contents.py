"""The one reader of ONNX files agrees with the onnx package on all that it reads."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from dala.errors import ModelError
from dala.ml.onnx.contents import Contents, read_contents
from dala.ml.onnx.tensors import DTYPES, NUMPY_DTYPES

VALUES = {"f": [-1.5, 0.0, 2.25, 3e4], "i": [-5, 0, 1, 100], "u": [0, 1, 2, 200], "b": [0, 1, 1, 0]}


def contents_of(nodes=(), constants=(), inputs=(), outputs=None) -> Contents:
    outputs = outputs or [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1,))]
    graph = helper.make_graph(list(nodes), "graph", list(inputs), outputs, list(constants))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return read_contents("m", model.SerializeToString())


@pytest.mark.parametrize("is_raw", [True, False])
@pytest.mark.parametrize("number", NUMPY_DTYPES, ids=lambda number: DTYPES[number][0])
def test_a_constant_of_every_dtype_is_read_as_onnx_reads_it(number, is_raw):
    kind = NUMPY_DTYPES[number].kind
    values = np.array(VALUES["f" if kind == "V" else kind], NUMPY_DTYPES[number])
    held = values.tobytes() if is_raw else values
    tensor = helper.make_tensor("w", number, (2, 2), held, raw=is_raw)
    found = contents_of(constants=[tensor]).constants["w"]
    want = numpy_helper.to_array(tensor)
    assert (found.dtype, found.shape, found.tobytes()) == (want.dtype, want.shape, want.tobytes())


def test_constants_of_types_that_numpy_has_not_are_told_apart():
    tensor = helper.make_tensor("w", TensorProto.FLOAT8E5M2, (1,), b"\0", raw=True)
    found = contents_of(constants=[tensor])
    assert found.unreadable == {"w": "FLOAT8E5M2"}
    assert "w" not in found.constants


@pytest.mark.parametrize("given", [1.5, -3, "mode", [1.0, -2.5], [3, -4, 1 << 40], ["a", "b"], 0])
def test_an_attribute_is_read_as_it_was_written(given):
    node = helper.make_node("Foo", ["x"], ["y"], domain="some.where", value=given)
    (found,) = contents_of([node]).nodes
    assert found.get("value") == given
    assert type(found.get("value")) is type(given)
    assert found.op == "some.where.Foo"


def test_an_attribute_that_is_a_tensor_is_an_array():
    node = helper.make_node("Constant", [], ["y"], value=numpy_helper.from_array(np.eye(2)))
    (found,) = contents_of([node]).nodes
    np.testing.assert_array_equal(found.get("value"), np.eye(2))


def test_axes_that_are_free_have_a_name_or_none():
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ("batch", None, 3))
    found = contents_of(inputs=[given], outputs=[given])
    assert [item.shape for item in (*found.inputs, *found.outputs)] == [("batch", None, 3)] * 2


def test_an_output_whose_shape_is_left_out_has_the_one_that_follows():
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 3))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node("Transpose", ["x"], ["y"])
    assert contents_of([node], inputs=[x], outputs=[y]).outputs[0].shape == (3, 2)


def test_inputs_that_are_no_tensors_of_numbers_are_refused():
    words = helper.make_tensor_value_info("x", TensorProto.STRING, (1,))
    with pytest.raises(ModelError, match="'x' is STRING, but only tensors of numbers"):
        contents_of(inputs=[words])
