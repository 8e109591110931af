"""Poses from the maps of PoseNet, against the published algorithm as a plain loop.

It goes through all edges, first from children to parents, then from parents to children, and looks
for those of which one end is known; what is tested follows the way to each point by itself.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernels.test_poses import cell, peaks, sigmoid
from ml.tasks.tensors import decoded

from dala import errors
from dala.ml.catalog.labels import labels
from dala.ml.tasks.poses import EDGES, LEAST_SCORE, tell_apart

NAMES = labels("keypoints")
TREE = [(NAMES.index(parent), NAMES.index(child)) for parent, child in EDGES]
STRIDE, RADIUS = 16, 20
SHAPE = (129, 161)
"""Of the tensor: cells are 9 × 11."""


def maps(seed):
    random = np.random.default_rng(seed)
    shape = (9, 11)
    heatmaps = random.normal(-3, 1.5, (*shape, 17))
    offsets = random.normal(0, 3, (*shape, 34))
    forward, backward = random.normal(0, 12, (2, *shape, 32))
    return [item.astype(np.float32) for item in (heatmaps, offsets, forward, backward)]


def named(given):
    names = ("heatmap_2", "offset_2", "displacement_fwd_2", "displacement_bwd_2")
    return {f"Net/{name}:0": item[None] for name, item in zip(names, given, strict=True)}


def moved(row, column, part, offsets):
    return np.array(
        [
            row * STRIDE + offsets[row, column, part],
            column * STRIDE + offsets[row, column, 17 + part],
        ]
    )


def neighbour(source, edge, target, displacements, heatmaps, offsets):
    """The score and the place y, x of a point, from the place of its neighbour."""
    count = heatmaps.shape[:2]
    row, column = (cell(source[k], STRIDE, count[k]) for k in (0, 1))
    place = source + displacements[row, column, [edge, 16 + edge]]
    for _ in range(2):
        row, column = (cell(place[k], STRIDE, count[k]) for k in (0, 1))
        place = moved(row, column, target, offsets)
    row, column = (cell(place[k], STRIDE, count[k]) for k in (0, 1))
    return sigmoid(heatmaps[row, column, target]), place


def one_pose(row, column, part, heatmaps, offsets, forward, backward):
    points = {part: (sigmoid(heatmaps[row, column, part]), moved(row, column, part, offsets))}
    for edge in reversed(range(16)):
        parent, child = TREE[edge]
        if child in points and parent not in points:
            given = (edge, parent, backward, heatmaps, offsets)
            points[parent] = neighbour(points[child][1], *given)
    for edge in range(16):
        parent, child = TREE[edge]
        if parent in points and child not in points:
            given = (edge, child, forward, heatmaps, offsets)
            points[child] = neighbour(points[parent][1], *given)
    return [points[k] for k in range(17)]


def all_poses(given, threshold):
    scores = peaks(given[0], 1)
    order = sorted(zip(*np.nonzero(scores >= threshold), strict=True), key=lambda at: -scores[at])
    poses = []
    for row, column, part in order:
        root = moved(row, column, part, given[1])
        if any(np.square(pose[part][1] - root).sum() <= RADIUS**2 for pose, _ in poses):
            continue
        points = one_pose(row, column, part, *given)
        own = [
            score
            for k, (score, place) in enumerate(points)
            if all(np.square(pose[k][1] - place).sum() > RADIUS**2 for pose, _ in poses)
        ]
        poses.append((points, sum(own) / 17))
    return [pose for pose in poses if pose[1] >= LEAST_SCORE]


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_poses_are_those_of_the_plain_loop(seed):
    given = maps(seed)
    want = all_poses(given, 0.4)
    found = decoded(
        "posenet", named(given), SHAPE, fit="stretch", shape=SHAPE, threshold=0.4, max_results=50
    )
    assert len(found) == len(want) > 0
    np.testing.assert_allclose([pose.score for pose in found], [s for _, s in want], rtol=1e-4)
    for pose, (points, _) in zip(found, want, strict=True):
        assert tuple(pose.keypoints) == NAMES
        got = [(point.score, point.y, point.x) for point in pose.keypoints.values()]
        rows = [(score, *place) for score, place in points]
        np.testing.assert_allclose(got, rows, rtol=1e-4, atol=1e-3)


@pytest.mark.usefixtures("device")
def test_points_are_in_the_pixels_of_the_image():
    given = maps(1)
    small = decoded("posenet", named(given), SHAPE, fit="stretch", shape=SHAPE, threshold=0.4)
    large = decoded("posenet", named(given), (258, 483), fit="stretch", shape=SHAPE, threshold=0.4)
    nose, twice = small[0].keypoints["nose"], large[0].keypoints["nose"]
    assert (twice.x, twice.y) == pytest.approx((3 * nose.x, 2 * nose.y))


@pytest.mark.usefixtures("device")
def test_nobody_is_an_empty_list_and_no_more_come_than_are_asked_for():
    given = maps(1)
    settings = {"fit": "stretch", "shape": SHAPE}
    assert decoded("posenet", named(given), SHAPE, **settings, threshold=1.0) == []
    assert (
        len(decoded("posenet", named(given), SHAPE, **settings, threshold=0.3, max_results=1)) == 1
    )


def test_poses_that_began_at_the_same_point_are_one():
    pose = np.array([[10.0, 10.0, 0.9], [50.0, 50.0, 0.7]])
    near, apart = pose + np.array([5, 0, 0]), pose + np.array([60, 0, 0])
    candidates, parts = np.stack([pose, near, apart]), np.array([0, 0, 1])
    found = tell_apart(candidates, parts, 20, 10)
    assert [score for _, score in found] == pytest.approx([0.8, 0.8])
    np.testing.assert_array_equal(found[1][0], apart)


def test_points_that_another_pose_has_do_not_count():
    pose = np.array([[10.0, 10.0, 0.9], [50.0, 50.0, 0.7]])
    other = np.array([[12.0, 10.0, 0.8], [500.0, 50.0, 0.6]])
    found = tell_apart(np.stack([pose, other]), np.array([0, 1]), 20, 10)
    assert found[1][1] == pytest.approx(0.3)
    assert tell_apart(np.zeros((0, 2, 3)), np.zeros(0, int), 20, 10) == []


def test_what_scores_little_is_nobody():
    pose = np.array([[10.0, 10.0, 0.9], [50.0, 50.0, 0.7]])
    stray = np.array([[12.0, 10.0, 0.8], [500.0, 50.0, 2 * LEAST_SCORE - 0.01]])
    assert len(tell_apart(np.stack([pose, stray]), np.array([0, 1]), 20, 10)) == 1


def test_displacements_that_cannot_be_told_apart_are_refused():
    given = {f"output_{k}": item[None] for k, item in enumerate(maps(1))}
    with pytest.raises(errors.ModelError) as caught:
        decoded("posenet", given, SHAPE, fit="stretch", shape=SHAPE)
    said = str(caught.value)
    assert "'displacement_fwd' (1, 9, 11, 32)" in said
    assert "'output_3'" in said


@pytest.mark.usefixtures("device")
def test_nan_in_the_maps_is_nobody():
    given = maps(1)
    given[0][:] = math.nan
    assert decoded("posenet", named(given), SHAPE, fit="stretch", shape=SHAPE) == []
