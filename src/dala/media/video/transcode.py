"""Transcoding: decoding, filtering and encoding overlap."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dala.base.atomic_file import replace_file
from dala.base.file_path import checked_path
from dala.base.record import record
from dala.errors import ArgumentError, DalaError, FileError, MediaError, argument, renaming
from dala.kernels.image.sizes import WantedSize, wanted_size
from dala.media.filters.chain import Filter, listed_filters
from dala.media.pictures.files import warn_of_loss
from dala.media.pictures.metadata import cut_bits
from dala.media.video.background_io import Stopwatch, WriteBehind, read_ahead
from dala.media.video.filtering.fingerprints import file_stamp, filter_fingerprint
from dala.media.video.filtering.frame_filter import FrameFilter
from dala.media.video.reading.decoded_frame import VideoFrame
from dala.media.video.reading.image_sequences import Pictures
from dala.media.video.reading.packets import PacketFile
from dala.media.video.reading.source_opening import Source, open_source
from dala.media.video.writing.encoding import Encoder, Encoding, FrameFormat, bits_of, encoding_for
from dala.media.video.writing.muxing import SourceExtras, mux_segments
from dala.media.video.writing.segments import FRAMES_IN_SEGMENT, SegmentFolder
from dala.media.video.writing.sink import Sink
from dala.media.video.writing.sink_opening import PictureSink, open_sink

Filters = Sequence[tuple[Filter, Mapping[str, Any]]]
CONTAINERS = {
    ".mp4": "mp4",
    ".m4v": "mp4",
    ".mov": "mov",
    ".mkv": "matroska",
    ".webm": "webm",
}


@record
class Progress:
    """The frames done so far, and the time spent in each stage."""

    frames: int
    of_frames: int | None
    read_s: float
    filter_s: float
    write_s: float


@record
class Summary:
    """The result of transcoding."""

    path: Path
    frames: int
    resumed_frames: int
    size: tuple[int, int]
    """Width and height as a player shows it."""


def transcode(
    source: str | os.PathLike[str] | Source,
    target: str | os.PathLike[str],
    filters: Any = (),
    *,
    codec: str | None = None,
    quality: float | None = None,
    preset: str | None = None,
    size: tuple[int | None, int | None] | str | WantedSize | None = None,
    start: float | None = None,
    end: float | None = None,
    resume: bool = False,
    sound: bool = True,
    rate: float | Fraction | None = None,
    raw_size: tuple[int, int] | None = None,
    raw_format: str | None = None,
    largest_pixels: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """Writes the video with filters applied to each frame; sound, subtitles and chapters are kept.

    A filter is a name, a kernel, or a function that is called with each frame as an array and with
    its time in seconds, and returns an array like it: u8, or u16 if the source has more than 8
    bits; RGB, or RGBA if it has transparency. Each is in the list by itself, or in a pair
    with its parameters.

    Source and target are files, folders of pictures, or `-` for raw frames on standard input and
    output; a source may also be open already. `codec` is h264, hevc, vp9, av1, ffv1 or prores, by
    default the suffix's; `quality` is 0 to 100, `preset` ultrafast to veryslow;
    `start` and `end` are seconds. `rate` is for sources without time stamps, and `raw_size` and
    `raw_format` are for raw frames: see `open_source` and `open_sink`; `largest_pixels` is for
    pictures: see `media.load`.

    `size` is (width, height) as a player shows it, or a string: "1280x720"; "640x" or "x360" to
    keep the aspect ratio; "50%"; "fit:640x360" to fit into that box, enlarging smaller videos;
    "fill:640x360" to cover the box, cropped around the center. Computed sides are rounded, to even
    numbers if the codec subsamples chroma.

    Bits per channel are kept, as far as the codec or the pictures have them: h264 and av1 have up
    to 10, hevc up to 12, ffv1 16, prores 10. Fewer bits are a LossWarning.

    Files appear under their name when they are complete. With `resume=True`, an interrupted run
    continues after its last finished segment, unless Python functions are among its filters: they
    cannot be told apart, so such a run starts again.
    """
    where, part = checked_path("a target", target), _checked_part(start, end)
    wanted = None if size is None else wanted_size("transcode", size)
    listed = listed_filters(filters)
    if where.suffix.lower() == ".avi":
        raise ArgumentError(f"{where}: an AVI keeps no times, and so no sound: write .mkv or .mp4.")
    if not isinstance(source, str | os.PathLike):
        opened, ours = source, False
    else:
        with _of_raw_frames():
            opened = open_source(
                source,
                rate=rate,
                size=raw_size,
                pixel_format=raw_format,
                largest_pixels=largest_pixels,
            )
        ours = True
    try:
        _refuse_own_source(opened, where)
        if where.suffix.lower() in CONTAINERS and os.fspath(target) != "-":
            encoding = encoding_for(where, opened.info.bits, codec, quality, preset)
            if opened.info.bits > bits_of(encoding.pixels):
                lost = cut_bits(opened.info.bits, bits_of(encoding.pixels))
                warn_of_loss(str(opened.path), [lost])
            run = _Run(opened, where, listed, encoding, wanted, part, resume=resume, sound=sound)
            return run.finish(progress)
        if resume:
            raise ArgumentError(f"{target} cannot be resumed: only runs that write video can.")
        if codec is not None or preset is not None:
            raise ArgumentError(
                f"{target} is no video: {argument('codec')} and {argument('preset')} are for those."
            )
        frames = FrameFilter(opened.info, None, listed, wanted)
        format = raw_format if os.fspath(target) == "-" else None
        made, given = frames.size, opened.info.rate
        with open_sink(target, made, given, pixel_format=format, quality=quality) as sink:
            if opened.info.bits > sink.bits:
                warn_of_loss(str(opened.path), [cut_bits(opened.info.bits, sink.bits)])
            if isinstance(sink, PictureSink) and isinstance(opened, Pictures):
                sink.metadata = (
                    opened.metadata
                )  # one picture from one picture: its metadata is kept
            return _written(opened, frames, sink, part, progress)
    except (DalaError, BrokenPipeError):
        raise
    except OSError as error:
        raise FileError(f"{target} cannot be written: {error.strerror or error}.") from error
    finally:
        if ours:
            opened.close()


def _written(
    source: Source,
    frames: FrameFilter,
    sink: Sink,
    part: tuple[float, float | None],
    progress: Callable[[Progress], None] | None,
) -> Summary:
    """Filters all frames into a sink."""
    watches = [Stopwatch() for _ in range(3)]
    behind: WriteBehind[tuple[np.ndarray, float]] = WriteBehind(
        lambda item: sink.write(*item), watches[2]
    )
    done = 0
    try:
        with read_ahead(_frames(source, part, None), watches[0]) as read:
            for frame in read:
                with watches[1].running():
                    image = frames.image(frame)
                behind.put((image, frame.time_s - part[0]))
                done += 1
                if progress is not None:
                    progress(_progress(source, part, done, watches))
        behind.close()
    except BaseException:
        behind.abandon()
        raise
    if not done:
        raise MediaError(f"{source.path} has no frame in the part that was asked for.")
    return Summary(sink.path, done, 0, frames.size)


def _frames(
    source: Source, part: tuple[float, float | None], after_pts: int | None
) -> Iterator[VideoFrame]:
    """Yields the frames of a part, after a time stamp if one is given."""
    begin_s, end_s = part
    if after_pts is not None:
        begin_s = float((after_pts - source.first_pts) * source.time_base)
    if begin_s > 0:
        source.seek(begin_s)
    with _of_raw_frames():
        for frame in source:
            if end_s is not None and frame.time_s >= end_s:
                return
            if after_pts is None or frame.decoded.pts > after_pts:
                yield frame


def _refuse_own_source(source: Source, target: Path) -> None:
    """Raises ArgumentError if the target is a file that frames are read from."""
    if not target.is_file():
        return
    for path in getattr(source, "files", None) or [source.path]:
        if path.exists() and target.samefile(path):
            raise ArgumentError(f"{target} is the source itself: write to another name.")


def _of_raw_frames() -> AbstractContextManager[None]:
    """Makes errors about the source name `raw_size` and `raw_format` inside the block."""
    return renaming(size="raw_size", pixel_format="raw_format")


def _progress(
    source: Source, part: tuple[float, float | None], done: int, watches: list[Stopwatch]
) -> Progress:
    info, (start_s, end_s) = source.info, part
    expected = info.frame_count
    if start_s or end_s is not None:
        until_s = min(end_s or math.inf, info.duration_s or math.inf)
        expected = round((until_s - start_s) * info.rate) if until_s < math.inf else None
    return Progress(done, expected, *(watch.seconds for watch in watches))


class _Run:
    """One transcoding into a video file, with all arguments checked."""

    def __init__(
        self,
        video: Source,
        target: Path,
        filters: Filters,
        encoding: Encoding,
        size: WantedSize | None,
        part: tuple[float, float | None],
        *,
        resume: bool,
        sound: bool,
    ) -> None:
        self._video, self._target = video, target
        self._encoding, self._part = encoding, part
        self._filter = FrameFilter(video.info, encoding.pixels, filters, size)
        if not target.parent.is_dir():
            raise FileError(f"{target} cannot be written: there is no folder {target.parent}.")
        # Sound and subtitles come from a file: the source, or the first of a composition.
        self._sound = getattr(video, "sound", None) if sound else None
        fingerprint, identified = filter_fingerprint(filters)
        self._job = {
            "source": [repr(video), *file_stamp(video.path)],
            "filters": fingerprint,
            "encoder": [self._encoding.encoder, self._encoding.pixels, self._encoding.options],
            "size": None if size is None else str(size),
            "part": part,
            "segment": FRAMES_IN_SEGMENT,
        }
        self._resume, self._identified = resume, identified
        self._watches = [Stopwatch() for _ in range(3)]

    def finish(self, progress: Callable[[Progress], None] | None) -> Summary:
        """Writes the missing segments, then the file."""
        folder = SegmentFolder(
            self._target, self._job, resume=self._resume, identified=self._identified
        )
        self._filter.restore(folder.state())
        done = resumed = sum(segment.frames for segment in folder.segments)
        try:
            with closing(self._segments(folder)) as counts:
                for count in counts:
                    done += count
                    if progress is not None:
                        progress(_progress(self._video, self._part, done, self._watches))
        except BaseException:
            if not folder.is_worth_keeping:
                folder.remove()
            raise
        if not done:
            folder.remove()
            raise MediaError(f"{self._video.path} has no frame in the part that was asked for.")
        draft = folder.path / f"whole{self._target.suffix}"
        origin_s = float(self._video.first_pts * self._video.time_base)
        extras = SourceExtras(self._sound, origin_s, *self._part, self._video.info.rotation)
        format = CONTAINERS[self._target.suffix.lower()]
        frame_format = self._frame_format()
        mux_segments(draft, format, folder.segments, self._encoding, frame_format, extras)
        replace_file(draft, self._target)
        folder.remove()
        return Summary(self._target, done, resumed, self._filter.shown_size)

    def _segments(self, folder: SegmentFolder) -> Generator[int, None, None]:
        """Encodes segments; yields 1 for each filtered frame."""
        last = folder.segments[-1].last_pts if folder.segments else None
        read, filtering, write = self._watches
        with read_ahead(_frames(self._video, self._part, last), read) as frames:
            while True:
                frame: VideoFrame | None = next(frames, None)
                if frame is None:
                    return
                encoder = Encoder(self._encoding, self._frame_format())
                file = PacketFile(folder.unfinished())
                behind = WriteBehind(partial(_write, file, encoder), write)
                count = 0
                try:
                    while frame is not None:
                        with filtering.running():
                            filtered = self._filter(frame)
                        behind.put(filtered)
                        last, count = int(frame.decoded.pts), count + 1
                        yield 1
                        frame = next(frames, None) if count < FRAMES_IN_SEGMENT else None
                    behind.put(None)
                    behind.close()
                except BaseException:
                    behind.abandon()
                    raise
                finally:
                    file.close()
                assert last is not None
                folder.finish(count, last, self._filter.state())

    def _frame_format(self) -> FrameFormat:
        info = self._video.info
        return FrameFormat(self._filter.size, info.rate, self._video.time_base, info.colors)


def _write(file: PacketFile, encoder: Encoder, frame: Any) -> None:
    file.write(encoder.encode(frame))


def _checked_part(start: float | None, end: float | None) -> tuple[float, float | None]:
    """Returns the start and end in seconds."""
    for name, value in (("start", start), ("end", end)):
        if value is not None and (not isinstance(value, int | float) or not value >= 0):
            raise ArgumentError(f"{argument(name)} is in seconds, from 0 on, not {value!r}.")
    if start is not None and end is not None and end <= start:
        raise ArgumentError(f"the part ends ({end} s) before it begins ({start} s).")
    return float(start or 0), None if end is None else float(end)
