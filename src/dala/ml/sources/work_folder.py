"""Folders in which models are downloaded and written, swept when whoever made them was killed."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

PREFIX = ".work-"
LOCK = "lock"
FORSAKEN_S = 86_400.0
"""After how long what nobody can be asked about is taken to be left behind."""
_OLD = re.compile(r"\..+\.onnx-\d+-\d+|\..+\.partial\.onnx")
"""What versions before this one called files that they had not finished."""


@contextmanager
def work_folder(place: Path) -> Iterator[Path]:
    """Yields a new folder inside of a place that is there, and removes it in the end.

    What others left that were killed is swept first: nobody holds the locks of their folders.
    """
    sweep(place)
    folder, lock = _made(place)
    try:
        yield folder
    finally:
        lock.close()
        shutil.rmtree(folder, ignore_errors=True)


def sweep(place: Path) -> None:
    """Removes what was left behind; what is still in use, or cannot be removed, stays."""
    for item in list(place.iterdir()):
        if item.name.startswith(PREFIX):
            if _is_forsaken(item):
                shutil.rmtree(item, ignore_errors=True)
        elif _OLD.fullmatch(item.name) and _age_s(item) > FORSAKEN_S:
            with suppress(OSError):
                item.unlink()


def _made(place: Path) -> tuple[Path, IO[bytes]]:
    while True:
        folder = place / f"{PREFIX}{os.urandom(8).hex()}"
        folder.mkdir()
        try:
            lock = (folder / LOCK).open("wb")
        except FileNotFoundError:  # swept before it was locked
            continue
        _lock(lock)
        if (folder / LOCK).exists():
            return folder, lock
        lock.close()


def _is_forsaken(folder: Path) -> bool:
    try:
        with (folder / LOCK).open("rb") as lock:
            held = _lock(lock)
    except OSError:  # made, and not locked yet; or killed in between
        held = None
    return _age_s(folder) > FORSAKEN_S if held is None else held


def _lock(file: IO[bytes]) -> bool | None:
    """Whether the lock could be had; None where files cannot be locked."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def _age_s(item: Path) -> float:
    try:
        return time.time() - item.lstat().st_mtime
    except FileNotFoundError:
        return 0.0
