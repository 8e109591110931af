"""Faces from the anchors of BlazeFace, against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.test_detection import merged
from kernels.test_suppression import suppressed
from ml.tasks.tensors import decoded

from dala import errors
from dala.devices import CPU
from dala.ml.catalog.labels import labels
from dala.ml.tasks.faces import anchor_buffer

ANCHORS = 896


def anchors():
    """Two to a cell of 8 pixels, then six to a cell of 16: those of the short-range model."""
    made = [
        ((x + 0.5) / cells, (y + 0.5) / cells)
        for cells, count in ((16, 2), (8, 6))
        for y in range(cells)
        for x in range(cells)
        for _ in range(count)
    ]
    return np.array(made)


def outputs(seed=3, sure=30):
    """Random offsets and, for a few neighbouring anchors, scores above the threshold."""
    random = np.random.default_rng(seed)
    values = random.normal(0, 4, (1, ANCHORS, 16)).astype(np.float32)
    values[..., 2:4] = random.uniform(20, 50, (1, ANCHORS, 2))
    logits = np.full((1, ANCHORS, 1), -9, np.float32)
    logits[0, random.integers(0, ANCHORS, sure), 0] = random.uniform(-1, 5, sure)
    return {"regressors": values, "classificators": logits}


def test_anchors_are_the_centres_of_cells():
    made = np.asarray(anchor_buffer(((8, 2), (16, 6)), (128, 128), CPU))
    np.testing.assert_allclose(made, anchors(), atol=1e-7)


@pytest.mark.usefixtures("device")
def test_faces_are_those_of_the_plain_loop():
    given = outputs()
    values, logits = given["regressors"][0].astype(float), given["classificators"][0, :, 0]
    scores = 1 / (1 + np.exp(-logits.astype(float)))
    centre, half = values[:, :2] / 128 + anchors(), values[:, 2:4] / 256
    points = values[:, 4:] / 128 + np.tile(anchors(), 6)
    rows = np.concatenate([centre - half, centre + half, points], 1)
    kept = suppressed(rows[:, :4], scores, iou=0.3, threshold=0.5)
    want = merged(rows, scores, kept, 0.3, 0.5) * np.tile([300, 200], 8)
    found = decoded("blazeface", given, (200, 300), fit="stretch")
    assert 1 < len(found) == len(kept)
    np.testing.assert_allclose([face.score for face in found], scores[kept], rtol=1e-5)
    edges = want[:, :4].clip(0, [300, 200, 300, 200])
    np.testing.assert_allclose([face.box for face in found], edges, rtol=1e-4, atol=1e-3)
    got = [[(p.x, p.y) for p in face.keypoints.values()] for face in found]
    np.testing.assert_allclose(np.reshape(got, (-1, 12)), want[:, 4:], rtol=1e-4, atol=1e-3)
    assert list(found[0].keypoints) == list(labels("face_keypoints"))
    assert {face.label for face in found} == {"face"}


@pytest.mark.usefixtures("device")
def test_scores_and_offsets_may_come_in_one_output():
    given = outputs()
    both = np.concatenate([given["classificators"], given["regressors"]], 2)
    found = decoded("blazeface", {"objects": both}, (128, 128))
    assert found == decoded("blazeface", given, (128, 128))
    assert found


@pytest.mark.usefixtures("device")
def test_no_face_is_an_empty_list():
    given = outputs()
    given["classificators"][:] = -5
    assert decoded("blazeface", given, (128, 128)) == []


def test_outputs_that_are_missing_are_named():
    given = outputs()
    del given["classificators"]
    with pytest.raises(errors.ModelError) as caught:
        decoded("blazeface", given, (128, 128))
    said = str(caught.value)
    assert "'classificators' (1, 896, 1)" in said
    assert "(1, 896, 17)" in said
    assert "'regressors' f32 (1, 896, 16)" in said
