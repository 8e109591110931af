"""The disk cache of compiled objects: entries are verified when read, and never unpickled.

An entry is a magic line, the SHA-256 of its key and of its bytes, and the bytes. One that is
truncated, altered or made for another key counts as missing; so does one that another user owns or
may write, since its code is run. The folder is held to the same, and is opened before its entries,
so that it cannot be replaced in between.
"""

from __future__ import annotations

import hashlib
import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dala.base.atomic_file import replace_data
from dala.base.cache_folder import folder
from dala.base.printable import printable

_MAGIC = b"dala object 1\n"
_HEADER = len(_MAGIC) + 2 * hashlib.sha256().digest_size
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_HAS_OWNERS = hasattr(os, "getuid")
_BY_FOLDER = os.open in os.supports_dir_fd
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# Does not block on a pipe.
_READ = os.O_RDONLY | _PLAIN | getattr(os, "O_NONBLOCK", 0)

_told: set[Path] = set()
"""Folders whose refusal was reported: a process compiles many kernels."""


def fault_of(place: Path) -> str:
    """Returns why a folder is not trusted with executable code; empty if it is, or is missing."""
    try:
        return _fault(place.stat())
    except OSError:
        return ""


def load(key: str) -> bytes | None:
    """Returns the object stored for the key, or None."""
    with suppress(OSError), _opened(make=False) as place:
        if place is not None:
            entry = place.read(_name(key))
            data = entry[_HEADER:]
            return data if entry[:_HEADER] == _header(key, data) else None
    return None


def save(key: str, data: bytes) -> None:
    """Stores an object; if the folder is not writable, it is compiled again next time."""
    with suppress(OSError), _opened(make=True) as place:
        if place is not None:
            place.write(_name(key), _header(key, data) + data)


class _Place:
    """The folder, as an open descriptor where the system supports it."""

    def __init__(self, path: Path, number: int | None) -> None:
        self.path = path
        self.number = number

    def read(self, name: str) -> bytes:
        """Returns an entry's bytes; empty unless a regular file that only its owner may write."""
        with os.fdopen(os.open(self._located(name), _READ, dir_fd=self.number), "rb") as file:
            found = os.fstat(file.fileno())
            return file.read() if stat.S_ISREG(found.st_mode) and not _fault(found) else b""

    def write(self, name: str, data: bytes) -> None:
        """Writes an entry, which only this user may read."""
        replace_data(self._located(name), data, permissions=0o600, folder=self.number)

    def _located(self, name: str) -> Path:
        return self.path / name if self.number is None else Path(name)


@contextmanager
def _opened(*, make: bool) -> Iterator[_Place | None]:
    """Opens the folder of the cache; yields None if there is none that can be trusted."""
    path = folder()
    if path is None:
        yield None
        return
    if make:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) if _BY_FOLDER else None
    try:
        fault = _fault(path.stat() if number is None else os.fstat(number))
        if fault:
            _tell(path, fault)
        yield None if fault else _Place(path, number)
    finally:
        if number is not None:
            os.close(number)


def _fault(found: os.stat_result) -> str:
    """Returns who else may have written there."""
    if not _HAS_OWNERS:
        return ""
    if found.st_uid != os.getuid():
        return f"user {found.st_uid} owns it"
    if found.st_mode & _OTHERS_WRITE:
        return f"others may write it (mode {stat.S_IMODE(found.st_mode):03o})"
    return ""


def _tell(path: Path, fault: str) -> None:
    if path not in _told:
        _told.add(path)
        warnings.warn(
            f"compiled kernels are neither read from {printable(path)} nor kept there, because "
            f"{fault}, and what is in it would be run. Give it to you alone (chmod go-w), or set "
            f"DALA_CACHE_DIR to another folder, or to off.",
            RuntimeWarning,
            stacklevel=2,
        )


def _name(key: str) -> str:
    return f"{_digest(key.encode()).hex()[:40]}.o"


def _header(key: str, data: bytes) -> bytes:
    return _MAGIC + _digest(key.encode()) + _digest(data)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
