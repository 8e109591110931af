"""The run in f64 that models are measured against computes what ONNX Runtime does."""

import numpy as np
import onnx
from ml.comparison.faulty_graphs import SHAPE, mobile
from ml.executor.graphs import expected, graph_of, node, sample
from onnx import numpy_helper

from benchmarks.double_precision import run_in_f64, widened


def test_a_network_in_f64_is_what_onnx_runtime_computes():
    nodes = [
        node("Conv", "x w", "a", auto_pad="SAME_UPPER", strides=[2, 2], kernel_shape=[3, 3]),
        node("MaxPool", "a", "b", kernel_shape=[2, 2], pads=[0, 0, 1, 1]),
        node("Resize", "b - s", "c", mode="linear", coordinate_transformation_mode="half_pixel"),
        node("Resize", "c - t", "d", mode="linear", coordinate_transformation_mode="align_corners"),
        node("AveragePool", "d", "e", kernel_shape=[3, 3], strides=[3, 3]),
        node("ConvTranspose", "e v", "y", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    constants = {
        "w": sample(4, 2, 3, 3),
        "v": sample(4, 3, 2, 2),
        "s": np.array([1, 1, 2, 3], np.float32),
        "t": np.array([1, 1, 1.5, 2], np.float32),
    }
    inputs = {"x": sample(1, 2, 9, 8)}
    for model, given in (
        (graph_of(nodes, inputs, constants), inputs),
        (mobile(1)[0], {"x": sample(*SHAPE)}),
    ):
        want = expected(model, given)["y"]
        got = run_in_f64(model, given)["y"]
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * np.abs(want).max())
        assert not np.array_equal(got, want)


def test_nothing_of_a_widened_model_is_f32():
    model = widened(onnx.load_model_from_string(mobile(1)[0]))
    assert {numpy_helper.to_array(item).dtype for item in model.graph.initializer} == {
        np.dtype("f8")
    }
