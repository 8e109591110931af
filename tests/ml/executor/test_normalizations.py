"""Normalizations and losses, against ONNX Runtime or ONNX's own reference."""

from __future__ import annotations

import numpy as np
import pytest
from ml.executor.graphs import (
    check,
    check_reference,
    computed,
    graph_of,
    node,
    read_graph,
    sample,
)

pytest.importorskip("onnxruntime")

X = sample(2, 6, 3, 5)
C = {"s": sample(6, seed=1), "b": sample(6, seed=2)}
LAST = {"s": sample(5, seed=1), "b": sample(5, seed=2)}


LAYERS = {
    "layer": ("LayerNormalization", LAST, {"epsilon": 1e-3}, 17),
    "layer_without_bias": ("LayerNormalization", {"s": LAST["s"]}, {}, 17),
    "layer_of_axes": (
        "LayerNormalization",
        {"s": sample(3, 5), "b": sample(3, 5, seed=1)},
        {"axis": 2},
        17,
    ),
    "instance": ("InstanceNormalization", C, {"epsilon": 1e-2}, 17),
    "group_by_group": (
        "GroupNormalization",
        {"s": C["s"][:3], "b": C["b"][:3]},
        {"num_groups": 3},
        18,
    ),
    "group_by_channel": ("GroupNormalization", C, {"num_groups": 2}, 21),
    "norm_of_magnitudes": ("LpNormalization", {}, {"p": 1, "axis": 1}, 17),
    "norm_of_squares": ("LpNormalization", {}, {}, 17),
    "mean_and_variance": ("MeanVarianceNormalization", {}, {}, 13),
    "neighbors": ("LRN", {}, {"size": 3, "alpha": 0.5, "bias": 2.0}, 13),
    "softmax_of_old": ("Softmax", {}, {"axis": 2}, 11),
}


@pytest.mark.parametrize("case", LAYERS)
def test_normalization(case, device):
    op, others, attributes, opset = LAYERS[case]
    layer = node(op, " ".join(["x", *others]), "y", **attributes)
    check(graph_of([layer], {"x": X}, others, opset=opset), {"x": X})
    given = {"x": X, **others}
    check(graph_of([layer], given, opset=opset), given)


def test_layer_normalization_gives_its_mean_and_deviation(device):
    layer = node("LayerNormalization", "x s b", "y m d", axis=-1)
    check(graph_of([layer], {"x": X}, LAST, outputs="y m d"), {"x": X})


def test_an_even_number_of_neighbors_has_one_more_behind(device):
    # By the formula: ONNX's reference forgets channels, and ONNX Runtime takes odd sizes only.
    model = graph_of([node("LRN", "x", "y", size=4, alpha=0.5)], {"x": X})
    squares = np.pad(X * X, ((0, 0), (1, 2), (0, 0), (0, 0)))
    near = sum(squares[:, k : k + 6] for k in range(4))
    want = X / (1 + 0.5 / 4 * near) ** 0.75
    got = computed(read_graph(model), {"x": X}, {"y": want})["y"]
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("axis", [-1, 1])
def test_root_mean_square(axis, device):
    scale = sample(*X.shape[axis:])
    layer = node("RMSNormalization", "x s", "y", axis=axis)
    check_reference(graph_of([layer], {"x": X, "s": scale}, opset=23), {"x": X, "s": scale})


def test_batch_normalization_by_numbers_that_are_computed(device):
    given = {"x": X, **C, "m": sample(6, seed=3), "v": np.abs(sample(6, seed=4))}
    nodes = [node("BatchNormalization", "x s b m v", "n"), node("Relu", "n", "y")]
    check(graph_of(nodes, given), given)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("ignored", [None, 2])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("op", ["SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"])
def test_loss(op, weighted, ignored, reduction, device):
    places = np.random.default_rng(3).integers(0, 6, (2, 3, 5))
    constants = {"t": places, **({"w": np.abs(sample(6))} if weighted else {})}
    more = {"reduction": reduction} | ({} if ignored is None else {"ignore_index": ignored})
    layer = node(op, "x t w" if weighted else "x t", "y", **more)
    check(graph_of([layer], {"x": X}, constants, opset=13), {"x": X})


def test_cross_entropy_gives_its_logarithms(device):
    places = np.random.default_rng(3).integers(0, 6, (2, 3, 5))
    layer = node("SoftmaxCrossEntropyLoss", "x t", "y l")
    check(graph_of([layer], {"x": X}, {"t": places}, outputs="y l", opset=13), {"x": X})
