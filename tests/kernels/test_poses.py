"""Peaks of heatmaps, and poses followed from them, against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dala import errors
from dala.kernels.vision import poses  # noqa: F401  (registers its kernels)


def sigmoid(x):
    return 1 / (1 + np.exp(-np.asarray(x, np.float64)))


def peaks(maps, radius):
    found = np.zeros(maps.shape)
    height, width, count = maps.shape
    for y, x, k in np.ndindex(height, width, count):
        rows = slice(max(y - radius, 0), y + radius + 1)
        columns = slice(max(x - radius, 0), x + radius + 1)
        if maps[y, x, k] >= np.nanmax(maps[rows, columns, k]):
            found[y, x, k] = sigmoid(maps[y, x, k])
    return found


@pytest.mark.parametrize("radius", [0, 1, 3])
def test_what_is_largest_around_is_a_peak(run, radius):
    maps = np.random.default_rng(1).normal(0, 3, (13, 9, 4)).astype(np.float32)
    got = run("heatmap_peaks", [maps], maps.shape, "f32", radius=radius)
    np.testing.assert_allclose(got, peaks(maps, radius), rtol=1e-5)


def test_equal_neighbours_are_all_peaks(run):
    maps = np.zeros((4, 4, 1), np.float32)
    maps[1, 1:3, 0] = 2
    want = np.zeros((4, 4, 1))
    want[1, 1:3, 0] = sigmoid(2)
    # Farther than 1 from both of them, the zeros are the largest.
    want[3] = 0.5
    np.testing.assert_allclose(
        run("heatmap_peaks", [maps], (4, 4, 1), "f32"), want, rtol=1e-6, atol=0
    )


def test_nan_is_no_peak_and_hides_none(run):
    maps = np.random.default_rng(2).normal(0, 1, (5, 5, 1)).astype(np.float32)
    maps[2, 2, 0], maps[2, 3, 0] = 9, math.nan
    got = run("heatmap_peaks", [maps], (5, 5, 1), "f32")
    assert got[2, 3, 0] == 0
    assert got[2, 2, 0] == pytest.approx(sigmoid(9))
    assert (got > 0).sum() == (peaks(maps, 1) > 0).sum()


def test_heatmaps_that_are_none_are_refused(fail):
    said = fail(errors.ShapeError, "heatmap_peaks", [((4, 4), "f32")], ((4, 4), "f32"))
    assert "(height, width, n)" in said
    maps = ((4, 4, 2), "f32")
    said = fail(errors.ArgumentError, "heatmap_peaks", [maps], maps, radius=9)
    assert "0 to 8" in said


# -- poses -----------------------------------------------------------------------------------------

# A small tree of points: 0 has the children 1 and 2, and 2 the child 3.
EDGES = [(0, 1), (0, 2), (2, 3)]
POINTS = 4
WAYS = {
    (0, 1): [1], (0, 2): [2], (0, 3): [2, 3], (1, 0): [0], (1, 2): [0, 2], (1, 3): [0, 2, 3],
    (2, 0): [0], (2, 1): [0, 1], (2, 3): [3], (3, 0): [2, 0], (3, 1): [2, 0, 1], (3, 2): [2],
}  # fmt: skip


def hops():
    table = np.zeros((POINTS, POINTS, 3), np.int32)
    for (source, target), way in WAYS.items():
        step = (source, way[0])
        edge = EDGES.index(step) if step in EDGES else -1 - EDGES.index(step[::-1])
        table[source, target] = way[0], edge, len(way)
    return table


def maps_of(seed, height=7, width=9):
    random = np.random.default_rng(seed)
    sizes = (POINTS, 2 * POINTS, 2 * len(EDGES), 2 * len(EDGES))
    spreads = (2, 5, 30, 30)
    return [
        random.normal(0, spread, (height, width, size)).astype(np.float32)
        for spread, size in zip(spreads, sizes, strict=True)
    ]


def cell(place, stride, count):
    return int(min(max(math.floor(np.float32(place) / np.float32(stride) + 0.5), 0), count - 1))


def followed(root, target, heatmaps, offsets, forward, backward, stride):
    height, width, _ = heatmaps.shape
    row, column, part = np.unravel_index(root, heatmaps.shape)

    def refined(row, column, part):
        return (
            row * stride + float(offsets[row, column, part]),
            column * stride + float(offsets[row, column, POINTS + part]),
        )

    y, x = refined(row, column, part)
    for following in WAYS.get((part, target), []):
        row, column = cell(y, stride, height), cell(x, stride, width)
        if (part, following) in EDGES:
            edge, moved = EDGES.index((part, following)), forward
        else:
            edge, moved = EDGES.index((following, part)), backward
        y += float(moved[row, column, edge])
        x += float(moved[row, column, len(EDGES) + edge])
        part = following
        for _ in range(2):
            y, x = refined(cell(y, stride, height), cell(x, stride, width), part)
        row, column = cell(y, stride, height), cell(x, stride, width)
    return x, y, sigmoid(heatmaps[row, column, part])


@pytest.mark.parametrize("stride", [8, 16])
def test_points_are_found_along_the_tree_from_any_root(run, stride):
    maps = maps_of(stride)
    roots = np.random.default_rng(3).integers(0, maps[0].size, 25).astype(np.int32)
    want = [[followed(root, k, *maps, stride) for k in range(POINTS)] for root in roots]
    got = run("decode_poses", [roots, *maps, hops()], (25, POINTS, 3), "f32", stride=stride)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)


def test_roots_below_the_threshold_are_not_followed(run):
    maps = maps_of(1)
    order = np.argsort(maps[0].reshape(-1)).astype(np.int32)
    roots = np.array([order[0], order[-1]])
    got = run("decode_poses", [roots, *maps, hops()], (2, POINTS, 3), "f32", threshold=0.9)
    assert (got[0] == got[0, 0]).all()
    want = [followed(roots[1], k, *maps, 16) for k in range(POINTS)]
    np.testing.assert_allclose(got[1], want, rtol=1e-4, atol=1e-3)


def test_maps_of_different_sizes_are_refused(fail):
    maps = [((7, 9, 4), "f32"), ((7, 9, 8), "f32"), ((7, 9, 6), "f32"), ((7, 8, 6), "f32")]
    table = ((4, 4, 3), "s32")
    output = ((5, 4, 3), "f32")
    said = fail(errors.ShapeError, "decode_poses", [((5,), "s32"), *maps, table], output)
    assert "backward is (7, 8, 6)" in said
    maps[3] = ((7, 9, 6), "f32")
    said = fail(errors.DtypeError, "decode_poses", [((5,), "f32"), *maps, table], output)
    assert "roots" in said
    said = fail(
        errors.ShapeError, "decode_poses", [((5,), "s32"), *maps, ((3, 4, 3), "s32")], output
    )
    assert "hops" in said
