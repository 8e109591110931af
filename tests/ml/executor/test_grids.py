"""Planes sampled at places of a grid and under boxes, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from ml.executor.graphs import check, check_reference, graph_of, node, sample

pytest.importorskip("onnxruntime")

X, BLOCK = sample(2, 3, 5, 4), sample(1, 2, 3, 4, 5)
GRID = np.clip(sample(2, 3, 6, 2, seed=1), -2.4, 2.4)


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("border", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_grid_of_places(mode, border, corners, device):
    layer = node("GridSample", "x g", "y", mode=mode, padding_mode=border, align_corners=corners)
    check(graph_of([layer], {"x": X, "g": GRID}, opset=20), {"x": X, "g": GRID})


def test_grid_of_places_in_a_block(device):
    given = {"x": BLOCK, "g": np.clip(sample(1, 2, 3, 2, 3), -1.5, 1.5)}
    check(graph_of([node("GridSample", "x g", "y")], given, opset=20), given)


def test_grid_by_its_older_names(device):
    layer = node("GridSample", "x g", "y", mode="bicubic")
    check(graph_of([layer], {"x": X, "g": GRID}, opset=16), {"x": X, "g": GRID})


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("size", [[2, 3, 4, 5], [2, 1, 3, 2, 4]], ids=["plane", "block"])
def test_affine_grid(size, corners, device):
    axes = len(size) - 2
    given = {"t": sample(2, axes, axes + 1)}
    layer = node("AffineGrid", "t n", "y", align_corners=corners)
    check_reference(graph_of([layer], given, {"n": size}, opset=20), given)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize(("half", "ratio"), [("half_pixel", 2), ("output_half_pixel", 0)])
def test_planes_under_boxes(half, ratio, mode, device):
    x = sample(2, 3, 9, 8)
    boxes = np.array([[1, 2, 12, 9], [0, 0, 3, 4], [5, 1, 30, 40]], np.float32)
    layer = node(
        "RoiAlign",
        "x b n",
        "y",
        mode=mode,
        output_height=2,
        output_width=3,
        sampling_ratio=ratio,
        spatial_scale=0.5,
        coordinate_transformation_mode=half,
    )
    model = graph_of([layer], {"x": x, "b": boxes}, {"n": [1, 0, 1]}, opset=16)
    check(model, {"x": x, "b": boxes})


@pytest.mark.parametrize(("axes", "sizes"), [([2, 3], [8, 2]), ([1, -2], [6, 4])])
def test_axes_are_cut_and_filled_at_both_ends(axes, sizes, device):
    layer = node("CenterCropPad", "x n", "y", axes=axes)
    check_reference(graph_of([layer], {"x": X}, {"n": sizes}, opset=18), {"x": X})
