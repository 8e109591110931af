"""Converts one file into another, applying filters to a picture or to the frames of a video."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from dala.base.atomic_file import atomic_path
from dala.base.record import changed, record, value
from dala.base.suggestions import hint
from dala.cli import loss_reports
from dala.cli.filter_syntax import Filter, knows_time
from dala.cli.progress import Meter, Step, seconds
from dala.errors import ArgumentError, FileError
from dala.kernels.image.sizes import FORMS, WantedSize, exact_size, wanted_size
from dala.media.pictures.formats import READ_SUFFIXES
from dala.media.video.writing.encoding import SUFFIXES

STANDARD = "-"
"""The name of standard input and of standard output."""


@value
class Settings:
    """The options of a conversion, besides its filters."""

    codec: str | None = None
    quality: float | None = None
    preset: str | None = None
    size: WantedSize | None = None
    start_s: float | None = None
    end_s: float | None = None
    resume: bool = False
    sound: bool = True
    rate: float | None = None
    raw_size: tuple[int, int] | None = None
    raw_format: str | None = None
    largest_pixels: int | None = None

    @staticmethod
    def of(
        *,
        size: str | None = None,
        start: str | None = None,
        end: str | None = None,
        raw_size: str | None = None,
        **given: Any,
    ) -> Settings:
        """Returns the settings for the command's options."""
        return Settings(
            size=None if size is None else _size("--size", size),
            start_s=None if start is None else _time_s("--start", start),
            end_s=None if end is None else _time_s("--end", end),
            raw_size=None if raw_size is None else _raw_size("--raw-size", raw_size),
            **given,
        )

    @property
    def picture_quality(self) -> int | None:
        """The quality rounded to an integer, as pictures need it."""
        return None if self.quality is None else round(self.quality)

    def for_video(self) -> list[str]:
        """Returns the given options that only apply to video."""
        given: dict[str, object] = {
            "--codec": self.codec,
            "--preset": self.preset,
            "--start": self.start_s,
            "--end": self.end_s,
            "--rate": self.rate,
            "--raw-size": self.raw_size,
            "--raw-format": self.raw_format,
        }
        return [name for name, said in given.items() if said is not None]


@record
class Converted:
    """The result of a conversion, and how long it took."""

    source: str
    target: str
    kind: str
    frames: int
    resumed_frames: int
    width: int
    height: int
    seconds: float
    stages_s: dict[str, float]
    lost: Sequence[str] = ()
    """What was lost between source and target."""

    @property
    def frames_per_s(self) -> float:
        return (self.frames - self.resumed_frames) / max(self.seconds, 1e-6)

    def describe(self) -> dict[str, Any]:
        """Returns the result as JSON values."""
        rounded = {"seconds": round(self.seconds, 3), "frames_per_s": round(self.frames_per_s, 2)}
        return {**vars(self), **rounded}

    def line(self) -> str:
        """Returns the result as a line of text."""
        size = f"{self.width} × {self.height}"
        if self.kind == "picture":
            return f"{self.target}: {size}, {seconds(self.seconds)}"
        earlier = f" ({self.resumed_frames} of them earlier)" if self.resumed_frames else ""
        stages = ", ".join(f"{name} {seconds(time_s)}" for name, time_s in self.stages_s.items())
        return (
            f"{self.target}: {self.frames} frames{earlier} of {size} in {seconds(self.seconds)}, "
            f"{self.frames_per_s:.1f} frames/s ({stages})"
        )


def make(
    source: str,
    target: str,
    filters: Sequence[Filter],
    settings: Settings,
    progress: Callable[[Step], None] | None = None,
) -> Converted:
    """Converts the source into the target, which appears when it is complete."""
    with loss_reports.collected() as lost:
        made = _made(source, target, filters, settings, progress)
    return changed(made, lost=lost)


def _made(
    source: str,
    target: str,
    filters: Sequence[Filter],
    settings: Settings,
    progress: Callable[[Step], None] | None,
) -> Converted:
    _check_source(source)
    # A GIF becomes a picture if the target is one, unless a part is selected.
    is_video = knows_time(filters) or (source.lower().endswith(".gif") and settings.for_video())
    if is_picture(source) and not _may_hold_frames(target) and not is_video:
        return _make_picture(source, target, filters, settings)
    return _make_video(source, target, filters, settings, progress)


def is_picture(path: str) -> bool:
    """Returns whether the name is that of a single picture."""
    return Path(path).suffix.lower() in READ_SUFFIXES and "%" not in path


def _may_hold_frames(target: str) -> bool:
    """Returns whether the name is that of a video or of several pictures."""
    suffix = Path(target).suffix.lower()
    many = target == STANDARD or "%" in target or Path(target).is_dir()
    return many or suffix == ".gif" or suffix in SUFFIXES


def _make_picture(
    source: str, target: str, filters: Sequence[Filter], settings: Settings
) -> Converted:
    from dala.media import gpu
    from dala.media.pictures.files import load, save

    wrong = settings.for_video()
    if wrong:
        raise ArgumentError(f"{wrong[0]} is for video, but {source} is a picture: leave it out.")
    started_s = time.perf_counter()
    chain = list(filters)
    if settings.size is not None:
        chain.append(("resize", {"size": settings.size}))
    image, metadata = load(source, largest_pixels=settings.largest_pixels, with_metadata=True)
    read_s = time.perf_counter()
    result = gpu.filter_chain(image, chain)
    filtered_s = time.perf_counter()
    save(result, target, quality=settings.picture_quality, metadata=metadata)
    ended_s = time.perf_counter()
    stages = {
        "read": read_s - started_s,
        "filter": filtered_s - read_s,
        "write": ended_s - filtered_s,
    }
    return Converted(
        source,
        target,
        "picture",
        1,
        0,
        result.shape[1],
        result.shape[0],
        ended_s - started_s,
        {name: round(time_s, 3) for name, time_s in stages.items()},
    )


def _make_video(
    source: str,
    target: str,
    filters: Sequence[Filter],
    settings: Settings,
    progress: Callable[[Step], None] | None,
) -> Converted:
    from dala.media.video.transcode import transcode

    meter = Meter()

    def tell(step: Step) -> None:
        meter.count(step)
        if progress is not None:
            progress(step)

    # A picture is not written over while frames may still be read from it.
    where = Path(target)
    is_itself = is_picture(target) and where.is_file() and where.samefile(source)
    with atomic_path(where) if is_itself else nullcontext(target) as written:
        done = transcode(
            source,
            written,
            filters,
            codec=settings.codec,
            quality=settings.quality,
            preset=settings.preset,
            size=settings.size,
            start=settings.start_s,
            end=settings.end_s,
            resume=settings.resume,
            sound=settings.sound,
            rate=settings.rate,
            raw_size=settings.raw_size,
            raw_format=settings.raw_format,
            largest_pixels=settings.largest_pixels,
            progress=tell,
        )
    width, height = done.size
    return Converted(
        source,
        target,
        "video",
        done.frames,
        done.resumed_frames,
        width,
        height,
        meter.elapsed_s,
        meter.stages_s,
    )


def _check_source(source: str) -> None:
    path = Path(source)
    if source == STANDARD or "%" in source or "://" in source or path.exists():
        return
    folder = path.parent
    near = hint(path.name, (item.name for item in folder.iterdir())) if folder.is_dir() else ""
    raise FileError(f"{source} is not there.{near}")


def _size(option: str, text: str) -> WantedSize:
    try:
        return wanted_size(option, text)
    except ArgumentError:
        raise ArgumentError(f"{option}: {text!r} is not a size such as {FORMS}.") from None


def _raw_size(option: str, text: str) -> tuple[int, int]:
    try:
        return exact_size(option, text)
    except ArgumentError:
        raise ArgumentError(f"{option}: {text!r} is not a size such as 1280x720.") from None


def _time_s(option: str, text: str) -> float:
    """Returns the seconds of a text such as 83.5 or 1:23.5."""
    parts = text.split(":")
    try:
        found = [float(part) for part in parts]
    except ValueError:
        found = []
    if not 1 <= len(found) <= 3 or not all(0 <= part < float("inf") for part in found):
        raise ArgumentError(f"{option}: {text!r} is not a time such as 83.5 or 1:23.5.")
    total = 0.0
    for part in found:
        total = total * 60 + part
    return total
