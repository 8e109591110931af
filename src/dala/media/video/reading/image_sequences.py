"""Sources made of pictures: one file, numbered files, or an animation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dala.errors import FileError, MediaError
from dala.images.frames import levels_of, with_channels
from dala.images.text_rendering import require_pillow
from dala.ir.types import dtype_of
from dala.media.pictures.codec import text_of
from dala.media.pictures.files import load, read_picture, warn_of_loss
from dala.media.pictures.formats import FORMATS, opener
from dala.media.pictures.metadata import cut_bits
from dala.media.video.reading.uncompressed_source import UncompressedSource, uncompressed_info

_PATTERN = re.compile(r"%(?:0(\d+))?d")
_MILLISECOND = Fraction(1, 1000)
PIXELS = {2: "gray", 3: "rgb24", 4: "rgba"}
_DEEP_PIXELS = {2: "gray16le", 3: "rgb48le", 4: "rgba64le"}


def is_pattern(path: Path) -> bool:
    """Returns whether the name is a pattern for numbered pictures, such as `%05d.png`."""
    return path.suffix.lower() in FORMATS and len(_PATTERN.findall(path.name)) == 1


def name_of(pattern: str, number: int) -> str:
    """Returns the name of one of the numbered pictures."""
    return _PATTERN.sub(lambda found: f"{number:0{found[1] or 1}}", pattern)


def matching(pattern: Path) -> list[Path]:
    """Returns the existing files of a pattern, by number."""
    if not pattern.parent.is_dir():
        return []
    before, after = _PATTERN.split(pattern.name)[::2]
    wanted = re.compile(re.escape(before) + r"\d+" + re.escape(after))
    found = [item for item in pattern.parent.iterdir() if wanted.fullmatch(item.name)]
    return sorted(found, key=_natural)


def _natural(path: Path) -> list[Any]:
    """Returns a sort key that puts 2 before 10, and tells 01 from 1."""
    parts: list[Any] = re.split(r"(\d+)", path.name.casefold())
    parts[1::2] = [int(digits) for digits in parts[1::2]]
    return [*parts, path.name]


class Pictures(UncompressedSource):
    """A source of picture files, one for each frame, all of the first one's size."""

    def __init__(
        self, path: Path, files: list[Path], rate: Fraction, largest_pixels: int | None = None
    ) -> None:
        self.files = files
        self._largest_pixels = largest_pixels
        self._first, self.metadata = load(
            files[0], largest_pixels=largest_pixels, with_metadata=True
        )
        if len(files) > 1 and self._first.ndim == 2:
            self._first = with_channels(self._first, "rgb")
        height, width = self._first.shape[:2]
        channels = 2 if self._first.ndim == 2 else self._first.shape[2]
        codec = FORMATS.get(files[0].suffix.lower(), "picture").lower()
        is_deep = self._first.dtype == np.uint16
        pixels = (_DEEP_PIXELS if is_deep else PIXELS)[channels]
        bits = 16 if is_deep else 8
        info = uncompressed_info((width, height), rate, len(files), pixels, codec, bits)
        super().__init__(path, info, 1 / rate)

    @staticmethod
    def of_folder(path: Path, rate: Fraction, largest_pixels: int | None = None) -> Pictures:
        """Returns the pictures of a folder or a pattern, ordered by the numbers in their names."""
        if is_pattern(path) and not path.is_dir():
            files = matching(path)
            what = f"no file is there that is named as {path} says"
        else:
            files = sorted((item for item in path.iterdir() if _is_picture(item)), key=_natural)
            what = f"{path} has no picture in it ({', '.join(FORMATS)})"
        if not files:
            raise FileError(f"{what}: give a folder of frames.")
        return Pictures(path, files, rate, largest_pixels)

    def _arrays(self, begin_s: float) -> Iterator[tuple[int, np.ndarray]]:
        for number in range(int(begin_s * self.info.rate), len(self.files)):
            yield number, self._first if number == 0 else self._next(self.files[number])

    def _read(self, path: Path) -> np.ndarray:
        """Returns a picture after the first, without repeating the first one's warnings."""
        found = read_picture(path, largest_pixels=self._largest_pixels).pixels
        if found.itemsize > self._first.itemsize:
            warn_of_loss(str(path), [f"{cut_bits(16)}, as those of {self.files[0].name} are"])
        return levels_of(found, dtype_of(self._first.dtype))

    def _next(self, path: Path) -> np.ndarray:
        image, first = self._read(path), self._first
        if image.shape[:2] != first.shape[:2]:
            raise MediaError(
                f"{path} is {image.shape[1]} × {image.shape[0]}, but {self.files[0].name} is "
                f"{first.shape[1]} × {first.shape[0]}: all frames have to be of one size."
            )
        channels = first.shape[2]
        is_wider = image.ndim == 3 and image.shape[2] > channels
        if is_wider and (image[..., 3] != dtype_of(image.dtype).white).any():
            raise MediaError(
                f"{path} has transparency, but {self.files[0].name} has none: save all frames with "
                f"it, or none."
            )
        return with_channels(image, "rgba"[:channels])


def _is_picture(path: Path) -> bool:
    return path.suffix.lower() in FORMATS and not path.name.startswith(".") and path.is_file()


class Animation(UncompressedSource):
    """The frames of an animated WebP or AVIF, read by Pillow because PyAV cannot."""

    def __init__(self, path: Path, format: str, largest_pixels: int | None = None) -> None:
        require_pillow(f"an animated {format}")
        # Raises if it is too large, truncated, or damaged at its start.
        read_picture(path, largest_pixels=largest_pixels)
        self._path, self._opener = path, opener(str(path), format)
        with self._image() as image:
            count = int(image.n_frames)
            times = self._times(image, count)
            alpha = image.mode == "RGBA"
            size = image.size
        rate = Fraction(count * 1000, max(times[-1], 1)).limit_denominator(1001)
        info = uncompressed_info(size, rate, count, PIXELS[3 + alpha], format.lower())
        super().__init__(path, info, _MILLISECOND)

    def _image(self) -> Any:
        return self._opener(self._path)

    def _times(self, image: Any, count: int) -> list[int]:
        """Returns when each frame starts, and when the last ends, in ms."""
        times = [0]
        for number in range(count):
            self._load(image, number)
            times.append(times[-1] + max(int(image.info["duration"]), 1))
        return times

    def _load(self, image: Any, number: int) -> None:
        try:
            image.seek(number)
            image.load()
        except Exception as error:  # any error of the decoder is the file's fault
            raise MediaError(
                f"{self._path}: frame {number} cannot be decoded: {text_of(error)}."
            ) from error

    def _arrays(self, begin_s: float) -> Iterator[tuple[int, np.ndarray]]:
        ticks = 0
        with self._image() as image:
            for number in range(int(image.n_frames)):
                self._load(image, number)
                yield ticks, np.array(image)
                ticks += max(int(image.info["duration"]), 1)
