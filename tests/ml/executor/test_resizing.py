"""Planes, rows and blocks of another size, against ONNX Runtime or ONNX's own reference."""

from __future__ import annotations

import pytest
from ml.executor.graphs import check, check_reference, graph_of, node, sample

pytest.importorskip("onnxruntime")

PLANE = sample(1, 2, 5, 6)
SCALES = [1.0, 1.0, 1.6, 0.5]
SIZES = [1, 2, 3, 9]
NEAREST = ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]
TRANSFORMATIONS = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]


@pytest.mark.parametrize("how", NEAREST)
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_nearest(how, transformation, device):
    more = {"nearest_mode": how, "coordinate_transformation_mode": transformation}
    layer = node("Resize", "x - - n", "y", **more)
    check(graph_of([layer], {"x": PLANE}, {"n": SIZES}), {"x": PLANE})


CASES = {
    "cubic": ({"mode": "cubic"}, 13),
    "cubic_of_another_shape": ({"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1}, 13),
    "cubic_from_corners": (
        {"mode": "cubic", "coordinate_transformation_mode": "align_corners"},
        13,
    ),
    "linear": ({"mode": "linear"}, 13),
    "linear_excluded": ({"mode": "linear", "exclude_outside": 1}, 18),
    "smooth": ({"mode": "linear", "antialias": 1}, 18),
    "smooth_cubic": ({"mode": "cubic", "antialias": 1}, 18),
    "symmetric": ({"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"}, 19),
    "not_larger": ({"mode": "linear", "keep_aspect_ratio_policy": "not_larger"}, 18),
    "not_smaller": ({"keep_aspect_ratio_policy": "not_smaller"}, 18),
}


@pytest.mark.parametrize("case", CASES)
def test_resize_as_the_reference_has_it(case, device):
    more, opset = CASES[case]
    axes = {"axes": [3, 2]} if opset >= 18 else {}
    sizes = node("Resize", "x - - n", "y", **more, **axes)
    constants = {"n": [9, 3] if axes else SIZES}
    check_reference(graph_of([sizes], {"x": PLANE}, constants, opset=opset), {"x": PLANE})
    if "keep_aspect_ratio_policy" not in more:
        scales = node("Resize", "x - s", "y", **more, **axes)
        constants = {"s": [0.5, 1.6] if axes else SCALES}
        check_reference(graph_of([scales], {"x": PLANE}, constants, opset=opset), {"x": PLANE})


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize(
    "shape", [(3, 7), (2, 3, 5), (1, 2, 3, 4, 5)], ids=["row", "rows", "block"]
)
def test_resize_of_other_than_planes(shape, mode, device):
    x = sample(*shape)
    layer = node("Resize", "x - s", "y", mode=mode)
    scales = [1.0, 1.0, 2.0, 1.5, 0.5][: len(shape)] if len(shape) > 2 else [1.0, 1.7]
    check_reference(graph_of([layer], {"x": x}, {"s": scales}), {"x": x})


def test_a_part_is_resized_and_what_lies_beyond_it_is_given(device):
    more = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0}
    constants = {"r": [0.0, 0.0, 0.4, -0.2, 1.0, 1.0, 0.6, 1.3], "n": [1, 2, 4, 5]}
    layer = node("Resize", "x r - n", "y", mode="linear", **more)
    check(graph_of([layer], {"x": PLANE}, constants), {"x": PLANE})


@pytest.mark.parametrize("opset", [7, 9])
def test_upsample_of_both_kinds(opset, device):
    layer = node("Upsample", "x s" if opset > 7 else "x", "y", mode="linear")
    constants = {"s": [1.0, 1.0, 2.0, 3.0]} if opset > 7 else {}
    if opset == 7:
        layer = node("Upsample", "x", "y", mode="nearest", scales=[1.0, 1.0, 2.0, 3.0])
    check(graph_of([layer], {"x": PLANE}, constants, opset=opset), {"x": PLANE})
