"""Graphs as a whole: what is missing, what is refused, what stays on a device, real models."""

from __future__ import annotations

import gc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from ml.executor.graphs import check, computed, expected, graph_of, node, read_graph, sample

from dala import errors
from dala.devices import current_device, find_device
from dala.gpu import compute
from dala.ml.onnx.signature import Tensor, output_shape
from dala.runtime.pipelines.composite import CompositeKernel

X = sample(1, 4, 6, 6)
RELU = graph_of([node("Relu", "x", "y")], {"x": X})
SHARED = Path(__file__).parents[3] / "../shared"


# -- what is missing -------------------------------------------------------------------------------


def test_an_operator_that_no_kernel_computes_is_named_with_its_node():
    nodes = [node("Relu", "x", "r"), node("Det", "r", "y")]
    missing = read_graph(graph_of(nodes, {"x": X})).missing()
    assert missing == ["Det (Det of y): no kernel computes it"]


def test_a_mode_that_no_kernel_computes_is_missing():
    constants = {name: sample(6) for name in ("s", "b", "m", "v")}
    layer = node("BatchNormalization", "x s b m v", "y a c", training_mode=1)
    missing = read_graph(graph_of([layer], {"x": X}, constants)).missing()
    assert missing == ["BatchNormalization (BatchNormalization of y a c): training"]


def test_an_operator_of_whole_numbers_that_is_known_for_floats_only_is_missing():
    nodes = [node("ArgMax", "x", "a", axis=1), node("LpPool", "a", "y", kernel_shape=[2, 2])]
    missing = read_graph(graph_of(nodes, {"x": X})).missing()
    assert missing == ["LpPool (LpPool of y): it is computed of floats only"]
    nodes = [node("Cast", "x", "a", to=7), node("Neg", "a", "b"), node("Sigmoid", "b", "y")]
    missing = read_graph(graph_of(nodes, {"x": X})).missing()
    assert missing == ["Sigmoid (Sigmoid of y): it is computed of floats only"]


def test_shapes_that_follow_from_shapes_are_known(device):
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n"),
        node("Unsqueeze", "n axes", "u"),
        node("Concat", "u rest", "t", axis=0),
        node("Reshape", "x t", "y"),
    ]
    constants = {"zero": np.array(0), "axes": [0], "rest": [-1]}
    check(graph_of(nodes, {"x": X}, constants), {"x": X})


def test_what_follows_from_constants_alone_needs_no_stage(device):
    nodes = [
        node("ConstantOfShape", "size", "ones", value=_tensor([2.0])),
        node("Transpose", "ones", "turned"),
        node("Exp", "turned", "power"),
        node("Add", "x power", "y"),
    ]
    x = sample(3, 2)
    model = graph_of(nodes, {"x": x}, {"size": [2, 3]})
    check(model, {"x": x})
    graph = read_graph(model)
    stages = list(
        graph.stages({"x": compute.from_numpy(x)}, {"y": compute.buffer_zeros((3, 2), "f32")})
    )
    assert len(stages) == 1


def _tensor(values):
    from onnx import numpy_helper

    return numpy_helper.from_array(np.array(values, np.float32))


# -- what is computed ------------------------------------------------------------------------------


def test_only_what_the_wanted_outputs_need_is_computed(device):
    nodes = [node("MaxPool", "x", "a", kernel_shape=[2, 2]), node("Relu", "x", "b")]
    graph = read_graph(graph_of(nodes, {"x": X}, outputs="a b"))
    given = {"x": compute.from_numpy(X)}
    stages = list(graph.stages(given, {"b": compute.buffer_zeros(X.shape, "f32")}))
    assert [stage.kernel.name for stage in stages] == ["pointwise"]


def test_an_input_that_is_an_output_is_copied(device):
    nodes = [node("Relu", "x", "r"), node("Identity", "x", "y")]
    check(graph_of(nodes, {"x": X}, outputs="y r"), {"x": X})


def test_a_view_of_what_is_computed_is_an_output(device):
    nodes = [node("Relu", "x", "r"), node("Flatten", "r", "y"), node("Neg", "r", "z")]
    check(graph_of(nodes, {"x": X}, outputs="y z r"), {"x": X})


def test_an_output_is_converted_to_the_dtype_of_its_buffer(device):
    model = graph_of([node("ArgMax", "x", "y", axis=1)], {"x": X})
    graph, out = read_graph(model), compute.buffer_zeros((1, 1, 6, 6), "f32")
    for stage in graph.stages({"x": compute.from_numpy(X)}, {"y": out}):
        stage.kernel.run(stage.inputs, stage.output, stage.params)
    np.testing.assert_array_equal(compute.read(out), expected(model, {"x": X})["y"])


def test_stages_for_one_shape_are_not_taken_for_another_of_which_the_output_is_the_same(device):
    x = sample(5, 3)
    nodes = [node("ReduceMean", "x", "y", axes=[0])]
    graph = read_graph(graph_of(nodes, {"x": x}, shapes={"x": ["n", 3]}))
    for count in (5, 2):
        made = computed(graph, {"x": x[:count]}, {"y": x[:1]})
        np.testing.assert_allclose(made["y"], x[:count].mean(0, keepdims=True), rtol=1e-5)


def test_free_axes_of_one_name_may_differ_as_exporters_call_all_of_them_alike(device):
    given = {"a": sample(3, 1), "b": sample(2, 1)}
    shapes = {name: ["?", "?"] for name in given}
    model = graph_of([node("Concat", "a b", "y", axis=0)], given, shapes=shapes)
    check(model, given)
    takes = read_graph(model).inputs
    declared = Tensor("y", ("?", 1), np.dtype(np.float32))
    with pytest.raises(errors.ShapeError, match="is not declared"):
        output_shape("model", takes, [(3, 1), (2, 1)], declared)


@pytest.mark.parametrize("batch", [1, 3])
def test_free_axes_are_bound_by_the_inputs(batch, device):
    shapes = {"x": ["n", 4, "h", "w"]}
    nodes = [node("Conv", "x w", "c"), node("GlobalAveragePool", "c", "y")]
    model = graph_of(nodes, {"x": X}, {"w": sample(5, 4, 3, 3)}, shapes=shapes)
    for size in (5, 8):
        check(model, {"x": sample(batch, 4, size, size + 1)})


def test_constants_are_on_the_device_once_and_given_back_with_the_graph(device):
    weight = sample(64, 64, 5, 5)
    model = graph_of([node("Conv", "x w", "y")], {"x": sample(1, 64, 6, 6)}, {"w": weight})
    x = compute.from_numpy(sample(1, 64, 6, 6))
    out = compute.buffer_zeros((1, 64, 2, 2), "f32")
    gc.collect()
    before = compute.memory().live_bytes
    graph = read_graph(model)
    list(graph.stages({"x": x}, {"y": out}))
    held = compute.memory().live_bytes - before
    assert weight.nbytes <= held < 1.1 * weight.nbytes
    other = compute.buffer_zeros((1, 64, 2, 2), "f32")
    list(graph.stages({"x": x}, {"y": other}))
    assert compute.memory().live_bytes - before - other.size == held
    del graph, other
    gc.collect()
    assert compute.memory().live_bytes == before


def test_after_a_device_was_lost_constants_go_to_the_one_that_takes_its_place(webgpu):
    inputs = {"x": sample(1, 4, 6, 6)}
    model = graph_of([node("Conv", "x w", "y")], inputs, {"w": sample(5, 4, 3, 3)})
    graph, want = read_graph(model), expected(model, inputs)
    computed(graph, inputs, want)
    lost = find_device(webgpu)
    lost.lose()
    got = computed(graph, inputs, want)["y"]
    np.testing.assert_allclose(got, want["y"], rtol=1e-5, atol=1e-5)
    assert lost not in graph._placed


def test_memory_between_launches_is_shared_by_values_that_are_not_live_at_once(device):
    x = sample(1, 2, 64, 64)
    names = ["x", *(f"v{i}" for i in range(8)), "y"]
    nodes = [
        node("MaxPool", a, b, kernel_shape=[3, 3], pads=[1, 1, 1, 1]) for a, b in pairwise(names)
    ]
    graph = read_graph(graph_of(nodes, {"x": x}))
    given, out = compute.from_numpy(x), compute.buffer_zeros(x.shape, "f32")
    before = current_device().held().live_bytes
    graph.run({"x": given}, {"y": out})
    assert current_device().held().live_bytes - before <= 2 * given.size


def test_a_graph_between_two_kernels_of_a_pipeline_stays_on_the_device(device):
    x = sample(1, 4, 12, 12)
    nodes = [
        node("Conv", "x w b", "c", pads=[1, 1, 1, 1]),
        node("Relu", "c", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "p v", "d", pads=[1, 1, 1, 1], group=8),
        node("Add", "d p", "y"),
    ]
    constants = {"w": sample(8, 4, 3, 3), "b": sample(8), "v": sample(8, 1, 3, 3)}
    model = graph_of(nodes, {"x": x}, constants)
    graph = read_graph(model)
    recipe = CompositeKernel(
        "model", "", ("x",), (), lambda given, out, _: graph.stages({"x": given[0]}, {"y": out})
    )
    given, out = compute.from_numpy(x), compute.buffer_zeros((1, 8, 6, 6), "f32")
    doubled, made = compute.scratch(x.shape, "f32"), compute.scratch(out.shape, "f32")
    pipeline = compute.Pipeline()
    pipeline.add(kernel="scale", inputs=[given], output=doubled, params={"factor": 2.0})
    pipeline.add(kernel=recipe, inputs=[doubled], output=made)
    pipeline.add(kernel="abs", inputs=[made], output=out)
    pipeline.run()
    want = np.abs(expected(model, {"x": 2 * x})["y"])
    np.testing.assert_allclose(compute.read(out), want, rtol=1e-5, atol=1e-5 * want.max())
    if device == "webgpu":
        assert "computed on the host" not in pipeline.explain()


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "outputs", "error", "says"),
    [
        ({"z": (1, 4, 6, 6)}, {"y": (1, 4, 6, 6)}, errors.ArgumentError, "no input 'z'; it has x"),
        ({}, {"y": (1, 4, 6, 6)}, errors.ArgumentError, "input 'x' of the model is not given"),
        ({"x": (1, 4, 6, 6)}, {"v": (1,)}, errors.ArgumentError, "no output 'v'; it has y"),
        ({"x": (1, 4, 6)}, {"y": (1, 4, 6, 6)}, errors.ShapeError, r"\(1, 4, 6\) was given"),
        ({"x": (1, 4, 6, 6)}, {"y": (4, 6, 6)}, errors.ShapeError, r"room for \(4, 6, 6\)"),
    ],
)
def test_buffers_that_do_not_fit_are_refused(inputs, outputs, error, says):
    graph = read_graph(RELU)
    given, rooms = (
        {name: compute.buffer_zeros(shape, "f32") for name, shape in group.items()}
        for group in (inputs, outputs)
    )
    with pytest.raises(error, match=says):
        graph.stages(given, rooms)


def test_an_input_of_another_dtype_is_refused():
    with pytest.raises(errors.DtypeError, match="input 'x' is float32, but s32 was given"):
        read_graph(RELU).stages(
            {"x": compute.buffer_zeros(X.shape, "s32")}, {"y": compute.buffer_zeros(X.shape, "f32")}
        )


def test_a_node_that_no_kernel_computes_is_refused_where_it_is_needed():
    graph = read_graph(graph_of([node("Det", "x", "y")], {"x": X}))
    rooms = {"y": compute.buffer_zeros((1, 4), "f32")}
    with pytest.raises(errors.ModelError, match=r"Det \(Det of y\) cannot be computed by kernels"):
        graph.stages({"x": compute.buffer_zeros(X.shape, "f32")}, rooms)


# -- real models -----------------------------------------------------------------------------------


def photo(name: str, size: tuple[int, int]) -> np.ndarray:
    """A photo in 0..1, of a size."""
    from PIL import Image

    with Image.open(SHARED / f"photos/{name}.png") as opened:
        return np.asarray(opened.convert("RGB").resize(size), np.float32) / 255


def real(name: str) -> bytes:
    path = SHARED / f"models/{name}.onnx"
    if not path.exists():
        pytest.skip(f"{path.name} is not here: the reference models are not part of the repository")
    return path.read_bytes()


@pytest.mark.slow
def test_mobilenet_names_the_cat_as_onnx_runtime_does(device):
    model = real("mobilenet_v2")
    pixels = (photo("chelsea", (224, 224)) - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    x = np.ascontiguousarray(pixels.transpose(2, 0, 1)[None], np.float32)
    graph, want = read_graph(model), expected(model, {"input": x})
    assert graph.missing() == []
    got = computed(graph, {"input": x}, want)["logits"][0]
    np.testing.assert_allclose(got, want["logits"][0], atol=1e-3)
    assert np.argsort(-got)[:5].tolist() == np.argsort(-want["logits"][0])[:5].tolist()
    assert got.argmax() == 285


@pytest.mark.slow
def test_selfie_segmentation_finds_the_same_person(device):
    model = real("selfie_segmentation")
    x = photo("astronaut", (256, 256))[None]
    graph, want = read_graph(model), expected(model, {"input_1:0": x})["activation_10:0"]
    got = computed(graph, {"input_1:0": x}, {"activation_10:0": want})["activation_10:0"]
    np.testing.assert_allclose(got, want, atol=1e-3)
    assert np.count_nonzero((got > 0.5) != (want > 0.5)) <= 8
