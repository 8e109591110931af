"""Segments of a video, written one by one so that an interrupted run can resume."""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dala import __version__
from dala.base.atomic_file import replace_data
from dala.base.record import record
from dala.errors import ArgumentError, argument

FRAMES_IN_SEGMENT = 300
_JOB = "job.json"


@record
class Segment:
    """A finished segment."""

    path: Path
    frames: int
    last_pts: int


def finished_frames(target: Path) -> int:
    """Returns the number of finished frames that a resumed run can use."""
    return sum(segment.frames for segment in _finished(_folder_of(target)))


def _folder_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.partial")


def _paths(folder: Path, number: int) -> tuple[Path, Path]:
    return folder / f"{number:06}.json", folder / f"{number:06}.packets"


def _finished(folder: Path) -> Iterator[Segment]:
    """Yields the finished segments, from the first."""
    for number in itertools.count():
        marks, packets = _paths(folder, number)
        if not marks.exists() or not packets.exists():
            return
        said = json.loads(marks.read_text(encoding="utf-8"))
        yield Segment(packets, said["frames"], said["last_pts"])


class SegmentFolder:
    """The folder for a run's finished segments, next to the target.

    A job whose filters are not `identified` can only start again: its segments could be another's.
    """

    def __init__(
        self, target: Path, job: Mapping[str, Any], *, resume: bool, identified: bool
    ) -> None:
        self.path = _folder_of(target)
        self._identified = identified
        self._fingerprint = _fingerprint(job)
        self.segments: list[Segment] = []
        if resume and self.path.exists():
            self._check_same_job(target)
            self.segments = list(_finished(self.path))
        elif self.path.exists():
            shutil.rmtree(self.path)
        self.path.mkdir(parents=False, exist_ok=True)
        (self.path / _JOB).write_text(json.dumps({"job": self._fingerprint}), encoding="utf-8")

    def _check_same_job(self, target: Path) -> None:
        if not self._identified:
            raise ArgumentError(
                f"{target} cannot be resumed: a Python function is among the filters, and nothing "
                f"tells whether it is the one that made what is there. Run it without resuming, "
                f"which begins anew."
            )
        try:
            found = json.loads((self.path / _JOB).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = None
        if not isinstance(found, dict) or found.get("job") != self._fingerprint:
            raise ArgumentError(
                f"{target} cannot be resumed: what is there was made from another source or with "
                f"other settings. Run it without {argument('resume', 'True')}, which begins anew."
            )

    def unfinished(self) -> Path:
        """Returns the path for the next segment."""
        return self.path / "unfinished.packets"

    def finish(self, frames: int, last_pts: int, state: Mapping[str, np.ndarray]) -> None:
        """Marks the written segment as finished, with the state of the filters after it."""
        marks, packets = _paths(self.path, len(self.segments))
        if state:
            np.savez(self.path / "state.npz", allow_pickle=False, **state)
            (self.path / "state.npz").replace(marks.with_suffix(".npz"))
        self.unfinished().replace(packets)
        text = json.dumps({"frames": frames, "last_pts": last_pts})
        replace_data(marks, text.encode())  # marks the segment as finished
        if self.segments:
            _paths(self.path, len(self.segments) - 1)[0].with_suffix(".npz").unlink(missing_ok=True)
        self.segments.append(Segment(packets, frames, last_pts))

    def state(self) -> dict[str, np.ndarray]:
        """Returns the state of the filters after the last finished segment."""
        path = _paths(self.path, len(self.segments) - 1)[0].with_suffix(".npz")
        if not self.segments or not path.exists():
            return {}
        with np.load(path, allow_pickle=False) as kept:
            return {name: kept[name] for name in kept.files}

    @property
    def is_worth_keeping(self) -> bool:
        """Whether another run could resume from it."""
        return self._identified and bool(self.segments)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def _fingerprint(job: Mapping[str, Any]) -> str:
    text = json.dumps({**job, "version": __version__}, sort_keys=True, default=_described)
    return hashlib.sha256(text.encode()).hexdigest()


def _described(given: Any) -> Any:
    """Returns a JSON value that identifies a parameter of another type."""
    try:
        array = np.asarray(given)
    except ValueError:
        return repr(given)
    if array.dtype == object:
        return repr(given)
    return [array.shape, str(array.dtype), hashlib.sha256(array.tobytes()).hexdigest()]
