"""Key points of people, from heatmaps and the displacements between neighboring points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dala.errors import DtypeError, ShapeError
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper
from dala.kernels.base.limits import ABOVE_0, Limit
from dala.kernels.base.parameters import integer, number
from dala.kernels.base.shapes import (
    Shape,
    require_alike,
    require_shape,
)
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.kernel import function
from dala.runtime.pipelines.composite import Stage

REFINED = 2
"""How often a point is moved to where the offset nearest to it says it is."""
WIDEST = 8
"""The largest radius of a window that is searched."""


@composite(
    "heatmaps",
    radius=integer("how far around a peak nothing is larger", 1, limit=Limit(0, WIDEST)),
)
def heatmap_peaks(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The sigmoid of a heatmap where nothing around is larger, and 0 elsewhere

    Heatmaps are (height, width, maps); around are those up to `radius` away along both axes. Equal
    neighbors are all peaks; NaN is none, and hides none.
    """
    (heatmaps,) = inputs
    _require_maps("heatmap_peaks", "heatmaps", heatmaps)
    require_alike("heatmap_peaks", heatmaps, output)
    if 0 not in output.shape:
        yield Stage(_peaks, [heatmaps], output, {"radius": params["radius"]})


@composite(
    "roots",
    "heatmaps",
    "offsets",
    "forward",
    "backward",
    "hops",
    stride=number("how far cells are apart", 16, unit="pixels", limit=ABOVE_0),
    threshold=number("the score of a root from which on its pose is followed", 0.0),
)
def decode_poses(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The points (x, y, score) of poses, each followed from one point along the tree of points

    Heatmaps (h, w, points) are logits, offsets (h, w, 2 · points) and displacements (h, w, 2 ·
    edges) are in pixels, all of y before all of x; cells are `stride` pixels apart. Roots (n,) are
    positions in the heatmaps, flattened. Hops (points, points, 3) say, on the way from one point to
    another, which point is next, by which edge, e forward or -1 - e backward, and how many steps it
    takes in all. The output is (n, points, 3), of use where the root's own score is at least
    `threshold`: from others nothing is followed.
    """
    roots, heatmaps, offsets, forward, backward, hops = inputs
    _require_maps("decode_poses", "heatmaps", heatmaps)
    height, width, points = heatmaps.shape
    for name, item in (("offsets", offsets), ("forward", forward), ("backward", backward)):
        wanted = (height, width, 2 * points if name == "offsets" else forward.shape[-1])
        if item.shape != wanted:
            raise ShapeError(
                f"decode_poses: {name} is {item.shape}, but heatmaps is {heatmaps.shape} and "
                f"forward {forward.shape}: it has to be {wanted}."
            )
    if hops.shape != (points, points, 3):
        raise ShapeError(
            f"decode_poses: hops is {hops.shape}, but for {points} points it has to be "
            f"{(points, points, 3)}."
        )
    for name, item in (("roots", roots), ("hops", hops)):
        if item.scalar.is_float:
            raise DtypeError(f"decode_poses: {name} is {item.dtype}, but it counts: give s32.")
    if len(roots.shape) != 1:
        raise ShapeError(f"decode_poses: roots is {roots.shape}, but it has to be (n,).")
    require_shape("decode_poses", output, f"roots {roots.shape}", (*roots.shape, points, 3))
    if 0 not in output.shape:
        yield Stage(_follow, inputs, output, params)


@decode_poses.sized
def _poses_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    return (*shapes[0], *shapes[1][2:], 3)


decode_poses.typed(lambda scalars, params: scalars[1])


def _require_maps(kernel: str, name: str, maps: Buffer) -> None:
    if len(maps.shape) != 3:
        raise ShapeError(f"{kernel}: {name} is {maps.shape}, but it has to be (height, width, n).")


@helper
def _peaks(heatmaps: Any, radius: dala.const) -> Any:
    y, x, k = dala.position(3)
    own = heatmaps[y, x, k]
    # At an edge the border rule gives what is in the window anyway.
    is_peak = not dala.isnan(own)
    for down in range(-radius, radius + 1):
        for across in range(-radius, radius + 1):
            other = heatmaps[y + down, x + across, k]
            is_peak = is_peak and (dala.isnan(other) or other <= own)
    return dala.sigmoid(own) if is_peak else 0.0


@function
def _cell(place: Any, stride: Any, count: Any) -> Any:
    """The cell nearest to a place in pixels."""
    return dala.s32(dala.clamp(dala.floor(place / stride + 0.5), 0.0, dala.f32(count - 1)))


@helper
def _follow(
    roots: Any,
    heatmaps: Any,
    offsets: Any,
    forward: Any,
    backward: Any,
    hops: Any,
    stride: dala.f32,
    threshold: dala.f32,
) -> Any:
    i, target, item = dala.position(3)
    height, width, points = heatmaps.shape
    edges = forward.shape[2] // 2
    root = roots[i]
    part = root % points
    row, column = root // points // width, root // points % width
    y = dala.f32(row) * stride + offsets[row, column, part]
    x = dala.f32(column) * stride + offsets[row, column, points + part]
    score = dala.sigmoid(heatmaps[row, column, part])
    steps = hops[part, target, 2] if score >= threshold else 0
    for _ in range(steps):
        following, edge = hops[part, target, 0], hops[part, target, 1]
        row, column = _cell(y, stride, height), _cell(x, stride, width)
        back = -1 - edge
        y += forward[row, column, edge] if edge >= 0 else backward[row, column, back]
        x += (
            forward[row, column, edges + edge] if edge >= 0 else backward[row, column, edges + back]
        )
        part = following
        for _ in range(REFINED):
            row, column = _cell(y, stride, height), _cell(x, stride, width)
            y = dala.f32(row) * stride + offsets[row, column, part]
            x = dala.f32(column) * stride + offsets[row, column, points + part]
        score = dala.sigmoid(heatmaps[_cell(y, stride, height), _cell(x, stride, width), part])
    return x if item == 0 else (y if item == 1 else score)
