"""Values with channels last: what keeps the layout, and that it never shows."""

from __future__ import annotations

import numpy as np
import pytest
from ml.executor.graphs import check, graph_of, node, sample
from ml.executor.test_epilogues import stages_of

from dala.gpu import compute

X = sample(1, 3, 9, 12)
W = sample(6, 3, 3, 3, seed=1)
CONV = node("Conv", "x w", "c", pads=[1, 1, 1, 1])
NUMBERS = {
    "w": W,
    "each": sample(1, 6, 1, 1, seed=2),
    "pads": np.array([0, 1, 0, 2, 0, 0, 1, 0], np.int64),
    "filled": np.float32(0.5),
    "sizes": np.array([1, 6, 18, 20], np.int64),
    "starts": np.array([1, 2], np.int64),
    "ends": np.array([5, 9], np.int64),
    "axes": np.array([1, 2], np.int64),
    "parts": np.array([2, 4], np.int64),
    "deep": sample(6, 1, 5, 5, seed=3),
    "m": sample(12, 7, seed=4),
    "v": sample(7, seed=5),
}
STEPS = {
    "pools": [node("MaxPool", "c", "y", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])],
    "means": [
        node(
            *("AveragePool", "c", "y"),
            kernel_shape=[3, 3],
            pads=[1, 1, 0, 0],
            count_include_pad=1,
        )
    ],
    "planes": [node("GlobalAveragePool", "c", "g"), node("Mul", "c g", "y")],
    "largest": [node("GlobalMaxPool", "c", "g"), node("Add", "c g", "y")],
    "joins": [node("Relu", "c", "r"), node("Concat", "c r c", "y", axis=1)],
    "joins with planes": [node("Concat", "c x", "y", axis=1)],
    "joins of rows": [node("Concat", "c c", "y", axis=2)],
    "pads": [node("Pad", "c pads", "y")],
    "fills": [node("Pad", "c pads filled", "y")],
    "linear": [
        node(
            "Resize", "c - - sizes", "y", mode="linear", coordinate_transformation_mode="half_pixel"
        )
    ],
    "nearest": [node("Resize", "c - - sizes", "y", mode="nearest")],
    "slices": [node("Slice", "c starts ends axes", "y")],
    "splits": [node("Split", "c parts", "a b", axis=1), node("Concat", "b a", "y", axis=1)],
    "scales": [node("Mul", "c each", "s"), node("Sigmoid", "s", "y")],
    "depths": [node("Conv", "c deep", "d", group=6, pads=[2, 2, 2, 2]), node("Add", "d c", "y")],
    "turns": [node("Transpose", "c", "y", perm=[0, 2, 3, 1])],
    "turns back": [
        node("Transpose", "c", "t", perm=[0, 2, 3, 1]),
        node("Transpose", "t", "u", perm=[0, 3, 1, 2]),
        node("Conv", "u deep", "y", group=6),
    ],
    "reshapes": [node("Flatten", "c", "y")],
    "products": [node("MatMul", "c m", "p"), node("Add", "p v", "q"), node("Relu", "q", "y")],
}


@pytest.mark.parametrize("name", STEPS)
def test_what_follows_a_convolution(name, device):
    check(graph_of([CONV, *STEPS[name]], {"x": X}, NUMBERS), {"x": X})


@pytest.mark.parametrize("name", ["pools", "joins", "linear", "pads", "depths", "scales", "splits"])
def test_channels_stay_last_between_the_input_and_the_output(name):
    with compute.device("cpu"):
        stages = stages_of(graph_of([CONV, *STEPS[name]], {"x": X}, NUMBERS), X)
    assert stages.count("transpose") == 2
    assert stages[0] == stages[-1] == "transpose"


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (3, 4), (5, 2)])
@pytest.mark.parametrize("steps", [(1, 1), (2, 2), (3, 1), (4, 4)])
def test_transposed_convolutions_in_phases(size, steps, device):
    pads = [1, 0, 0, 1] if min(size) > 1 else [0, 0, 0, 0]
    nodes = [
        node("ConvTranspose", "x w b", "c", strides=list(steps), pads=pads),
        node("Relu", "c", "y"),
    ]
    constants = {"w": sample(3, 5, *size, seed=6), "b": sample(5, seed=7)}
    check(graph_of(nodes, {"x": X}, constants), {"x": X})


def test_products_with_constants_of_several_rows_have_their_epilogue(device):
    x = sample(2, 3, 20)
    nodes = [node("MatMul", "x w", "p"), node("Add", "p b", "a"), node("Add", "a r", "y")]
    constants = {
        "w": sample(20, 70, seed=1),
        "b": sample(70, seed=2),
        "r": sample(2, 3, 70, seed=3),
    }
    check(graph_of(nodes, {"x": x}, constants), {"x": x})
