"""Things known from frame to frame by numbers, by the rules of ByteTrack.

Sure boxes are put together with the tracks that overlap them most, where these have moved to; then
those that are left with boxes that are less sure, which mostly are things partly hidden. A track
that is not seen is kept for a while, and found again if it comes out where it was bound for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from dala.base.record import changed
from dala.errors import ArgumentError
from dala.kernels.base.shapes import integer_of, number_within
from dala.ml.results.assignment import assigned, overlaps
from dala.ml.results.motion import Box, Motion
from dala.ml.results.results import Detection, Pose, Results

LEAST_POINT = 0.3
"""The least score of key points that count for the box around a person."""
MOST_COST, MOST_COST_UNSURE, MOST_COST_NEW = 0.8, 0.5, 0.7
"""Up to which cost, 1 less the overlap, boxes and tracks belong together: sure boxes, which count
by their scores, too, unsure ones, and those of tracks that were seen only once."""
SAME = 0.85
"""Two tracks that overlap by more than that are one."""
Item = TypeVar("Item", bound=Detection | Pose)


class _Track:
    def __init__(self, box: Box, frame: int) -> None:
        self.number = 0
        self.motion = Motion(box)
        self.first, self.last = frame, frame
        self.is_sure = False
        """Whether it was seen more than once; the first frame's are taken at their word."""
        self.is_seen = True
        """Whether it was there in the frame before this one."""


class Tracker:
    """Gives things the numbers by which they are known, frame after frame of one video.

    `threshold` is how sure a detector has to be of something new; boxes down to `least` go on with
    things that are known. Who is not seen for `buffer` frames is forgotten.
    """

    def __init__(self, threshold: float = 0.25, *, least: float = 0.1, buffer: int = 30) -> None:
        self.threshold = number_within("Tracker", "threshold", threshold, 0, 1)
        self.least = number_within("Tracker", "least", least, 0, 1)
        self.buffer = integer_of("Tracker", "buffer", buffer)
        if self.buffer < 0:
            raise ArgumentError(f"Tracker: buffer is how many frames, 0 or more, not {buffer!r}.")
        self._tracks: list[_Track] = []
        self._frame = 0
        self._count = 0

    def update(self, found: Sequence[Item], threshold: float | None = None) -> Results[Item]:
        """The things of the next frame that are known, each with its number in `track`.

        Something new gets a number in the second frame that it is seen in; in the first frame of
        all, at once. `threshold` is for this frame and those after it.
        """
        if threshold is not None:
            self.threshold = number_within("Tracker", "threshold", threshold, 0, 1)
        self._frame += 1
        items = [item for item in found if item.score >= self.least]
        boxes = [_box_of(item) for item in items]
        for track in self._tracks:
            if not track.is_seen:
                track.motion.hold_height()
            track.motion.advance()
        matched = self._matched(items, boxes)
        seen: list[Item] = []
        for place, item in enumerate(items):
            own = matched.get(place)
            if own is not None and own.is_sure:
                seen.append(changed(item, track=own.number))
        self._forget(set(map(id, matched.values())))
        return Results(seen)

    def _matched(self, items: Sequence[Any], boxes: Sequence[Box]) -> dict[int, _Track]:
        """The track of each thing that has one, new ones among them."""
        scores = np.array([item.score for item in items])
        sure = [place for place in range(len(items)) if scores[place] >= self.threshold]
        unsure = [place for place in range(len(items)) if scores[place] < self.threshold]
        known = [track for track in self._tracks if track.is_sure]
        once = [track for track in self._tracks if not track.is_sure]
        matched: dict[int, _Track] = {}

        def match(places: list[int], tracks: list[_Track], most: float, *, by_score: bool) -> None:
            if not places or not tracks:
                return
            shared = overlaps(
                np.array([track.motion.box for track in tracks]),
                np.array([boxes[place] for place in places]),
            )
            costs = 1 - (shared * scores[places] if by_score else shared)
            for row, column in assigned(costs, most):
                matched[places[column]] = tracks[row]
                self._see(tracks[row], boxes[places[column]])

        match(sure, known, MOST_COST, by_score=True)
        taken = set(map(id, matched.values()))
        left = [track for track in known if track.is_seen and id(track) not in taken]
        match(unsure, left, MOST_COST_UNSURE, by_score=False)
        rest = [place for place in sure if place not in matched]
        match(rest, once, MOST_COST_NEW, by_score=True)
        for place in rest:
            if place not in matched:
                matched[place] = self._begin(boxes[place])
        return matched

    def _see(self, track: _Track, box: Box) -> None:
        track.motion.correct(box)
        track.last = self._frame
        if not track.is_sure:
            self._confirm(track)

    def _begin(self, box: Box) -> _Track:
        track = _Track(box, self._frame)
        self._tracks.append(track)
        if self._frame == 1:
            self._confirm(track)
        return track

    def _confirm(self, track: _Track) -> None:
        self._count += 1
        track.number, track.is_sure = self._count, True

    def _forget(self, seen: set[int]) -> None:
        """Drop who was not seen for long, who was seen only once, and who is another one."""
        for track in self._tracks:
            track.is_seen = id(track) in seen
        self._tracks = [
            track
            for track in self._tracks
            if track.is_seen or (track.is_sure and self._frame - track.last <= self.buffer)
        ]
        here = [track for track in self._tracks if track.is_seen]
        lost = [track for track in self._tracks if not track.is_seen]
        if not here or not lost:
            return
        shared = overlaps(*(np.array([each.motion.box for each in some]) for some in (here, lost)))
        dropped = set()
        for row, column in zip(*np.nonzero(shared > SAME), strict=True):
            one, other = here[row], lost[column]
            is_older = one.last - one.first >= other.last - other.first
            dropped.add(id(other if is_older else one))
        self._tracks = [track for track in self._tracks if id(track) not in dropped]


def _box_of(item: Any) -> Box:
    if isinstance(item, Detection | Pose) and item.box is not None:
        return item.box
    if isinstance(item, Pose):
        sure = [point for point in item.keypoints.values() if point.score >= LEAST_POINT]
        points = sure or list(item.keypoints.values())
        across, down = [point.x for point in points], [point.y for point in points]
        return min(across), min(down), max(across), max(down)
    raise ArgumentError(
        f"Tracker: what is tracked has a place, as what detectors find has, but this is "
        f"{type(item).__name__}."
    )
