"""Operators one by one, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from ml.executor.graphs import check, graph_of, node, sample

pytest.importorskip("onnxruntime")

X = sample(2, 6, 7, 9)

CONVOLUTIONS = {
    "pointwise": ((24, 6, 1, 1), {}),
    "pointwise_of_few_channels": ((3, 6, 1, 1), {}),
    "pointwise_with_stride": ((5, 6, 1, 1), {"strides": [2, 2]}),
    "square": ((17, 6, 3, 3), {"pads": [1, 1, 1, 1]}),
    "uneven_padding_and_stride": ((4, 6, 3, 2), {"pads": [0, 1, 2, 0], "strides": [2, 1]}),
    "dilated": ((4, 6, 3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    "groups": ((8, 3, 3, 3), {"group": 2}),
    "depthwise": ((6, 1, 3, 3), {"group": 6, "pads": [1, 1, 1, 1]}),
    "depthwise_with_stride": ((6, 1, 5, 3), {"group": 6, "strides": [2, 3], "pads": [2, 1, 2, 1]}),
    "depthwise_dilated": ((6, 1, 3, 3), {"group": 6, "dilations": [2, 2], "pads": [2, 2, 2, 2]}),
    "depthwise_of_more_channels": ((12, 1, 3, 3), {"group": 6}),
    "same_upper": ((4, 6, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "same_lower": ((4, 6, 2, 4), {"auto_pad": "SAME_LOWER"}),
    "valid": ((4, 6, 3, 3), {"auto_pad": "VALID"}),
    "whole_plane": ((4, 6, 7, 9), {}),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolution(case, device):
    shape, attributes = CONVOLUTIONS[case]
    constants = {"w": sample(*shape, seed=1), "b": sample(shape[0], seed=2)}
    check(graph_of([node("Conv", "x w b", "y", **attributes)], {"x": X}, constants), {"x": X})


def test_convolution_without_bias(device):
    check(graph_of([node("Conv", "x w", "y")], {"x": X}, {"w": sample(4, 6, 3, 3)}), {"x": X})


@pytest.mark.parametrize("case", ["pointwise", "square", "depthwise", "depthwise_with_stride"])
def test_convolution_of_planes_that_workgroups_share(case, device):
    shape, attributes = CONVOLUTIONS[case]
    x, constants = sample(1, 6, 33, 35), {"w": sample(*shape, seed=1)}
    check(graph_of([node("Conv", "x w", "y", **attributes)], {"x": x}, constants), {"x": x})


def test_convolution_of_single_places(device):
    x = sample(3, 8, 1, 1)
    constants = {"w": sample(5, 8, 1, 1, seed=1), "b": sample(5, seed=2)}
    check(graph_of([node("Conv", "x w b", "y")], {"x": x}, constants), {"x": x})


def test_convolution_of_the_zeros_beside_a_single_place(device):
    x, constants = sample(1, 8, 1, 1), {"w": sample(5, 8, 1, 1), "b": sample(5)}
    conv = node("Conv", "x w b", "y", pads=[1, 1, 0, 0], strides=[2, 2])
    check(graph_of([conv], {"x": x}, constants), {"x": x})


TRANSPOSED = {
    "doubling": ((6, 2, 2, 2), {"strides": [2, 2]}),
    "overlapping": ((6, 3, 3, 4), {"strides": [2, 3], "pads": [1, 0, 1, 2]}),
    "output_padding": ((6, 3, 3, 3), {"strides": [2, 2], "output_padding": [1, 1]}),
    "dilated": ((6, 3, 2, 3), {"dilations": [2, 2]}),
    "groups": ((6, 2, 3, 3), {"group": 3, "strides": [2, 1]}),
    "depthwise": ((6, 1, 3, 3), {"group": 6, "strides": [2, 2]}),
    "same_upper": ((6, 2, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    "output_shape": ((6, 2, 3, 3), {"strides": [2, 2], "output_shape": [14, 18]}),
}


@pytest.mark.parametrize("case", TRANSPOSED)
def test_transposed_convolution(case, device):
    shape, attributes = TRANSPOSED[case]
    made = shape[1] * attributes.get("group", 1)
    constants = {"w": sample(*shape, seed=1), "b": sample(made, seed=2)}
    model = graph_of([node("ConvTranspose", "x w b", "y", **attributes)], {"x": X}, constants)
    check(model, {"x": X})


POOLS = {
    "halves": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "padded": {"kernel_shape": [3, 3], "strides": [2, 1], "pads": [1, 0, 1, 2]},
    "rounded_up": {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1},
    "same_upper": {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    "whole_plane": {"kernel_shape": [7, 9]},
    "as_large_as_the_plane_but_beside_it": {
        "kernel_shape": [7, 9],
        "pads": [0, 1, 0, 0],
        "strides": [1, 2],
    },
}


@pytest.mark.parametrize("case", POOLS)
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_pool(op, case, device):
    check(graph_of([node(op, "x", "y", **POOLS[case])], {"x": X}), {"x": X})


def test_largest_of_windows_with_gaps(device):
    attributes = {"kernel_shape": [2, 3], "dilations": [3, 2], "pads": [1, 2, 1, 1]}
    check(graph_of([node("MaxPool", "x", "y", **attributes)], {"x": X - 5}), {"x": X - 5})


def test_largest_of_windows_with_gaps_and_as_many_taps_as_the_plane(device):
    x = sample(1, 2, 4, 4)
    attributes = {"kernel_shape": [4, 4], "dilations": [2, 2], "pads": [0, 0, 3, 3]}
    check(graph_of([node("MaxPool", "x", "y", **attributes)], {"x": x}), {"x": x})


@pytest.mark.parametrize(
    "padding",
    [
        {"pads": [1, 1, 1, 1]},
        {"pads": [1, 0, 1, 2], "ceil_mode": 1},
        {"auto_pad": "SAME_UPPER"},
        {"auto_pad": "SAME_LOWER"},
    ],
)
def test_mean_of_windows_with_their_padding(padding, device):
    attributes = {"kernel_shape": [3, 3], "strides": [2, 2], "count_include_pad": 1, **padding}
    check(graph_of([node("AveragePool", "x", "y", **attributes)], {"x": X}), {"x": X})


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
def test_pool_of_whole_planes(op, device):
    check(graph_of([node(op, "x", "y")], {"x": X}), {"x": X})


RESIZES = [
    ("linear", "half_pixel", {}),
    ("linear", "pytorch_half_pixel", {}),
    ("linear", "align_corners", {}),
    ("linear", "asymmetric", {}),
    ("nearest", "asymmetric", {"nearest_mode": "floor"}),
    ("nearest", "half_pixel", {"nearest_mode": "round_prefer_ceil"}),
    ("nearest", "half_pixel", {}),
    ("nearest", "align_corners", {"nearest_mode": "ceil"}),
]


@pytest.mark.parametrize(("mode", "coordinates", "attributes"), RESIZES)
def test_resize_to_sizes(mode, coordinates, attributes, device):
    given = {"mode": mode, "coordinate_transformation_mode": coordinates, **attributes}
    constants = {"none": np.zeros(0, np.float32), "sizes": [2, 6, 13, 5]}
    model = graph_of([node("Resize", "x none none sizes", "y", **given)], {"x": X}, constants)
    check(model, {"x": X})


def test_resize_by_scales(device):
    given = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    constants = {"scales": [1.0, 1.0, 2.5, 2.0]}
    check(graph_of([node("Resize", "x - scales", "y", **given)], {"x": X}, constants), {"x": X})


def test_resize_by_scales_of_the_axes_that_are_named(device):
    resize = node("Resize", "x - s", "y", mode="linear", axes=[-2, 3])
    check(graph_of([resize], {"x": X}, {"s": [2.0, 1.5]}, opset=18), {"x": X})


def test_resize_of_axes_that_are_not_the_last(device):
    given = {"mode": "linear", "coordinate_transformation_mode": "asymmetric"}
    constants = {"scales": [1.0, 2.0, 3.0, 1.0]}
    check(graph_of([node("Resize", "x - scales", "y", **given)], {"x": X}, constants), {"x": X})


MOVED = {
    "reshape": ("Reshape", {"s": [0, -1, 9]}, {}),
    "flatten": ("Flatten", {}, {"axis": 2}),
    "transpose": ("Transpose", {}, {"perm": [0, 2, 3, 1]}),
    "slice": ("Slice", {"a": [1, -4], "b": [2**40, 7], "c": [1, 3], "d": [2, 1]}, {}),
    "slice_backwards": ("Slice", {"a": [-1], "b": [-(2**40)], "c": [3], "d": [-2]}, {}),
    "pad": ("Pad", {"p": [0, 1, 2, 0, 0, 3, 0, 1]}, {}),
    "pad_with_a_value": ("Pad", {"p": [0, 0, 1, 2, 0, 0, 3, 1], "v": np.float32(-3.5)}, {}),
    "pad_less_than_nothing": ("Pad", {"p": [0, -1, 0, 0, 0, 0, -2, 1]}, {}),
    "pad_by_the_edge": ("Pad", {"p": [0, 0, 2, 1, 0, 0, 1, 3]}, {"mode": "edge"}),
    "pad_by_reflection": ("Pad", {"p": [0, 0, 2, 1, 0, 0, 1, 3]}, {"mode": "reflect"}),
    "expand": ("Expand", {"s": [3, 2, 6, 7, 9]}, {}),
    "tile": ("Tile", {"s": [1, 2, 1, 3]}, {}),
    "gather": ("Gather", {"i": np.array([[0, -1], [2, 2]])}, {"axis": 2}),
    "gather_one": ("Gather", {"i": np.array(3)}, {"axis": 1}),
    "gather_places": ("GatherND", {"i": np.array([[0, 2], [-1, 5], [1, 0]])}, {}),
    "unsqueeze": ("Unsqueeze", {"a": [0, -1]}, {}),
    "softmax": ("Softmax", {}, {"axis": 1}),
    "reduce_mean": ("ReduceMean", {}, {"axes": [2, 3]}),
    "reduce_mean_without_axes": ("ReduceMean", {}, {"keepdims": 0}),
    "reduce_sum": ("ReduceSum", {"a": [-1]}, {"keepdims": 0}),
    "reduce_max": ("ReduceMax", {}, {"axes": [1], "keepdims": 0}),
    "argmax": ("ArgMax", {}, {"axis": 1, "keepdims": 0}),
    "argmax_kept": ("ArgMax", {}, {"axis": -1}),
}


@pytest.mark.parametrize("case", MOVED)
def test_elements_moved_and_folded(case, device):
    op, constants, attributes = MOVED[case]
    model = graph_of(
        [node(op, " ".join(["x", *constants]), "y", **attributes)], {"x": X}, constants
    )
    check(model, {"x": X})


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space_and_back(mode, device):
    x = sample(2, 12, 3, 5)
    check(graph_of([node("DepthToSpace", "x", "y", blocksize=2, mode=mode)], {"x": x}), {"x": x})
    x = sample(2, 3, 4, 6)
    check(graph_of([node("SpaceToDepth", "x", "y", blocksize=2)], {"x": x}), {"x": x})


def test_split_gives_every_part(device):
    nodes = [node("Split", "x s", "a b c", axis=1)]
    check(graph_of(nodes, {"x": X}, {"s": [1, 3, 2]}, outputs="a b c"), {"x": X})


def test_concat_of_inputs_and_constants(device):
    constants = {"k": sample(2, 3, 7, 9, seed=4)}
    check(graph_of([node("Concat", "x k x", "y", axis=-3)], {"x": X}, constants), {"x": X})


def test_squeeze_of_all_and_of_some(device):
    x = sample(1, 4, 1, 3)
    check(graph_of([node("Squeeze", "x", "y")], {"x": x}), {"x": x})
    check(graph_of([node("Squeeze", "x a", "y")], {"x": x}, {"a": [-2]}), {"x": x})


def test_gemm_adds_a_scaled_row(device):
    x = sample(3, 20)
    constants = {"b": sample(10, 20, seed=1), "c": sample(10, seed=2)}
    gemm = node("Gemm", "x b c", "y", transB=1, alpha=0.5, beta=2.0)
    check(graph_of([gemm], {"x": x}, constants), {"x": x})


@pytest.mark.parametrize("shapes", [((5, 6), (6, 7)), ((2, 5, 6), (6, 7)), ((2, 5, 6), (2, 6, 7))])
def test_product_of_matrices(shapes, device):
    a, b = sample(*shapes[0]), sample(*shapes[1], seed=1)
    check(graph_of([node("MatMul", "a b", "y")], {"a": a, "b": b}), {"a": a, "b": b})


def test_softmax_of_older_files_goes_over_all_axes_from_one_on(device):
    check(graph_of([node("Softmax", "x", "y", axis=2)], {"x": X}, opset=11), {"x": X})


def test_attributes_of_older_files_are_read(device):
    nodes = [
        node("Slice", "x", "a", starts=[1], ends=[5], axes=[1]),
        node("Clip", "a", "b", min=-0.5, max=0.25),
        node("Unsqueeze", "b", "c", axes=[0]),
        node("Squeeze", "c", "d", axes=[0]),
        node("Pad", "d", "y", pads=[0, 0, 1, 0, 0, 0, 0, 2], value=1.5),
    ]
    check(graph_of(nodes, {"x": X}, opset=9), {"x": X})
