"""People and their key points: the heatmaps and displacements of PoseNet.

Every peak of a heatmap may begin a pose, the surest first, unless a pose found before has that
point near it. From there the displacements lead along the tree of points.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from dala.devices import Device, current_device, using
from dala.kernels.tensor.gathering import gather
from dala.kernels.tensor.ranking import top_k
from dala.kernels.vision.poses import decode_poses, heatmap_peaks
from dala.ml.catalog.reading import Reading
from dala.ml.results.placement import Placement
from dala.ml.results.results import Keypoint, Pose, Results
from dala.ml.tasks.options import chosen
from dala.ml.tasks.outputs import Outputs, computed, require_output, without_batch
from dala.runtime.buffers.buffer import Buffer, from_numpy
from dala.runtime.buffers.views import reshaped

EDGES = (
    ("nose", "left_eye"),
    ("left_eye", "left_ear"),
    ("nose", "right_eye"),
    ("right_eye", "right_ear"),
    ("nose", "left_shoulder"),
    ("left_shoulder", "left_elbow"),
    ("left_elbow", "left_wrist"),
    ("left_shoulder", "left_hip"),
    ("left_hip", "left_knee"),
    ("left_knee", "left_ankle"),
    ("nose", "right_shoulder"),
    ("right_shoulder", "right_elbow"),
    ("right_elbow", "right_wrist"),
    ("right_shoulder", "right_hip"),
    ("right_hip", "right_knee"),
    ("right_knee", "right_ankle"),
)
"""From which point to which each displacement leads, in the order in which the model gives them."""
CANDIDATES = 256
"""Of all peaks, so many of the best may begin a pose."""
LEAST_SCORE = 0.15
"""What scores less is no other person, but what a few stray points make of one found before."""


def decode(
    outputs: Outputs, placement: Placement, entry: Reading, options: Mapping[str, Any]
) -> Results[Pose]:
    """Returns the poses found, in the order of the surest point of each."""
    given = chosen(entry, options, "threshold", "max_results")
    stride, radius = entry.settings["stride"], entry.settings["radius"]
    names = entry.names
    points = len(names)
    grid = tuple((size - 1) // stride + 1 for size in placement.tensor)

    def maps(name: str, count: int) -> Buffer:
        return without_batch(require_output(outputs, entry, name, (1, *grid, count)))

    heatmaps, offsets = maps("heatmap", points), maps("offset", 2 * points)
    forward = maps("displacement_fwd", 2 * len(EDGES))
    backward = maps("displacement_bwd", 2 * len(EDGES))
    peaks = computed(heatmap_peaks, [heatmaps], heatmaps.shape)
    n = grid[0] * grid[1] * points
    row, count = reshaped(peaks, (1, n)), min(n, CANDIDATES)
    order = computed(top_k, [row], (1, count), "s32", {"indices": True})
    roots = reshaped(order, (count,))
    best = computed(gather, [reshaped(peaks, (n,)), roots], (count,))
    hops = hop_buffer(names, current_device())
    followed = computed(
        decode_poses,
        [roots, heatmaps, offsets, forward, backward, hops],
        (count, points, 3),
        params={"stride": stride, "threshold": given["threshold"]},
    )
    is_sure = np.asarray(best) >= given["threshold"]
    candidates = np.asarray(followed)[is_sure].astype(np.float64)
    parts = np.asarray(roots)[is_sure] % points
    found = tell_apart(candidates, parts, radius, given["max_results"])
    poses = Results[Pose]()
    for pose, score in found:
        places = placement.points(pose[:, :2]).tolist()
        sure = pose[:, 2].tolist()
        keypoints = {
            name: Keypoint(x, y, own) for name, (x, y), own in zip(names, places, sure, strict=True)
        }
        poses.append(Pose(keypoints, score))
    return poses


def tell_apart(
    candidates: np.ndarray, parts: np.ndarray, radius: float, most: int
) -> list[tuple[np.ndarray, float]]:
    """Poses (points, 3) of x, y and score that are not the same, and the score of each.

    A candidate is the same as one before if the point that it began with, of which `parts` has the
    number, is no farther than the radius from that point of the other. Points so near to another
    pose's do not count for the score, the mean of those of the points, which has a least.
    """
    taken: list[np.ndarray] = []
    found: list[tuple[np.ndarray, float]] = []
    for pose, part in zip(candidates, parts, strict=True):
        if len(found) == most:
            break
        others = np.reshape(taken, (len(taken), *pose.shape))
        distance = np.square(others[..., :2] - pose[:, :2]).sum(-1)
        is_near = distance <= radius**2
        if is_near[:, part].any():
            continue
        score = float(np.where(is_near.any(0), 0.0, pose[:, 2]).mean())
        taken.append(pose)
        if score >= LEAST_SCORE:
            found.append((pose, score))
    return found


@lru_cache(8)
def hop_buffer(names: tuple[str, ...], device: Device) -> Buffer:
    """The next point on the way from one to another, the edge to it, and all steps, on a device.

    An edge e is followed forward, and -1 - e is edge e followed backward.
    """
    near: dict[int, dict[int, int]] = {k: {} for k in range(len(names))}
    for edge, (parent, child) in enumerate(EDGES):
        near[names.index(parent)][names.index(child)] = edge
        near[names.index(child)][names.index(parent)] = -1 - edge
    hops = np.zeros((len(names), len(names), 3), np.int32)
    for target in near:
        reached = [target]
        for point in reached:
            for before in near[point].keys() - set(reached):
                steps = hops[point, target, 2] + 1
                hops[before, target] = point, near[before][point], steps
                reached.append(before)
    with using(device):
        return from_numpy(hops)
