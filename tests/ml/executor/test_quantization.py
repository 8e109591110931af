"""Quantized layers, against ONNX Runtime; levels agree exactly."""

from __future__ import annotations

import numpy as np
import pytest
from ml.executor.graphs import check, computed, expected, graph_of, node, read_graph, sample

from dala import errors

pytest.importorskip("onnxruntime")

RANDOM = np.random.default_rng(5)
X = sample(2, 4, 5, 6)
U8 = RANDOM.integers(0, 256, (2, 4, 5, 6)).astype(np.uint8)
S8 = RANDOM.integers(-128, 128, (6, 2, 3, 2)).astype(np.int8)
SCALE = np.float32(0.02)


def levels(*values: int, dtype: str = "u1") -> np.ndarray:
    return np.array(values, dtype).reshape(() if len(values) == 1 else -1)


def test_levels_and_back(device):
    constants = {"s": SCALE, "z": levels(120)}
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "y")]
    check(graph_of(nodes, {"x": X}, constants, outputs="q y"), {"x": X})


@pytest.mark.parametrize("dtype", ["u1", "i1"])
def test_levels_by_scales_for_each_channel(dtype, device):
    constants = {
        "s": np.abs(sample(4)) * 0.02 + 0.001,
        "z": levels(1, 20, 100, 127, dtype=dtype),
    }
    nodes = [
        node("QuantizeLinear", "x s z", "q", axis=1),
        node("DequantizeLinear", "q s z", "y", axis=1),
    ]
    check(graph_of(nodes, {"x": X}, constants, outputs="q y"), {"x": X})


def test_levels_by_scales_for_each_block(device):
    constants = {"s": np.abs(sample(2, 4, 3, 6)) * 0.02 + 0.001}
    nodes = [
        node("QuantizeLinear", "x s", "q", axis=2, block_size=2, output_dtype=3),
        node("DequantizeLinear", "q s", "y", axis=2, block_size=2),
    ]
    check(graph_of(nodes, {"x": X}, constants, outputs="q y", opset=21), {"x": X})


def test_weights_of_levels_are_constants_of_floats(device):
    constants = {
        "w": S8,
        "s": np.abs(sample(6)),
        "z": levels(*range(6), dtype="i1"),
    }
    nodes = [
        node("DequantizeLinear", "w s z", "f", axis=0),
        node("Conv", "x f", "y", group=2),
    ]
    model = graph_of(nodes, {"x": X}, constants)
    check(model, {"x": X})


@pytest.mark.parametrize("x", [X, np.abs(X) + 1, -np.abs(X) - 1, X * 0])
def test_levels_by_the_extremes(x, device):
    layer = node("DynamicQuantizeLinear", "x", "y s z")
    check(graph_of([layer], {"x": x}, outputs="y s z"), {"x": x})


PRODUCTS = {
    "plain": ((3, 4), (4, 5), {"za": levels(7), "zb": levels(99)}),
    "batch": ((2, 3, 4), (4, 5), {"za": levels(7), "zb": levels(0)}),
    "columns": ((3, 4), (4, 5), {"za": levels(3), "zb": levels(1, 2, 3, 200, 255)}),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_product_of_levels(case, device):
    a_shape, b_shape, zeros = PRODUCTS[case]
    a, b = (RANDOM.integers(0, 256, shape).astype(np.uint8) for shape in (a_shape, b_shape))
    integers = node("MatMulInteger", "a b za zb", "y")
    check(graph_of([integers], {"a": a, "b": b}, zeros), {"a": a, "b": b})
    more = {"sa": SCALE, "sb": SCALE * 3, "sy": np.float32(1.5), "zy": levels(100)}
    if zeros["zb"].size > 1:
        more["sb"] = np.full(5, SCALE, np.float32) * np.arange(1, 6, dtype=np.float32)
    layer = node("QLinearMatMul", "a sa za b sb zb sy zy", "y")
    check(graph_of([layer], {"a": a, "b": b}, {**zeros, **more}), {"a": a, "b": b})


@pytest.mark.parametrize("group", [1, 2])
def test_convolution_of_levels(group, device):
    w = RANDOM.integers(-128, 128, (6, 4 // group, 3, 2)).astype(np.int8)
    more = {"group": group, "pads": [1, 0, 1, 1], "strides": [2, 1]}
    constants = {
        "sx": SCALE,
        "zx": levels(120),
        "w": w,
        "sw": np.abs(sample(6)) * 0.02 + 0.001,
        "zw": levels(*[0] * 6, dtype="i1"),
        "sy": np.float32(0.3),
        "zy": levels(110),
        "b": np.arange(6, dtype=np.int32) * 100,
    }
    layer = node("QLinearConv", "x sx zx w sw zw sy zy b", "y", **more)
    check(graph_of([layer], {"x": U8}, constants), {"x": U8})
    layer = node("ConvInteger", "x w zx zw", "y", **more)
    u8 = {"w": w.view(np.uint8), "zx": levels(120), "zw": levels(5)}
    check(graph_of([layer], {"x": U8}, u8), {"x": U8})


def test_levels_of_other_widths_are_refused(device):
    constants = {"s": SCALE, "z": np.array(3, np.int32)}
    layer = node("QuantizeLinear", "x s z", "y")
    model = graph_of([layer], {"x": X}, constants, opset=21)
    with pytest.raises(errors.ModelError, match="8 or 16 bits"):
        computed(read_graph(model), {"x": X}, {"y": X})


def test_levels_saturate(device):
    x = np.array([-1e9, 1e9, 0.01, -0.01], np.float32)
    model = graph_of([node("QuantizeLinear", "x s z", "y")], {"x": x}, {"s": SCALE, "z": levels(9)})
    got = computed(read_graph(model), {"x": x}, want := expected(model, {"x": x}))
    np.testing.assert_array_equal(got["y"], want["y"])
