"""What models found, drawn on surfaces: as results draw themselves, at what scale, and refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dala import gpu
from dala.errors import ArgumentError
from dala.gpu import compute
from dala.ml.results.results import (
    Classification,
    Detection,
    Keypoint,
    Pose,
    Results,
    Segmentation,
)

W, H = 160, 120
POINTS = {
    "left_shoulder": Keypoint(90.0, 40.0, 0.9),
    "right_shoulder": Keypoint(60.0, 42.0, 0.8),
    "left_elbow": Keypoint(110.0, 70.0, 0.7),
    "right_elbow": Keypoint(40.0, 75.0, 0.1),
}


def soft_mask(width, height):
    return np.linspace(0, 1, width * height, dtype=np.float32).reshape(height, width)


def found():
    yield Detection((30.0, 30.0, 100.0, 90.0), "cat", 0.87, 15)
    yield Detection((50.0, 35.0, 90.0, 80.0), "face", 0.9, 0, {"nose": Keypoint(70.0, 60.0, 0.9)})
    yield Pose(POINTS, 0.8)
    yield Segmentation(soft_mask(W // 4, H // 4), ("background", "person"))
    classes = (np.arange(W * H // 4).reshape(H // 2, W // 2) // 99 % 3).astype(np.uint8)
    yield Segmentation(classes, ("background", "cat", "dog"))
    yield Classification(281, "tabby", 0.75)


EACH = [pytest.param(item, id=f"{type(item).__name__} {n}") for n, item in enumerate(found())]


def paper():
    levels = np.random.default_rng(3).integers(0, 256, (H, W, 4), dtype=np.uint8)
    levels[..., 3] = 255
    return levels


def surface_with_paper():
    surface = gpu.create_surface(W, H, kind="offscreen")
    gpu.set_pixels(surface, paper())
    return surface


@pytest.mark.parametrize("item", EACH)
def test_a_result_looks_as_it_draws_itself(device, item):
    surface = surface_with_paper()
    gpu.annotate(surface, item)
    want = item.draw(paper())
    assert (want != paper()).any()
    np.testing.assert_array_equal(gpu.get_pixels(surface), want)


def test_results_of_all_kinds_are_drawn_in_one_call(device):
    surface, results = surface_with_paper(), Results(found())
    gpu.annotate(surface, results)
    np.testing.assert_array_equal(gpu.get_pixels(surface), results.draw(paper()))


def test_no_results_change_nothing(device):
    surface = surface_with_paper()
    gpu.annotate(surface, [])
    np.testing.assert_array_equal(gpu.get_pixels(surface), paper())


SMALLER = [
    Detection((15.0, 10.0, 50.0, 30.0), "cat", 0.87, 15, {"nose": Keypoint(35.0, 20.0, 0.9)}),
    Pose({name: Keypoint(p.x / 2, p.y / 3, p.score) for name, p in POINTS.items()}, 0.8),
]
LARGER = [
    Detection((30.0, 30.0, 100.0, 90.0), "cat", 0.87, 15, {"nose": Keypoint(70.0, 60.0, 0.9)}),
    Pose(POINTS, 0.8),
]


def test_results_of_a_smaller_image_are_stretched_over_the_surface(device):
    surface = surface_with_paper()
    gpu.annotate(surface, SMALLER, image_size=(W / 2, H / 3))
    want = Results(LARGER).draw(paper()).astype(int)
    assert np.abs(gpu.get_pixels(surface) - want).max() <= 1


def test_results_lie_over_what_was_drawn_before_and_under_what_comes_after(device):
    surface = surface_with_paper()
    gpu.fill_rect(surface, 0, 0, W, H, "#808080")
    gpu.annotate(surface, next(found()))
    gpu.fill_rect(surface, 0, 0, W, 60, "#ff0000")
    got = gpu.get_pixels(surface)
    gray = np.full((H, W, 4), (128, 128, 128, 255), np.uint8)
    np.testing.assert_array_equal(got[60:], next(found()).draw(gray)[60:])
    assert (got[:60] == (255, 0, 0, 255)).all()


@pytest.mark.parametrize("item", EACH)
def test_results_are_clipped(device, item):
    surface = surface_with_paper()
    gpu.set_clip(surface, 0, 0, 70, 50)
    gpu.annotate(surface, item)
    want = paper()
    want[:50, :70] = item.draw(paper())[:50, :70]
    assert (want != paper()).any()
    np.testing.assert_array_equal(gpu.get_pixels(surface), want)


def test_a_mask_is_taken_as_it_is_when_it_is_given(device):
    surface, mask = surface_with_paper(), soft_mask(W, H)
    item = Segmentation(mask, ("background", "person"))
    want = item.draw(paper())
    gpu.annotate(surface, item)
    mask[:] = 0
    np.testing.assert_array_equal(gpu.get_pixels(surface), want)


def test_results_may_come_one_by_one(device):
    surface = surface_with_paper()
    gpu.annotate(surface, (item for item in found()))
    np.testing.assert_array_equal(gpu.get_pixels(surface), Results(found()).draw(paper()))


@pytest.mark.parametrize(
    ("results", "named"),
    [
        ([next(found()), {"box": (1, 2, 3, 4)}], "dict"),
        ("cat", "str"),
        (None, "NoneType"),
        (8, "int"),
        ([[next(found())]], "list"),
        (np.zeros(2, np.float32), "float32"),
    ],
)
def test_what_is_no_result_is_refused_and_nothing_is_drawn(results, named):
    surface = surface_with_paper()
    with pytest.raises(ArgumentError, match=f"annotate: a result is a .*, not {named}:"):
        gpu.annotate(surface, results)
    np.testing.assert_array_equal(gpu.get_pixels(surface), paper())


@pytest.mark.parametrize("size", [0, "big", (1,), (0, 5), (5, -1), (math.nan, 4), ("4", 4)])
def test_image_sizes_that_are_none_are_refused(size):
    surface = surface_with_paper()
    with pytest.raises(ArgumentError, match="annotate: image_size is "):
        gpu.annotate(surface, [], image_size=size)


BOX, POINT = (1.0, 2.0, 30.0, 40.0), {"nose": Keypoint(3.0, math.nan, 0.9)}


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (Detection((math.nan, *BOX[1:]), "cat", 0.5), "the box of 'cat' is a finite number"),
        (Detection((*BOX[:3], math.inf), "cat", 0.5), "the box of 'cat' is a finite number"),
        (Detection((9.0, 9.0, 1.0, 10.0), "cat", 0.5), "ends before it begins"),
        (Detection(BOX, "cat", 0.5, 0, POINT), "nose is a finite number, not nan"),
        (Pose(POINT, 0.5), "nose is a finite number, not nan"),
    ],
)
def test_places_that_are_none_are_refused_and_nothing_is_drawn(broken, says):
    surface = surface_with_paper()
    with pytest.raises(ArgumentError, match=f"^annotate: .*{says}"):
        gpu.annotate(surface, [next(found()), broken])
    np.testing.assert_array_equal(gpu.get_pixels(surface), paper())


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (Detection((0.0, 0.0, 1e9, 9.0), "cat", 0.5), "width is a finite number"),
        (Detection(BOX, "\u732b", 0.5), "has no \u732b"),
    ],
)
def test_where_one_result_cannot_be_drawn_none_is(broken, says):
    surface = surface_with_paper()
    with pytest.raises(ArgumentError, match=says):
        gpu.annotate(surface, [next(found()), broken])
    np.testing.assert_array_equal(gpu.get_pixels(surface), paper())


def test_results_are_drawn_on_the_surfaces_device_whatever_the_current_one_is(device):
    surface = surface_with_paper()
    with compute.device("cpu"):
        gpu.annotate(surface, Pose(POINTS, 0.8))
        got = gpu.get_pixels(surface)
    np.testing.assert_array_equal(got, Pose(POINTS, 0.8).draw(paper()))
