"""Files of YOLO, as users have them: what they find, by what they say of themselves."""

from __future__ import annotations

import numpy as np
import pytest
from ml.yolo_models import CELLS, SIDE, columns, metadata, rows, yolo_model

from dala import errors, ml
from dala.ml.tasks.turned_boxes import alike

pytestmark = pytest.mark.usefixtures("device")

NAMES = ("ant", "bee", "cat")
WIDE = np.full((32, 64, 3), 90, np.uint8)
"""An image that lies in the rows 16 to 48 of the input."""
# The second is the first once more, a little aside; the third is as the first, of another class.
THINGS = [
    ((32.0, 32.0, 20.0, 16.0), 1, 0.9),
    ((33.0, 32.0, 20.0, 16.0), 1, 0.8),
    ((32.0, 32.0, 20.0, 16.0), 2, 0.7),
    ((10.0, 40.0, 8.0, 8.0), 0, 0.3),
    ((50.0, 40.0, 8.0, 8.0), 0, 0.2),
]


def told(found):
    return [(item.label, item.index, round(item.score, 3)) for item in found]


def test_a_file_of_version_8_is_a_detector_by_itself(tmp_path):
    path = tmp_path / "yolov8n.onnx"
    path.write_bytes(yolo_model({"output0": columns(THINGS, 3)}, metadata("detect", NAMES)))
    model = ml.gpu.load_model(path)
    found = model(WIDE)
    assert told(found) == [("bee", 1, 0.9), ("cat", 2, 0.7), ("ant", 0, 0.3)]
    assert found[0].box == pytest.approx((22, 8, 42, 24))
    assert found[2].box == pytest.approx((6, 20, 14, 28))
    info = ml.gpu.model_info(model)
    assert (info["task"], info["size"], info["layout"]) == ("detection", [64, 64], "nchw")
    assert info["labels"] == list(NAMES)


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        ({"threshold": 0.5}, ["bee", "cat"]),
        ({"threshold": 0.1}, ["bee", "cat", "ant", "ant"]),
        ({"iou": 0.95}, ["bee", "bee", "cat", "ant"]),
        ({"classes": ["cat", 0]}, ["cat", "ant"]),
        ({"classes": "bee", "threshold": 0}, ["bee"]),
        ({"max_detections": 2}, ["bee", "cat"]),
        ({"max_results": 1}, ["bee"]),
    ],
)
def test_what_is_kept_is_chosen_for_each_call(options, labels):
    model = ml.gpu.load_model(yolo_model({"a": columns(THINGS, 3)}, metadata("detect", NAMES)))
    assert [item.label for item in model(WIDE, **options)] == labels


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"classes": ["dog"]}, "classes= has 'dog', but classes are named by their labels, or"),
        ({"classes": [3]}, "numbers from 0 to 2"),
        ({"max_detections": 2, "max_results": 2}, "are the same"),
        ({"max_detections": 0}, "integer from 1"),
    ],
)
def test_what_is_chosen_wrongly_is_refused(options, said):
    model = ml.gpu.load_model(yolo_model({"a": columns(THINGS, 3)}, metadata("detect", NAMES)))
    with pytest.raises(errors.ArgumentError) as raised:
        model(WIDE, **options)
    assert said.replace("=", "") in str(raised.value).replace("=", "")


@pytest.mark.parametrize("like", [None, "yolo_v5"])
def test_rows_of_version_5_without_a_task_are_known_by_their_number(like):
    model = ml.gpu.load_model(yolo_model({"output": rows(THINGS, 3)}, {"stride": 32}), like)
    assert told(model(WIDE)) == [("1", 1, 0.9), ("2", 2, 0.7), ("0", 0, 0.3)]


def test_labels_are_given_as_a_list_or_a_file(tmp_path):
    data = yolo_model({"output": rows(THINGS, 3)}, {})
    (tmp_path / "names.txt").write_text("x\ny\nz\n", encoding="utf-8")
    (tmp_path / "names.json").write_text('{"0": "x", "1": "y", "2": "z"}', encoding="utf-8")
    for labels in (["x", "y", "z"], tmp_path / "names.txt", str(tmp_path / "names.json")):
        found = ml.gpu.load_model(data, labels=labels)(WIDE)
        assert [item.label for item in found] == ["y", "z", "x"]


def test_labels_that_are_none_or_too_few_are_refused(tmp_path):
    data = yolo_model({"output": rows(THINGS, 3)}, {})
    with pytest.raises(errors.ArgumentError, match="one for each class"):
        ml.gpu.load_model(data, labels=[1, 2, 3])
    with pytest.raises(errors.FileError, match=r"none\.txt cannot be read"):
        ml.gpu.load_model(data, labels=tmp_path / "none.txt")
    with pytest.raises(errors.ModelError, match=r"\(1, 6, n\) or \(1, n, 7\)"):
        ml.gpu.load_model(data, "yolo_v5", labels=["x", "y"])(WIDE)


def test_channels_last_means_boxes_in_shares_of_the_input():
    shares = [(tuple(np.array(box) / SIDE), index, score) for box, index, score in THINGS]
    made = yolo_model({"a": columns(shares, 3)}, metadata("detect", NAMES), "nhwc")
    found = ml.gpu.load_model(made)(WIDE)
    assert told(found)[0] == ("bee", 1, 0.9)
    assert found[0].box == pytest.approx((22, 8, 42, 24))


def test_free_axes_take_the_size_of_the_metadata():
    made = yolo_model(
        {"a": columns(THINGS, 3)},
        metadata("detect", NAMES),
        shape=("batch", 3, "height", "width"),
        declared=False,
    )
    model = ml.gpu.load_model(made, engine="onnxruntime")
    assert model.entry.size == (64, 64)
    assert told(model(WIDE))[0] == ("bee", 1, 0.9)


def test_a_head_with_its_own_suppression_is_taken_as_it_is():
    ended = np.zeros((1, 5, 6), np.float32)
    ended[0, :3] = [
        (22, 24, 42, 40, 0.9, 1),
        (23, 24, 43, 40, 0.8, 1),
        (2, 30, 10, 38, 0.2, 0),
    ]
    about = metadata("detect", NAMES, end2end=True)
    found = ml.gpu.load_model(yolo_model({"a": ended}, about))(WIDE)
    assert told(found) == [("bee", 1, 0.9), ("bee", 1, 0.8)]
    assert found[0].box == pytest.approx((22, 8, 42, 24))


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_masks_are_the_sums_of_prototypes_within_the_boxes(layout):
    prototypes = np.full((1, 2, 16, 16), -1, np.float32)
    prototypes[0, 0, :, 8:] = 1  # the right half
    prototypes[0, 1, 8:] = 1  # the lower half
    things = THINGS[:1] + THINGS[2:3]
    if layout == "nhwc":
        prototypes = prototypes.transpose(0, 2, 3, 1)
        things = [(tuple(np.array(box) / SIDE), index, score) for box, index, score in things]
    made = columns(things, 3, [(1, 0), (0, -1)])
    model = ml.gpu.load_model(
        yolo_model({"a": made, "b": prototypes}, metadata("segment", NAMES), layout)
    )
    right, upper = model(WIDE)
    want = np.zeros((32, 64), bool)
    want[8:24, 32:42] = True
    np.testing.assert_array_equal(right.mask, want)
    want[:] = False
    want[8:16, 22:42] = True
    np.testing.assert_array_equal(upper.mask.pixels, want)
    assert right.to_dict()["mask"]["shape"] == [32, 64]


def test_key_points_lie_in_the_image_and_have_scores_of_their_own():
    points = np.zeros((17, 3))
    points[0] = 32, 20, 0.75
    points[16] = 30, 40, 0.5
    made = columns([((32.0, 32.0, 20.0, 16.0), 0, 0.9)], 1, [points.reshape(-1)])
    about = metadata("pose", ["person"], kpt_shape=[17, 3])
    (pose,) = ml.gpu.load_model(yolo_model({"a": made}, about))(WIDE)
    nose, ankle = pose.keypoints["nose"], pose.keypoints["right_ankle"]
    assert (nose.x, nose.y, nose.score) == pytest.approx((32, 4, 0.75))
    assert (ankle.x, ankle.y, ankle.score) == pytest.approx((30, 24, 0.5))
    assert pose.box == pytest.approx((22, 8, 42, 24))
    assert pose.to_dict()["label"] == "person"


def test_turned_boxes_have_corners_and_suppress_those_that_are_like_them():
    box = (32.0, 32.0, 20.0, 8.0)
    things = [(box, 1, 0.9), (box, 1, 0.8), (box, 1, 0.7)]
    made = columns(things, 3, [(np.pi / 2,), (np.pi / 2 + 0.05,), (0.0,)])
    upright, flat = ml.gpu.load_model(yolo_model({"a": made}, metadata("obb", NAMES)))(WIDE)
    assert upright.box == pytest.approx((28, 6, 36, 26), abs=1e-4)
    assert sorted(np.round(upright.corners, 3).tolist()) == [[28, 6], [28, 26], [36, 6], [36, 26]]
    assert flat.box == pytest.approx((22, 12, 42, 20), abs=1e-4)


def test_turned_boxes_are_as_alike_as_their_distributions():
    boxes = np.array([[0, 0, 4, 2], [0, 0, 2, 4], [30, 0, 4, 2]], np.float64)
    found = alike(boxes, np.array([0.0, np.pi / 2, 0.0]))
    np.testing.assert_allclose(found[:2, :2], 1, atol=2e-3)
    assert found[0, 2] < 1e-6


def test_a_classifier_gives_its_own_labels_and_shares_as_they_are():
    shares = np.array([[0.1, 0.7, 0.2]], np.float32)
    model = ml.gpu.load_model(yolo_model({"a": shares}, metadata("classify", NAMES)))
    found = model(WIDE, top_k=2)
    assert [(item.label, round(item.score, 4)) for item in found] == [("bee", 0.7), ("cat", 0.2)]


@pytest.mark.parametrize("labels", [None, ["x", "y", "z"]])
def test_a_classifier_may_have_other_classes_and_another_size(labels):
    logits = np.log(np.array([[1, 2, 5]], np.float32))
    made = yolo_model({"a": logits}, {})
    found = ml.gpu.load_model(made, like="mobilenet_v2", labels=labels)(WIDE, top_k=2)
    assert [item.label for item in found] == (["z", "y"] if labels else ["2", "1"])
    assert found[0].score == pytest.approx(5 / 8)


def test_what_only_looks_like_yolo_is_left_as_it_declares_itself():
    other = yolo_model({"a": np.zeros((1, 7, CELLS + 3), np.float32)}, {"task": "sing"})
    assert ml.gpu.load_model(other).entry is None
    with pytest.raises(errors.ArgumentError, match="like"):
        ml.gpu.load_model(other, labels=["x"])


def test_things_have_numbers_that_stay_from_call_to_call():
    made = yolo_model({"a": columns(THINGS, 3)}, metadata("detect", NAMES))
    model = ml.gpu.load_model(made)
    for _ in range(3):
        found = model(WIDE, track=True, threshold=0.5)
        # The last two are less sure, and so nothing new.
        assert [(item.label, item.track) for item in found] == [("bee", 1), ("cat", 2)]
    assert model(WIDE)[0].track is None
    other = ml.gpu.Tracker(0.8)
    assert [item.track for item in model([WIDE, WIDE], track=other)[1]] == [1]
    with pytest.raises(errors.ArgumentError, match="a Tracker, not 3"):
        model(WIDE, track=3)
