"""The tasks of real models on real photos, where the reference files are at hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dala import media
from dala.ml import gpu

SHARED = Path(__file__).parents[3] / "../shared"
pytestmark = [
    pytest.mark.usefixtures("device"),
    pytest.mark.skipif(
        not (SHARED / "models").is_dir(), reason="the reference models are not here"
    ),
]


def seen(name, photo):
    model = gpu.load_model(SHARED / "models" / f"{name}.onnx", like=name)
    return model(media.load(SHARED / "photos" / photo))


def test_a_face_has_its_points_where_they_are():
    (face,) = seen("blazeface", "astronaut.png")
    left, top, right, bottom = face.box
    points = face.keypoints
    assert all(top < point.y < bottom for point in points.values())
    # The person's right is on the left of the picture.
    order = ["right_ear", "right_eye", "nose", "left_eye", "left_ear"]
    across = [points[name].x for name in order]
    assert across == sorted(across)
    assert left < points["right_eye"].x < points["left_eye"].x < right
    assert points["right_eye"].y < points["nose"].y < points["mouth"].y


def test_face_and_pose_agree_about_eyes_and_nose():
    (face,) = seen("blazeface", "astronaut.png")
    (pose,) = seen("posenet", "astronaut.png")
    for name in ("nose", "left_eye", "right_eye"):
        one, other = face.keypoints[name], pose.keypoints[name]
        assert (one.x, one.y) == pytest.approx((other.x, other.y), abs=8)


@pytest.mark.parametrize("name", ["blazeface", "posenet"])
def test_a_cup_of_coffee_is_nobody(name):
    assert seen(name, "coffee.png") == []


@pytest.mark.slow
def test_masks_say_cat_and_person():
    assert next(iter(seen("deeplab", "chelsea.png").shares())) == "cat"
    classes = seen("deeplab", "astronaut.png")
    person = classes.mask == classes.labels.index("person")
    soft = seen("selfie_segmentation", "astronaut.png")
    assert soft.mask.shape == person.shape
    assert np.mean((soft.mask > 0.5) & person) > 0.9 * np.mean(person)
