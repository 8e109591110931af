"""Results as records, as plain values, and drawn over images."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from dala.base.record import changed
from dala.gpu import compute
from dala.ml.results.results import (
    Classification,
    Detection,
    Keypoint,
    Mask,
    Pose,
    Results,
    Segmentation,
)

FACE = Detection((10.0, 12.0, 40.0, 44.0), "face", 0.75, 0, {"nose": Keypoint(25.0, 30.0, 0.75)})
POSE = Pose(
    {
        "nose": Keypoint(30.0, 10.0, 0.9),
        "left_shoulder": Keypoint(20.0, 30.0, 0.8),
        "right_shoulder": Keypoint(50.0, 30.0, 0.8),
        "left_hip": Keypoint(20.0, 60.0, 0.1),
    },
    0.6,
)
CLASS = Classification(285, "Egyptian cat", 0.5)


def gray(height=80, width=90):
    return np.full((height, width, 3), 128, np.uint8)


def test_results_with_equal_fields_are_equal():
    assert Keypoint(1.0, 2.0, 0.5) == Keypoint(1.0, 2.0, 0.5)
    assert Classification(285, "Egyptian cat", 0.5) == CLASS
    assert Detection((0, 0, 1, 1), "cup", 0.5) == Detection((0, 0, 1, 1), "cup", 0.5, 0, {})
    assert Results([CLASS]) == [CLASS]


def test_results_become_plain_values_that_json_can_hold():
    everything = Results([CLASS, FACE, POSE])
    assert json.loads(json.dumps(everything.to_dict())) == [
        {"index": 285, "label": "Egyptian cat", "score": 0.5},
        {
            "box": [10.0, 12.0, 40.0, 44.0],
            "label": "face",
            "score": 0.75,
            "index": 0,
            "keypoints": {"nose": {"x": 25.0, "y": 30.0, "score": 0.75}},
        },
        {
            "keypoints": {name: vars(point) for name, point in POSE.keypoints.items()},
            "score": 0.6,
        },
    ]


def unrolled(plain):
    values = [value for value, count in plain["runs"] for _ in range(count)]
    return np.reshape(values, plain["shape"])


def test_a_mask_becomes_runs_from_which_it_can_be_made_again():
    mask = np.random.default_rng(1).integers(0, 3, (7, 5)).astype(np.uint8)
    found = Segmentation(mask, ("background", "cat", "dog"))
    plain = json.loads(json.dumps(found.to_dict()))
    np.testing.assert_array_equal(unrolled(plain), mask)
    assert plain["labels"] == ["background", "cat", "dog"]
    assert not plain["soft"]


@pytest.mark.parametrize("label", [0, 1, 255])
def test_a_mask_of_one_label_is_one_run(label):
    flat = Segmentation(np.full((30, 40), label, np.uint8), ("any",) * 256)
    assert flat.to_dict()["runs"] == [[label, 1200]]


def test_a_soft_mask_becomes_runs_in_steps_of_a_level():
    mask = np.random.default_rng(1).random((7, 5), np.float32)
    plain = json.loads(json.dumps(Segmentation(mask, ("background", "person")).to_dict()))
    assert plain["soft"]
    np.testing.assert_allclose(unrolled(plain), mask, atol=0.5 / 255 + 1e-6)


def test_a_mask_of_nothing_has_no_runs():
    empty = Segmentation(np.zeros((0, 5), np.uint8), ("background",))
    assert empty.to_dict()["runs"] == []


def test_shares_say_how_much_of_the_image_each_label_has():
    mask = np.array([[0, 2, 2, 2]], np.uint8)
    found = Segmentation(mask, ("background", "cat", "dog"))
    assert found.shares() == {"dog": 0.75, "background": 0.25}
    soft = Segmentation(np.array([[0.2, 0.5, 0.9, 0.1]], np.float32), ("background", "person"))
    assert soft.classes.tolist() == [[0, 1, 1, 0]]
    assert soft.shares() == {"background": 0.5, "person": 0.5}


# -- drawing ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("found", [FACE, POSE, CLASS, Results([FACE, POSE])])
def test_a_result_is_drawn_over_a_copy_of_the_image(found):
    image = gray()
    drawn = found.draw(image)
    assert drawn.shape == image.shape
    assert drawn.dtype == np.uint8
    assert (drawn != image).any()
    assert (image == 128).all()


@pytest.mark.usefixtures("device")
def test_a_box_is_drawn_along_its_edges():
    drawn = FACE.draw(gray())
    changed = (drawn != 128).any(2)
    assert changed[30, 9:11].all()
    assert changed[44, 12:38].all()
    # Neither the inside, but for the nose, nor anything below the box is touched.
    assert not changed[36:42, 13:38].any()
    assert not changed[48:].any()


@pytest.mark.usefixtures("device")
def test_a_name_stays_within_the_image():
    image = np.full((100, 200, 3), 128, np.uint8)
    at_the_edge = Detection((190, 50, 199, 90), "a long name", 0.5)
    in_the_middle = Detection((60, 50, 69, 90), "a long name", 0.5)
    names = [(item.draw(image) != 128).any(2)[:48].sum() for item in (at_the_edge, in_the_middle)]
    assert names[0] == names[1] > 0


def test_points_that_are_unsure_are_not_drawn():
    moved = (POSE.draw(gray()) != 128).any(2)
    assert moved[30, 20:50].all()
    assert not moved[56:64, 16:24].any()


@pytest.mark.usefixtures("device")
def test_classes_of_a_mask_are_coloured_and_the_background_is_left():
    mask = np.zeros((80, 90), np.uint8)
    mask[20:40, 30:50], mask[60:, :] = 1, 2
    drawn = Segmentation(mask, ("background", "cat", "dog")).draw(gray())
    np.testing.assert_array_equal((drawn != 128).any(2), mask > 0)
    assert (drawn[30, 40] != drawn[70, 40]).any()


@pytest.mark.usefixtures("device")
def test_a_soft_mask_colours_as_far_as_it_says():
    mask = np.zeros((80, 90), np.float32)
    mask[:, 30:60], mask[:, 60:] = 0.5, 1.0
    drawn = Segmentation(mask, ("background", "person")).draw(gray()).astype(int)
    away = np.abs(drawn - 128).sum(2)
    assert (away[:, :30] == 0).all()
    assert (away[:, 31:59] > 0).all()
    assert (away[:, 61:].min(1) > away[:, 31:59].max(1)).all()


def test_an_image_comes_back_as_what_it_was(device):
    from PIL import Image

    pillow = FACE.draw(Image.fromarray(gray()))
    assert isinstance(pillow, Image.Image)
    buffer = FACE.draw(compute.from_numpy(gray()))
    assert isinstance(buffer, compute.Buffer)
    assert buffer.device.startswith(device)
    floats = FACE.draw(np.full((80, 90, 4), 0.5, np.float32))
    assert floats.dtype == np.float32
    assert floats.shape == (80, 90, 4)
    np.testing.assert_array_equal(np.asarray(pillow), compute.read(buffer))


def test_no_results_leave_the_image_as_it_is():
    np.testing.assert_array_equal(Results([]).draw(gray()), gray())


def test_a_gray_picture_is_drawn_on_in_color(device):
    flat = np.full((80, 90), 128, np.uint8)
    drawn = FACE.draw(flat)
    np.testing.assert_array_equal(drawn, FACE.draw(np.stack([flat] * 3, 2)))
    assert FACE.draw(Image.fromarray(flat)).mode == "RGB"
    assert FACE.draw(compute.from_numpy(flat)).shape == (80, 90, 3)


def test_a_mask_a_turned_box_and_a_track_are_drawn(device):
    pixels = np.zeros((80, 90), bool)
    pixels[40:60, 30:50] = True
    corners = ((40.0, 20.0), (70.0, 50.0), (40.0, 75.0), (10.0, 50.0))
    plain = Detection((10.0, 20.0, 70.0, 75.0), "cat", 0.5)
    rich = Detection((10.0, 20.0, 70.0, 75.0), "cat", 0.5, 0, {}, Mask(pixels), corners)
    one, other = plain.draw(gray()), rich.draw(gray())
    assert (other[45:55, 35:45] != one[45:55, 35:45]).any()
    assert (one[60, 10] != 128).any()
    assert (other[60, 10] == 128).all()
    assert (changed(plain, track=7).draw(gray()) != one).any()
