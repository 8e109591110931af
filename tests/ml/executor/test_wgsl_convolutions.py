"""Convolutions of every shape that WebGPU has a way of its own for, subgroups known or not."""

from __future__ import annotations

import numpy as np
import pytest
from ml.executor.graphs import check, graph_of, node, sample

from dala.devices import find_device
from dala.emit.wgsl.products import HARDWARE


@pytest.fixture(params=["own", "hardware"])
def adapter(request, webgpu, monkeypatch):
    """The WebGPU device as it is, and as if it were hardware, whose subgroups nobody knows."""
    device = find_device(webgpu)
    if request.param == "hardware":
        monkeypatch.setattr(device, "lanes", 0)
        monkeypatch.setattr(device, "products", HARDWARE)
    return device


DEPTHWISE = {
    # height, width, taps, step, apart, pads
    "fours": (9, 16, 3, 1, 1, (1, 1, 1, 1)),
    "fours in several parts": (5, 80, 3, 1, 1, (1, 1, 1, 1)),
    "every second of fours": (10, 40, 3, 2, 1, (0, 0, 1, 1)),
    "single columns": (6, 30, 3, 1, 1, (1, 1, 1, 1)),
    "neighbors of neighbors": (6, 30, 5, 1, 1, (2, 2, 2, 2)),
    "apart": (7, 33, 3, 1, 2, (2, 2, 2, 2)),
    "far apart": (9, 21, 3, 1, 4, (4, 4, 4, 4)),
    "nothing beside": (9, 23, 3, 1, 1, (0, 0, 0, 0)),
    "wider than it was": (4, 7, 3, 1, 1, (3, 3, 3, 3)),
    "several runs": (70, 4, 3, 1, 1, (1, 1, 1, 1)),
}


@pytest.mark.parametrize("case", DEPTHWISE)
def test_depthwise(adapter, case):
    height, width, taps, step, apart, pads = DEPTHWISE[case]
    x, w, b = sample(2, 3, height, width), sample(3, 1, taps, taps, seed=1), sample(3, seed=2)
    k = sample(1, 3, 1, 1, seed=3)
    given = {"strides": [step] * 2, "dilations": [apart] * 2, "pads": list(pads), "group": 3}
    nodes = [node("Conv", "x w b", "c", **given), node("Mul", "c k", "m"), node("Relu", "m", "y")]
    check(graph_of(nodes, {"x": x}, {"w": w, "b": b, "k": k}), {"x": x})


@pytest.mark.parametrize("plane", [(4, 8), (7, 7)])
@pytest.mark.parametrize(("channels", "made"), [(8, 40), (9, 18)])
def test_a_single_tap_is_a_product_with_its_epilogue(adapter, plane, channels, made):
    x, w, b = sample(2, channels, *plane), sample(made, channels, 1, 1, seed=1), sample(made)
    other, k = sample(2, made, *plane, seed=3), sample(made, 1, 1, seed=4)
    nodes = [
        node("Conv", "x w b", "c"),
        node("Add", "c o", "a"),
        node("Mul", "a k", "m"),
        node("Clip", "m low high", "y"),
    ]
    constants = {"w": w, "b": b, "k": k, "low": np.float32(-3), "high": np.float32(6)}
    check(graph_of(nodes, {"x": x, "o": other}, constants), {"x": x, "o": other})


@pytest.mark.parametrize(("channels", "made", "groups"), [(3, 32, 1), (4, 44, 2), (6, 5, 1)])
@pytest.mark.parametrize("plane", [(8, 8), (7, 9)])
def test_several_taps_of_several_channels(adapter, channels, made, groups, plane):
    x, b = sample(1, channels, *plane), sample(made, seed=2)
    w = sample(made, channels // groups, 3, 3, seed=1)
    other = sample(1, made, *plane, seed=3)
    conv = node("Conv", "x w b", "c", group=groups, pads=[1, 1, 1, 1])
    nodes = [conv, node("Add", "c o", "a"), node("Relu", "a", "y")]
    check(graph_of(nodes, {"x": x, "o": other}, {"w": w, "b": b}), {"x": x, "o": other})
