"""The catalogue: what each entry says of its model, and the labels that go with it."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from dala import errors
from dala.ml.catalog.entries import MODELS, find
from dala.ml.catalog.labels import LISTS, labels


def test_the_models_are_known():
    assert set(MODELS) == {
        "mobilenet_v2",
        "yolo_v5",
        "blazeface",
        "posenet",
        "deeplab",
        "selfie_segmentation",
        "text_detection",
        "text_recognition",
        "speech_activity",
        "document_layout",
    }


@pytest.mark.parametrize("name", MODELS)
def test_an_entry_is_described_in_plain_values(name):
    said = find(name).describe()
    assert json.loads(json.dumps(said)) == said
    assert said["name"] == name
    assert said["license"]
    assert said["package"]["files"][0]["sha256"]


@pytest.mark.parametrize("name", MODELS)
def test_every_hash_is_a_sha256(name):
    entry = find(name)
    for digest in (entry.sha256, *(file.sha256 for file in entry.package.files)):
        assert digest is not None
        assert re.fullmatch("[0-9a-f]{64}", digest)


@pytest.mark.parametrize("name", MODELS)
def test_every_list_that_an_entry_names_is_there(name):
    entry = find(name)
    assert len(entry.names) > 0
    if "keypoints" in entry.settings:
        assert len(labels(entry.settings["keypoints"])) > 0


def test_only_yolo_has_to_be_accepted():
    assert [name for name, entry in MODELS.items() if entry.needs_acceptance] == ["yolo_v5"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("mobilenet", "Did you mean 'mobilenet_v2'"),
        ("yolov5", "Did you mean 'yolo_v5'"),
        ("zzz", "mobilenet_v2, yolo_v5, blazeface"),
        (7, "no model is named 7"),
    ],
)
def test_an_unknown_name_is_refused_with_those_that_are_known(given, said):
    with pytest.raises(errors.UnknownModelError, match=re.escape(said)):
        find(given)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("imagenet", 1000),
        ("coco", 80),
        ("voc", 21),
        ("keypoints", 17),
        ("face_keypoints", 6),
        ("person", 2),
        ("document", 10),
        ("face", 1),
    ],
)
def test_a_list_has_as_many_labels_as_its_model_has_classes(name, count):
    found = labels(name)
    assert len(found) == len(set(found)) == count
    assert all(label == label.strip() != "" for label in found)


@pytest.mark.parametrize(
    ("name", "index", "label"),
    [
        ("imagenet", 0, "tench"),
        ("imagenet", 285, "Egyptian cat"),
        ("imagenet", 967, "espresso"),
        ("imagenet", 999, "toilet tissue"),
        ("coco", 0, "person"),
        ("coco", 15, "cat"),
        ("coco", 79, "toothbrush"),
        ("voc", 0, "background"),
        ("voc", 8, "cat"),
        ("voc", 15, "person"),
        ("keypoints", 0, "nose"),
        ("keypoints", 1, "left_eye"),
        ("keypoints", 16, "right_ankle"),
        ("face_keypoints", 2, "nose"),
        ("person", 1, "person"),
    ],
)
def test_labels_are_in_the_order_of_the_models(name, index, label):
    assert labels(name)[index] == label


def test_an_unknown_list_is_refused_with_those_that_are_there():
    with pytest.raises(errors.ArgumentError, match=", ".join(LISTS)):
        labels("../../secrets")


def test_the_catalogue_is_read_without_arrays_models_or_networks():
    heavy = {"numpy", "onnx", "onnxruntime", "urllib.request", "subprocess", "tarfile", "rich"}
    program = f"import sys, dala.ml.catalog.entries; print(*({heavy!r} & sys.modules.keys()))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).split() == []
