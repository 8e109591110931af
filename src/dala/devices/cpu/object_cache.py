"""Compiled objects on disk, for the next process: checked when read, never unpickled.

An entry is a magic line, the SHA-256 of its key and of its bytes, and the bytes. One that is cut
short, altered, made for another key or owned by somebody else is treated as if it were not there.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

_MAGIC = b"dala object 1\n"
_HEADER = len(_MAGIC) + 2 * hashlib.sha256().digest_size
_OFF = ("", "0", "off", "none")


def folder() -> Path | None:
    """The folder of the cache, or None where `DALA_CACHE_DIR` turns it off."""
    chosen = os.environ.get("DALA_CACHE_DIR")
    if chosen is not None:
        return None if chosen.lower() in _OFF else Path(chosen)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library/Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "dala"


def load(key: str) -> bytes | None:
    """The object stored for the key, or None."""
    path = _path(key)
    if path is None:
        return None
    try:
        if hasattr(os, "getuid") and path.stat().st_uid != os.getuid():
            return None
        entry = path.read_bytes()
    except OSError:
        return None
    data = entry[_HEADER:]
    return data if entry[:_HEADER] == _header(key, data) else None


def save(key: str, data: bytes) -> None:
    """Store an object; where the folder cannot be written, it is compiled again next time."""
    path = _path(key)
    if path is None:
        return
    # Not from tempfile: its import takes 4 ms, half of a first run from this cache.
    new = path.with_name(f".{path.name}-{os.getpid()}-{threading.get_ident()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new.write_bytes(_header(key, data) + data)
        new.replace(path)
    except OSError:
        with suppress(OSError):
            new.unlink(missing_ok=True)


def _path(key: str) -> Path | None:
    place = folder()
    return None if place is None else place / f"{_digest(key.encode()).hex()[:40]}.o"


def _header(key: str, data: bytes) -> bytes:
    return _MAGIC + _digest(key.encode()) + _digest(data)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
