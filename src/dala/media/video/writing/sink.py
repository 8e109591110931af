"""The base of all sinks: frames of one size, in order, and output that appears when complete."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dala.errors import ArgumentError, ClosedError, FileError, MediaError, ShapeError
from dala.images.frames import frame_of, levels_of
from dala.kernels.image.sizes import GivenSize, exact_size

Opened = TypeVar("Opened", bound="Sink")
_NEARLY_S = 1e-6


def check_writable(path: Path) -> None:
    """Raises FileError unless the file's folder exists."""
    if not path.parent.is_dir():
        raise FileError(f"{path} cannot be written: there is no folder {path.parent}.")


class Sink(ABC):
    """Takes frames; `close` publishes the output, `abandon` discards it."""

    bits = 8
    """The most bits per channel that are kept."""

    def __init__(self, path: Path, size: GivenSize | None) -> None:
        self.path = path
        self.size = None if size is None else exact_size(str(path), size)
        self.frames = 0
        """The number of frames written so far."""
        self._last_s: float | None = None
        self._is_open = True

    def write(self, image: Any, time_s: float) -> None:
        """Adds a frame (RGB, RGBA or gray; u8, u16, f32 or f16), shown from that time on."""
        pixels = np.asarray(frame_of(self._what, image).pixels)
        if self.bits == 8:
            pixels = levels_of(pixels)
        if -_NEARLY_S < time_s < 0:
            time_s = 0.0  # rounding of time differences
        self._check((pixels.shape[1], pixels.shape[0]), time_s)
        self._write(pixels, time_s)
        self._count(time_s)

    @property
    def _what(self) -> str:
        return f"{self.path}: frame {self.frames}"

    def _check(self, size: tuple[int, int], time_s: float) -> None:
        if not self._is_open:
            raise ClosedError(f"{self.path} was closed: no more frames can be written to it.")
        if not size[0] or not size[1]:
            raise ShapeError(f"{self._what} is {size[0]} × {size[1]}: it has no pixels.")
        if self.size is not None and size != tuple(self.size):
            raise ShapeError(
                f"{self._what} is {size[0]} × {size[1]}, but the output is {self.size[0]} × "
                f"{self.size[1]}: resize it first."
            )
        if not isinstance(time_s, int | float) or not 0 <= time_s < float("inf"):
            raise ArgumentError(f"{self._what}: its time is in seconds from 0 on, not {time_s!r}.")
        if self._last_s is not None and time_s <= self._last_s:
            raise ArgumentError(
                f"{self._what} is shown at {time_s:g} s, but the one before it at "
                f"{self._last_s:g} s: frames are written in the order of their times."
            )
        self.size = size

    def _count(self, time_s: float) -> None:
        self._last_s = time_s
        self.frames += 1

    def close(self) -> None:
        """Publishes the output under its name; does nothing if it is closed."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            if not self.frames:
                raise MediaError(f"{self.path}: not a single frame was written to it.")
            self._finish()
        except BaseException as error:
            self._drop()
            if isinstance(error, OSError) and not isinstance(error, FileError | BrokenPipeError):
                raise FileError(
                    f"{self.path} cannot be written: {error.strerror or error}."
                ) from error
            raise

    def abandon(self) -> None:
        """Discards the output; does nothing if it is closed."""
        if self._is_open:
            self._is_open = False
            self._drop()

    @abstractmethod
    def _write(self, image: np.ndarray, time_s: float) -> None:
        """Writes a frame that was checked."""

    @abstractmethod
    def _finish(self) -> None:
        """Publishes the output."""

    @abstractmethod
    def _drop(self) -> None:
        """Discards what was written."""

    def __enter__(self: Opened) -> Opened:
        return self

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()
