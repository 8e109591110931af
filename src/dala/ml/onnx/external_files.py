"""Files beside a model: below its folder, plain, by no link, and opened once.

What is checked of a file and what is read of it are so the same, whatever happens to its name.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dala.errors import FileError, ModelError, either

Result = TypeVar("Result")
# To be looked into a folder need not be listed.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_OTHER_FOLDER = re.compile(r"[/\\]|[A-Za-z]:|~")


class Outside:
    """The files that a model says its tensors are in: below its folder, plain, and by no link."""

    def __init__(self, folder: Path, links_within: Path | None = None) -> None:
        """Links are followed only where a folder is named that what they lead to lies in."""
        self.folder = folder
        self.links_within = None if links_within is None else links_within.resolve()
        self._files: dict[str, int] = {}

    def __enter__(self) -> Outside:
        return self

    def __exit__(self, *raised: object) -> None:
        for file in self._files.values():
            os.close(file)
        self._files.clear()

    def size_bytes(self, where: str, location: str) -> int:
        """Returns how long a file is, which is open from now on."""
        return os.fstat(self._opened(where, location)).st_size

    def read(self, where: str, location: str, offset: int, size_bytes: int) -> bytes:
        """That part of a file."""
        file = self._opened(where, location)
        found = bytearray()
        while len(found) < size_bytes:
            os.lseek(file, offset + len(found), os.SEEK_SET)
            part = os.read(file, min(size_bytes - len(found), 1 << 26))
            if not part:
                raise ModelError(f"{where} is in {location!r}, which has become shorter meanwhile.")
            found += part
        return bytes(found)

    def _opened(self, where: str, location: str) -> int:
        if location not in self._files:
            parts, root = _parts(where, location, self.folder), self.folder
            if self.links_within is not None:
                root = self.links_within
                parts = _parts_within(where, self.folder.joinpath(*parts), root)
            self._files[location] = self._open(where, root, parts)
        return self._files[location]

    def _open(self, where: str, root: Path, parts: tuple[str, ...]) -> int:
        """The file, by way of folders that are opened one in the other, so that none is a link."""
        path, holder = root, None
        if os.open in os.supports_dir_fd:
            holder = _opened(where, path, lambda: os.open(path, _FOLDER))
        try:
            for part in parts[:-1]:
                path = path / part
                inner = _open_plain(where, path, part, _FOLDER, holder)
                if holder is not None and inner is not None:
                    os.close(holder)
                    holder = inner
            path = path / parts[-1]
            file = _open_plain(where, path, parts[-1], _FILE, holder)
        finally:
            if holder is not None:
                os.close(holder)
        assert file is not None
        try:
            _check_file(where, path, os.fstat(file))
        except BaseException:
            os.close(file)
            raise
        return file


def _open_plain(where: str, path: Path, name: str, flags: int, holder: int | None) -> int | None:
    """What has that name in the folder that is open; where none can be, None for a folder."""
    place: str | Path = path if holder is None else name
    found = _opened(where, path, lambda: os.stat(place, dir_fd=holder, follow_symlinks=False))
    if stat.S_ISLNK(found.st_mode):
        raise ModelError(
            f"{where} is to be read from {path}, and {path.name} is a symbolic link, which is not "
            f"followed: put the file itself there"
            + either(", or name the folder that links may lead into by links_within=.", ".")
        )
    if holder is None and flags == _FOLDER:
        return None
    # In its place there may be a link by now, which is not followed either.
    return _opened(where, path, lambda: os.open(place, flags | _PLAIN, dir_fd=holder))


def _opened(where: str, path: Path, call: Callable[[], Result]) -> Result:
    try:
        return call()
    except OSError as error:
        raise FileError(
            f"{where} is in {path}, which cannot be read: {error.strerror or error}. That file has "
            f"to lie beside the model's."
        ) from error


def _check_file(where: str, path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ModelError(f"{where} is to be read from {path}, which is no plain file.")
    if found.st_nlink != 1:
        raise ModelError(
            f"{where} is to be read from {path}, which has {found.st_nlink} names (hard links), so "
            f"that it may be a file from elsewhere: put a copy there."
        )


def _parts_within(where: str, path: Path, root: Path) -> tuple[str, ...]:
    """The folders and the file that a path leads to by its links, below a folder."""
    found = path.resolve()
    if not found.is_relative_to(root) or found == root:
        raise ModelError(
            f"{where} is to be read from {path}, which leads to {found}: links are followed only "
            f"to what lies in {root}."
        )
    return found.relative_to(root).parts


def _parts(where: str, location: str, folder: Path) -> tuple[str, ...]:
    """Returns the folders and the file that a location names, below the model's folder."""
    # ONNX Runtime takes some names with a * for addresses in its memory.
    if not location or len(location) > 1024 or re.search(r"[\0*]", location):
        raise ModelError(f"{where} is to be read from {location[:80]!r}, which names no file.")
    if ".." in re.split(r"[/\\]", location) or _OTHER_FOLDER.match(location):
        raise ModelError(
            f"{where} is to be read from {location!r}: only files in the model's own folder "
            f"({folder}) are read. Put it there and name it by its plain name."
        )
    parts = Path(location).parts
    if not parts:
        raise ModelError(f"{where} is to be read from {location!r}, which is no plain file.")
    return parts
