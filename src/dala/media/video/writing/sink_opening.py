"""Opens sinks by name: pictures, folders, GIFs, videos, standard output."""

from __future__ import annotations

import os
import shutil
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dala.base.atomic_file import create_temporary_folder
from dala.base.file_path import checked_path
from dala.errors import ArgumentError, FileError, argument
from dala.kernels.image.sizes import GivenSize
from dala.media.pictures.files import save
from dala.media.pictures.formats import FORMATS, PICTURES
from dala.media.pictures.metadata import Metadata
from dala.media.video.reading import raw_frames
from dala.media.video.reading.frame_conversion import frame_from_image
from dala.media.video.reading.image_sequences import is_pattern, matching, name_of
from dala.media.video.reading.uncompressed_source import RATE, checked_rate
from dala.media.video.reading.video_info import ColorTags, standard_colors
from dala.media.video.writing.gif_sink import GifSink
from dala.media.video.writing.sink import Sink, check_writable
from dala.media.video.writing.video_writer import VideoWriter

NUMBERED = "%06d.png"
"""The names of the frames in a folder."""
_FULL = 2


def open_sink(
    path: str | os.PathLike[str],
    size: GivenSize | None = None,
    rate: float | Fraction = RATE,
    *,
    pixel_format: str | None = None,
    codec: str | None = None,
    quality: float | None = None,
    preset: str | None = None,
) -> Sink:
    """Opens a sink for frames; the name tells its kind.

    - `still.png`, also .jpg .webp .tif: one frame. More than one is an error.
    - `frames/`, a name without a suffix, or an existing empty folder: numbered PNGs.
      `frames/%05d.jpg`: numbered pictures of other formats, in an existing folder.
    - `clip.gif`: loops forever, at up to 50 frames per second, the most that players show.
    - `clip.mp4` and the like: a video, see `media.writer`.
    - `-`: raw frames on standard output; `pixel_format` is rgba (default), rgb, gray or yuv420p.

    `size` is (width, height), by default that of the first frame. All but `-` appear under their
    name on `close`, and not at all on `abandon`; an error inside `with` abandons.
    """
    where = checked_path("a sink", path)
    name, per_second = os.fspath(path), checked_rate(rate)
    if name == "-":
        return RawSink(size, pixel_format or "rgba")
    if pixel_format is not None:
        raise ArgumentError(
            f"{name}: {argument('pixel_format')} is for raw frames on standard output (-); leave "
            f"it out."
        )
    suffix = where.suffix.lower()
    is_picture = suffix in FORMATS and not where.is_dir() and not name.endswith(("/", os.sep))
    if is_pattern(where) and is_picture:
        return NumberedSink(where, size, _whole(quality))
    if is_picture:
        return PictureSink(where, size, _whole(quality))
    if suffix == ".gif" and not where.is_dir():
        return GifSink(where, size, per_second)
    if not suffix or where.is_dir() or name.endswith(("/", os.sep)):
        return FolderSink(where, size)
    return VideoWriter(where, size, per_second, codec, quality, preset)


def _bits_of(path: Path) -> int:
    """Returns the most bits per channel that a picture of that name has."""
    return PICTURES[FORMATS[path.suffix.lower()]].bits


def _whole(quality: float | None) -> int | None:
    return None if quality is None else max(1, round(quality))


class PictureSink(Sink):
    """A picture file, for one frame."""

    def __init__(self, path: Path, size: GivenSize | None, quality: int | None) -> None:
        super().__init__(path, size)
        check_writable(path)
        self.bits = _bits_of(path)
        self._quality = quality
        self._image: np.ndarray | None = None
        self.metadata: Metadata | None = None
        """The metadata to save with the picture."""

    def _write(self, image: np.ndarray, time_s: float) -> None:
        if self._image is not None:
            raise ArgumentError(
                f"{self.path} is a picture, but there is more than one frame: name a folder, such "
                f"as {self.path.with_suffix('')}/, a pattern, such as "
                f"{self.path.with_stem(self.path.stem + '-%05d')}, or a video."
            )
        self._image = image.copy()

    def _finish(self) -> None:
        save(self._image, self.path, quality=self._quality, metadata=self.metadata)

    def _drop(self) -> None:
        self._image = None


class NumberedSink(Sink):
    """Numbered pictures, which appear together."""

    def __init__(self, pattern: Path, size: GivenSize | None, quality: int | None) -> None:
        super().__init__(pattern, size)
        check_writable(pattern)
        self.bits = _bits_of(pattern)
        there = matching(pattern)
        if there:
            raise FileError(
                f"{pattern}: {there[0].name} is there already, and would be mixed with new frames: "
                f"remove such files first, or give another name."
            )
        self._quality = quality
        self._folder = create_temporary_folder(pattern)

    def _write(self, image: np.ndarray, time_s: float) -> None:
        target = self._folder / name_of(self.path.name, self.frames)
        save(image, target, quality=self._quality)

    def _finish(self) -> None:
        for file in sorted(self._folder.iterdir()):
            file.replace(self.path.parent / file.name)
        self._folder.rmdir()

    def _drop(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class FolderSink(Sink):
    """A folder of numbered PNGs, which appears when complete."""

    def __init__(self, path: Path, size: GivenSize | None) -> None:
        super().__init__(path, size)
        self.bits = _bits_of(Path(NUMBERED))
        self._target = path.resolve()
        check_writable(self._target)
        if self._target.exists() and not self._target.is_dir():
            raise FileError(f"{path} is a file, not a folder: give another name.")
        if self._target.is_dir() and any(self._target.iterdir()):
            raise FileError(
                f"{path} is a folder with files in it, which would be mixed with new frames: give "
                f"the name of a new one, or empty it."
            )
        self._folder = create_temporary_folder(self._target)

    def _write(self, image: np.ndarray, time_s: float) -> None:
        save(image, self._folder / name_of(NUMBERED, self.frames))

    def _finish(self) -> None:
        if self._target.is_dir():
            self._target.rmdir()  # raises if it is no longer empty
        self._folder.rename(self._target)

    def _drop(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class RawSink(Sink):
    """Raw frames on standard output; raises BrokenPipeError when the reader is gone."""

    def __init__(self, size: GivenSize | None, pixel_format: str) -> None:
        super().__init__(Path("-"), size)
        raw_frames.checked_raw_size("standard output", size or (2, 2), pixel_format)
        if sys.stdout.isatty():
            raise ArgumentError(
                "standard output is a terminal, which cannot show raw frames: send it to a program "
                "or a file, or name a file instead of -."
            )
        self._format = pixel_format
        self._stream = sys.stdout.buffer

    def _write(self, image: np.ndarray, time_s: float) -> None:
        height, width = image.shape[:2]
        raw_frames.checked_raw_size("standard output", (width, height), self._format)
        frame = np.ascontiguousarray(self._converted(image, height))
        self._stream.write(frame.data.cast("B"))
        self._stream.flush()

    def _converted(self, image: np.ndarray, height: int) -> np.ndarray:
        channels = 1 if image.ndim == 2 else image.shape[2]
        wanted = {"gray": 1, "rgb": 3, "rgba": 4}.get(self._format)
        if channels == wanted:
            return image
        if wanted == 3 and channels == 4:
            return image[..., :3]
        colors = standard_colors(height)
        if wanted is not None:
            colors = ColorTags(colors.primaries, colors.transfer, colors.matrix, _FULL)
        frame: Any = frame_from_image(image, raw_frames.FORMATS[self._format], colors)
        return np.asarray(frame.to_ndarray())

    def _finish(self) -> None:
        self._stream.flush()

    def _drop(self) -> None:
        """Does nothing: what was sent cannot be taken back."""
