"""Values that decide what is computed: read when they are known, and remembered."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from ml.executor.graphs import expected, graph_of, node, sample
from onnx import TensorProto, helper, numpy_helper

from dala import errors, ml
from dala.gpu import compute
from dala.ml.executor import control_flow

X = sample(2, 3, 4)


def agree(model: bytes, inputs: dict[str, np.ndarray]) -> None:
    """Both engines make the same of arrays."""
    want = expected(model, inputs)
    loaded = ml.gpu.load_model(model, engine="dala")
    got = loaded.outputs([inputs[item.name] for item in loaded.takes])
    for name, item in want.items():
        assert (got[name].dtype, got[name].shape) == (item.dtype, item.shape), name
        np.testing.assert_allclose(got[name], item, rtol=1e-5, atol=1e-6, err_msg=name)


def test_sizes_come_from_the_layout_where_they_are_not_declared(device):
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s two", "h"),
        node("Div", "h two", "half"),
        node("Concat", "one rest half", "t", axis=0),
        node("Reshape", "x t", "y"),
    ]
    constants = {"two": [2], "one": [1], "rest": [-1]}
    shapes = {"x": ["batch", 3, "height"]}
    model = graph_of(nodes, {"x": X}, constants, shapes=shapes)
    for x in (X, sample(5, 3, 6)):
        agree(model, {"x": x})


def test_axes_shapes_and_bounds_may_be_inputs(device):
    nodes = [
        node("ReduceSum", "x axes", "sum", keepdims=0),
        node("Slice", "x starts ends", "part"),
        node("Expand", "one shape", "wide"),
        node("Pad", "x pads", "padded"),
        node("Tile", "x times", "tiled"),
    ]
    inputs = {
        "x": X,
        "axes": np.array([1]),
        "starts": np.array([0, 1]),
        "ends": np.array([1, 3]),
        "shape": np.array([2, 1, 4]),
        "pads": np.array([0, 1, 0, 0, 0, 2]),
        "times": np.array([1, 2, 1]),
    }
    model = graph_of(nodes, inputs, {"one": sample(3, 1)}, "sum part wide padded tiled")
    agree(model, inputs)
    agree(model, {**inputs, "axes": np.array([0]), "times": np.array([2, 1, 3])})


def test_a_computed_value_decides_and_what_was_computed_before_it_is_kept(device):
    nodes = [
        node("Relu", "x", "r"),
        node("NonZero", "r", "places"),
        node("Transpose", "places", "rows"),
        node("GatherND", "r rows", "found"),
        node("ReduceSum", "found", "total", keepdims=0),
        node("Mul", "r total", "y"),
    ]
    model = graph_of(nodes, {"x": X}, outputs="y found")
    for x in (X, -X):
        agree(model, {"x": x})


def test_only_so_many_layouts_are_remembered(device):
    x = sample(4, 4)
    model = graph_of([node("TopK", "x k", "y i")], {"x": x, "k": np.array([1])}, outputs="y i")
    loaded = ml.gpu.load_model(model, engine="dala")
    for k in (1, 3, 2, 1):
        made = loaded.outputs([x, np.array([k])])
        np.testing.assert_array_equal(made["y"], -np.sort(-x, 1)[:, :k])
        assert made["i"].dtype == np.int64


def test_such_a_model_is_no_stage_of_a_pipeline_and_says_why():
    inputs = {"x": X, "axes": np.array([1])}
    model = graph_of([node("ReduceSum", "x axes", "y", keepdims=0)], inputs)
    loaded = ml.gpu.load_model(model, engine="dala")
    buffers = [compute.from_numpy(item) for item in inputs.values()]
    stage = {"kernel": loaded, "inputs": buffers, "output": compute.buffer_zeros((2, 4), "f32")}
    with pytest.raises(errors.ModelError, match=r"ReduceSum of y.*'axes' decides what is computed"):
        compute.pipeline().add(**stage).run()


def test_a_graph_without_inputs_is_computed(device):
    nodes = [node("Exp", "c", "y")]
    model = graph_of(nodes, {}, {"c": sample(3)})
    for engine in ("dala", "onnxruntime"):
        made = ml.gpu.predict(ml.gpu.load_model(model, engine=engine), {})
        np.testing.assert_allclose(made, np.exp(sample(3)), rtol=1e-6)


# -- branches and loops ----------------------------------------------------------------------------


def body_of(nodes, inputs, outputs):
    """A graph inside of a node: names with their types."""
    given, made = (
        [
            helper.make_tensor_value_info(name, kind, None if kind == F else [])
            for name, kind in group.items()
        ]
        for group in (inputs, outputs)
    )
    two = numpy_helper.from_array(np.float32(2), "two")
    return helper.make_graph(nodes, "body", given, made, [two])


F, N, P = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


@pytest.mark.parametrize("chosen", [True, False])
def test_a_branch_is_chosen_by_a_computed_condition(chosen, device):
    yes = body_of([node("Mul", "x two", "t")], {}, {"t": F})
    no = body_of([node("Sub", "x two", "e")], {}, {"e": F})
    nodes = [
        node("ReduceSum", "x", "s", keepdims=0),
        node("Greater", "s zero", "c"),
        node("If", "c", "y", then_branch=yes, else_branch=no),
    ]
    x = np.abs(X) if chosen else -np.abs(X)
    agree(graph_of(nodes, {"x": x}, {"zero": np.float32(0)}), {"x": x})


def test_a_loop_ends_by_its_trips_or_its_condition_and_gathers_what_trips_leave(device):
    inside = [
        node("Mul", "v two", "w"),
        node("ReduceMax", "w", "m", keepdims=0),
        node("Less", "m limit", "go"),
        node("Add", "w x", "left"),
    ]
    inputs, outputs = {"i": N, "c": P, "v": F}, {"go": P, "w": F, "left": F}
    body = body_of(inside, inputs, outputs)
    nodes = [node("Loop", "trips - x", "y all", body=body)]
    x = np.array([1.0, 0.5], np.float32)
    for trips, limit in ((3, 1e9), (9, 20.0)):
        constants = {"trips": np.array(trips), "limit": np.float32(limit)}
        agree(graph_of(nodes, {"x": x}, constants, outputs="y all"), {"x": x})


def test_a_scan_goes_through_slices_from_either_end(device):
    inside = [node("Add", "s v", "t"), node("Mul", "t two", "u")]
    body = body_of(inside, {"s": F, "v": F}, {"t": F, "u": F})
    nodes = [
        node("Scan", "zero x", "y all", body=body, num_scan_inputs=1, scan_input_directions=[1])
    ]
    x = sample(3, 2)
    agree(graph_of(nodes, {"x": x}, {"zero": np.zeros(2, "f4")}, outputs="y all"), {"x": x})


def test_a_loop_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(control_flow, "MOST_TRIPS", 200)
    body = body_of([node("Identity", "c", "d"), node("Mul", "v two", "w")],
                   {"i": N, "c": P, "v": F}, {"d": P, "w": F})  # fmt: skip
    x = np.ones(1, np.float32)
    model = graph_of([node("Loop", "- yes x", "y", body=body)], {"x": x}, {"yes": np.array(True)})
    with pytest.raises(errors.ModelError, match="goes on after 200 trips"):
        ml.gpu.load_model(model, engine="dala").outputs([x])


# -- functions of a file ---------------------------------------------------------------------------


def test_functions_of_a_file_are_computed_as_what_they_are_made_of(device):
    scaled = node("Constant", "", "k")
    scaled.attribute.append(helper.make_attribute_ref("value_float", onnx.AttributeProto.FLOAT))
    scaled.attribute[0].ref_attr_name = "by"
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    inner = helper.make_function(
        "own", "Scaled", ["a"], ["b"], [scaled, node("Mul", "a k", "b")], opsets, ["by"]
    )
    call = node("Scaled", "p", "q", domain="own", by=3.0)
    outer = helper.make_function(
        "own", "Twice", ["p"], ["r"], [call, node("Add", "q p", "r")], opsets
    )
    model = onnx.load_from_string(graph_of([node("Relu", "x", "y")], {"x": X}))
    model.functions.extend([inner, outer])
    model.opset_import.append(opsets[1])
    model.graph.node.insert(0, node("Twice", "x", "t", domain="own"))
    model.graph.node[1].input[0] = "t"
    agree(model.SerializeToString(), {"x": X})
