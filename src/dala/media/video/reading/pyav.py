"""Access to PyAV, with its errors translated."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dala.errors import FileError, MediaError
from dala.media.pictures import containers
from dala.media.pictures.formats import PICTURES, listed

FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,gif,apng,mpegts,mpeg,mpegvideo,flv,ogg,asf,nut,mxf,ivf,"
    "h264,hevc,obu,yuv4mpegpipe,wav,mp3,aac,flac"
)
"""The demuxers that are allowed: none that refers to other files."""
_OPTIONS = {"protocol_whitelist": "file", "format_whitelist": FORMATS}
_REFERRING = (b"#EXTM3U", b"ffconcat", b"<MPD", b"[playlist]", b"<?xml")


def pyav() -> Any:
    """Returns PyAV; raises MediaError if it is not installed."""
    try:
        import av
    except ImportError as error:
        raise MediaError(
            'video needs PyAV, which is not installed: pip install "dala-gpu[media]".'
        ) from error
    return av


@contextmanager
def translated_errors(path: object) -> Iterator[None]:
    """Turns PyAV's errors inside the block into a MediaError that names the file."""
    av = pyav()
    try:
        yield
    except av.error.FFmpegError as error:
        reason = error.strerror or str(error)
        raise MediaError(f"{path} cannot be read: {reason}.") from error


def open_container(path: str | os.PathLike[str]) -> Any:
    """Opens the container of a local file, and no other file that it may refer to."""
    found = Path(path)
    _check_file(found)
    av = pyav()
    try:
        return av.open(f"file:{found}", options=_OPTIONS, metadata_errors="replace")
    except av.error.FFmpegError as error:
        raise MediaError(f"{found} {_reason(found, error)}") from error


def _check_file(path: Path) -> None:
    if not path.exists():
        raise FileError(f"{path} is not there.")
    if path.is_dir():
        raise FileError(f"{path} is a folder, not a video.")
    if not path.stat().st_size:
        raise MediaError(f"{path} is empty: it has no bytes at all.")


def _reason(path: Path, error: Any) -> str:
    """Returns why a file cannot be opened, judging by its first bytes."""
    with path.open("rb") as file:
        head = file.read(512)
    if any(mark in head[:64] for mark in _REFERRING):
        return (
            "cannot be read as video: it is a playlist, which names other files or addresses; only "
            "files that hold their frames themselves are opened. Give one of those."
        )
    other = containers.other_format(head)
    if other is not None:
        pictures = listed(PICTURES.values())
        return (
            f"is none of the videos that are read, and of the pictures only {pictures} are: it "
            f"seems to be {other}. Convert it first."
        )
    return f"cannot be read as video: {error.strerror or error}. It is damaged, cut off, or none."
