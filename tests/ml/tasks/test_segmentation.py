"""Masks in the size of the image, from classes, logits and probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.test_masks import mixed, picked
from ml.tasks.tensors import decoded

from dala import errors
from dala.ml.catalog.labels import labels

pytestmark = pytest.mark.usefixtures("device")

SHAPE = (33, 33)


def classes():
    return np.random.default_rng(1).integers(0, 21, (1, *SHAPE))


def logits():
    return np.random.default_rng(2).normal(0, 1, (1, *SHAPE, 21)).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.float32])
def test_classes_are_stretched_over_the_image(dtype):
    found = decoded("deeplab", {"out": classes().astype(dtype)}, (50, 70), shape=SHAPE)
    np.testing.assert_array_equal(found.mask, picked(classes()[0], (50, 70), (0, 0, *SHAPE)))
    assert found.mask.dtype == np.uint8
    assert found.labels == labels("voc")
    assert all(isinstance(found.labels[index], str) for index in np.unique(found.mask))


def test_the_class_of_the_largest_logit_counts_in_both_layouts():
    want = picked(logits()[0].argmax(2), (50, 70), (0, 0, *SHAPE))
    found = decoded("deeplab", {"out": logits()}, (50, 70), shape=SHAPE)
    np.testing.assert_array_equal(found.mask, want)
    planes = logits().transpose(0, 3, 1, 2)
    found = decoded("deeplab", {"out": planes}, (50, 70), shape=SHAPE)
    np.testing.assert_array_equal(found.mask, want)


def test_the_borders_of_a_letterbox_are_taken_off():
    # The image of 20 × 40 lies in the rows 16 to 48 of a tensor of 64, of which the mask has half.
    mask = np.random.default_rng(3).integers(0, 21, (1, 32, 32))
    found = decoded("deeplab", {"out": mask}, (20, 40), fit="letterbox", shape=(64, 64))
    np.testing.assert_array_equal(found.mask, picked(mask[0], (20, 40), (8, 0, 16, 32)))


def test_what_was_cropped_away_is_background():
    mask = np.full((1, 32, 32), 15)
    found = decoded("deeplab", {"out": mask}, (32, 64), fit="crop", shape=(32, 32))
    assert (found.mask[:, 16:48] == 15).all()
    assert (found.mask[:, :16] == 0).all()
    assert (found.mask[:, 48:] == 0).all()


def test_a_class_without_a_label_is_refused():
    mask = classes()
    mask[0, 3, 4] = 21
    with pytest.raises(errors.ModelError, match=r"class 21.*0 to 20"):
        decoded("deeplab", {"out": mask}, (50, 70), shape=SHAPE)


def test_probabilities_are_interpolated_over_the_image():
    mask = np.random.default_rng(4).random((1, *SHAPE, 1), np.float32)
    want = mixed(mask[0, ..., 0], (50, 70), (0, 0, *SHAPE))
    for given in (mask, mask.transpose(0, 3, 1, 2), mask[..., 0]):
        found = decoded("selfie_segmentation", {"out": given}, (50, 70), shape=SHAPE)
        np.testing.assert_allclose(found.mask, want, rtol=1e-5, atol=1e-6)
        assert found.mask.dtype == np.float32
        assert found.labels == ("background", "person")


def test_masks_take_no_options():
    with pytest.raises(errors.ArgumentError, match="has no option threshold; it takes none"):
        decoded("deeplab", {"out": classes()}, (50, 70), shape=SHAPE, threshold=0.5)


def test_other_outputs_are_refused():
    with pytest.raises(errors.ModelError, match=r"\(1, n, n\).*\(1, 5\)"):
        decoded("deeplab", {"out": np.zeros((1, 5), np.float32)}, (50, 70))
    with pytest.raises(errors.ModelError, match=r"\(1, n, n, 1\).*\(2, 5, 5, 3\)"):
        decoded("selfie_segmentation", {"out": np.zeros((2, 5, 5, 3), np.float32)}, (50, 70))
