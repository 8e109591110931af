"""Cameras, read in a thread so that the newest frame is always available."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from dala.base.printable import printable
from dala.errors import ArgumentError, ClosedError, DeviceError, FileError, MediaError
from dala.kernels.image.sizes import GivenSize, exact_size
from dala.media.video.reading.decoded_frame import VideoFrame
from dala.media.video.reading.pyav import pyav
from dala.media.video.reading.uncompressed_source import RATE, checked_rate, uncompressed_info
from dala.media.video.reading.video_file import VideoFile
from dala.media.video.reading.video_info import VideoInfo

_TICK = Fraction(1, 1_000_000)
_JOIN_S = 2.0
"""How long `close` waits for an unresponsive camera."""


def camera(
    device: int | str | os.PathLike[str] = 0,
    size: GivenSize | None = None,
    rate: float | None = None,
) -> Camera:
    """Opens a camera by number (0 is the first) or by name (/dev/video0).

    `size` (width, height) and `rate` are requests: the camera takes its nearest mode, which `info`
    has. A video file can stand in for a camera, and is read at its own rate, or at `rate`.

    >>> from dala import media
    >>> with media.camera() as live:  # doctest: +SKIP
    ...     for frame in live:
    ...         show(frame.image())
    """
    return Camera(device, size, rate)


class Camera:
    """A source of live frames; only the newest waits to be read.

    A frame's `index` counts all frames of the camera, `time_s` is seconds from the first.
    Iteration ends when the camera is unplugged, and at the end of a file.
    """

    time_base = _TICK
    first_pts = 0

    def __init__(
        self,
        device: int | str | os.PathLike[str],
        size: GivenSize | None,
        rate: float | None,
    ) -> None:
        asked = None if size is None else exact_size("camera", size)
        is_file = _check_device(device)
        self.path = Path(f"camera {device}") if isinstance(device, int) else Path(device)
        wished = None if rate is None else checked_rate(rate)
        pyav()
        self._capture: Any = _opened(device, self.path, asked, wished)
        taken, first = self._capture.read()
        if not taken:
            self._capture.release()
            raise DeviceError(
                f"{self.path} was opened, but gives no picture: see that no other program uses it, "
                f"unplug it and plug it in again."
            )
        self.info = self._described(first, wished)
        self.dropped = 0
        """The number of frames replaced by newer ones before they were read."""
        self._start_s = time.perf_counter()
        self._newest: VideoFrame | None = self._framed(first, 0)
        self._count = 1
        self._error: BaseException | None = None
        self._ended = self._stop = False
        self._closed = False
        self._changed = threading.Condition()
        self._interval_s = float(1 / self.info.rate) if is_file else 0.0
        self._thread = threading.Thread(target=self._run, name="dala-camera", daemon=True)
        self._thread.start()

    def _described(self, first: Any, wished: Fraction | None) -> VideoInfo:
        import cv2

        said = self._capture.get(cv2.CAP_PROP_FPS)
        rate = wished or (checked_rate(said) if 0 < said <= 1000 else RATE)
        height, width = first.shape[:2]
        return uncompressed_info((width, height), rate, None, "bgr24", "camera")

    # -- in its own thread -----------------------------------------------------------------------

    def _run(self) -> None:
        error = None
        try:
            while not self._stop:
                if self._interval_s and not self._await_turn():
                    break
                taken, pixels = self._capture.read()
                if not taken:
                    break
                self._offer(self._framed(pixels, self._count))
        except BaseException as raised:  # whoever reads the next frame raises it
            error = raised
        self._capture.release()
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def _await_turn(self) -> bool:
        """Waits until a file's next frame is due; returns False if the camera was closed."""
        due_s = self._start_s + self._count * self._interval_s
        with self._changed:
            self._changed.wait_for(lambda: self._stop, max(0.0, due_s - time.perf_counter()))
            return not self._stop

    def _offer(self, frame: VideoFrame) -> None:
        with self._changed:
            self.dropped += self._newest is not None
            self._newest = frame
            self._count += 1
            self._changed.notify_all()

    def _framed(self, pixels: Any, index: int) -> VideoFrame:
        time_s = time.perf_counter() - self._start_s if index else 0.0
        if pixels.ndim == 2 or pixels.shape[2] != 3:
            raise MediaError(f"{self.path} gives frames of shape {pixels.shape}, not colors.")
        decoded = pyav().VideoFrame.from_ndarray(pixels, format="bgr24")
        decoded.pts, decoded.time_base = int(time_s / _TICK), _TICK
        return VideoFrame(decoded, index, time_s)

    # -- for whoever reads -----------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """Whether no more frames will come."""
        with self._changed:
            return self._closed or (self._ended and self._newest is None)

    def read(self, timeout_s: float | None = None) -> VideoFrame | None:
        """Returns the newest frame, waiting for one that was not read yet.

        Returns None if none came within that time, or if no more will come: see `ended`.
        """
        if timeout_s is not None and (not isinstance(timeout_s, int | float) or not timeout_s >= 0):
            raise ArgumentError(f"read: timeout_s is seconds from 0 on, not {timeout_s!r}.")
        with self._changed:
            if self._closed:
                raise ClosedError(f"{self.path} was closed: open it again with media.camera().")
            self._changed.wait_for(
                lambda: self._newest is not None or self._ended or self._closed, timeout_s
            )
            frame, self._newest = self._newest, None
            if frame is None and self._error is not None:
                raise MediaError(f"{self.path} cannot be read: {self._error}.") from self._error
            return frame

    def seek(self, time_s: float) -> None:
        """Does nothing for 0; raises ArgumentError for other times: a camera is live."""
        if time_s != 0:
            raise ArgumentError(f"{self.path}: a camera begins now, not at {time_s!r} s.")

    def __iter__(self) -> Iterator[VideoFrame]:
        while not self._closed and (frame := self.read()) is not None:
            yield frame

    def close(self) -> None:
        """Closes the camera; does nothing if it is closed."""
        with self._changed:
            self._stop = self._closed = True
            self._newest = None
            self._changed.notify_all()
        self._thread.join(_JOIN_S)

    def __enter__(self) -> Camera:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Camera {printable(self.path)} {self.info.width} × {self.info.height}>"


def _check_device(device: Any) -> bool:
    """Returns whether the device is a file; raises if it is neither a file nor a camera."""
    if isinstance(device, bool) or not isinstance(device, int | str | os.PathLike) or device == "":
        raise ArgumentError(f"a camera is a number from 0 on, or a path, not {device!r}.")
    if isinstance(device, int) and device < 0:
        raise ArgumentError(f"cameras are counted from 0 on, not {device}.")
    if isinstance(device, int):
        return False
    path = Path(device)
    if not path.exists():
        raise FileError(f"{path} is not there. {_advice()}")
    if path.is_file():
        # OpenCV follows playlists to wherever they lead; this refuses them.
        VideoFile(path).close()
        return True
    return False


def _opened(device: Any, path: Path, size: tuple[int, int] | None, rate: Fraction | None) -> Any:
    try:
        import cv2
    except ImportError as error:
        raise MediaError(
            'a camera needs OpenCV, which is not installed: pip install "dala-gpu[camera]".'
        ) from error
    with _quiet(cv2):
        capture = cv2.VideoCapture(device if isinstance(device, int) else str(path))
        if not capture.isOpened():
            raise DeviceError(f"{path} cannot be opened: it is not there, or in use. {_advice()}")
        if size is not None:
            capture.set(cv2.CAP_PROP_FRAME_WIDTH, size[0])
            capture.set(cv2.CAP_PROP_FRAME_HEIGHT, size[1])
        if rate is not None:
            capture.set(cv2.CAP_PROP_FPS, float(rate))
        # One frame at most waits in the driver: an older one is of no use.
        capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)
    return capture


def _advice() -> str:
    found = sorted(str(item) for item in Path("/dev").glob("video*"))
    there = f"This machine has {', '.join(found)}." if found else "No camera was found here."
    return f"{there} Plug one in, close other programs that use it, or give another number."


@contextmanager
def _quiet(cv2: Any) -> Iterator[None]:
    """Silences OpenCV's log inside the block."""
    logging = cv2.utils.logging
    level = logging.getLogLevel()
    logging.setLogLevel(logging.LOG_LEVEL_SILENT)
    try:
        yield
    finally:
        logging.setLogLevel(level)
