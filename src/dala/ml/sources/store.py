"""Converted models on disk: one file each, checked whenever it is asked for."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Literal

from dala.base import cache_folder
from dala.base.atomic_file import replace_file
from dala.errors import FetchError, FileError, IntegrityError
from dala.ml.catalog.entries import Entry
from dala.ml.catalog.packages import Package
from dala.ml.sources.work_folder import work_folder

FOLDER = "DALA_MODELS"
"""The variable that names another folder for models."""
State = Literal["here", "missing", "damaged"]


def folder() -> Path:
    """Returns where models are kept: `DALA_MODELS`, else beside the compiled kernels."""
    chosen = os.environ.get(FOLDER)
    if chosen:
        return Path(chosen).expanduser()
    root = cache_folder.folder()
    if root is None:
        raise FetchError(
            f"there is no place for models: DALA_CACHE_DIR is {os.environ['DALA_CACHE_DIR']!r}, "
            f"which turns the cache off. Set {FOLDER} to a folder for them."
        )
    return root / "models"


def path_of(entry: Entry) -> Path:
    """Where the model is, or will be. Another conversion, of another hash, has another name."""
    return folder() / f"{entry.name}-{entry.sha256[:12]}.onnx"


def state(entry: Entry) -> State:
    """Returns whether the model is here, and whole."""
    found = digest_of(path_of(entry))
    if found is None:
        return "missing"
    return "here" if found == entry.sha256 else "damaged"


def find(entry: Entry) -> Path | None:
    """Returns the model's file, or None; one that is damaged is removed, with an IntegrityError."""
    path = path_of(entry)
    found = digest_of(path)
    if found is None:
        return None
    _check(entry, found)
    return path


def read(entry: Entry) -> bytes | None:
    """Returns the model itself, or None: the bytes that were checked, whatever becomes of the file.

    One that is damaged is removed, with an IntegrityError.
    """
    path = path_of(entry)
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.") from error
    _check(entry, hashlib.sha256(data).hexdigest())
    return data


def _check(entry: Entry, found: str) -> None:
    """Remove and refuse a file of another hash than the model's."""
    if found == entry.sha256:
        return
    remove(entry)
    raise IntegrityError(
        f"{entry.name}: {path_of(entry)} was damaged, and has been removed: its SHA-256 was "
        f"{found}, not {entry.sha256}. Load the model again, or run dala models get {entry.name}: "
        "it is fetched anew."
    )


def store(entry: Entry, data: bytes) -> Path:
    """Keep a converted model; other processes see all of it, or nothing."""
    found = hashlib.sha256(data).hexdigest()
    if found != entry.sha256:
        raise IntegrityError(
            f"{entry.name}: it was converted to a file whose SHA-256 is {found}, not "
            f"{entry.sha256}. {_versions()} Nothing was kept. The files that it was made of are as "
            "they were published, so this is a mistake in dala: please report it."
        )
    path = path_of(entry)
    _make(path.parent)
    try:
        with work_folder(path.parent) as work:
            made = work / path.name
            made.write_bytes(data)
            replace_file(made, path)
    except OSError as error:
        raise FileError(f"{entry.name} cannot be kept in {path}: {error.strerror}.") from error
    return path


def remove(entry: Entry) -> None:
    """Forget what is kept of a model."""
    path = path_of(entry)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(
            f"{entry.name}: {path} is damaged, and cannot be removed: {error.strerror}. Remove it, "
            f"or set {FOLDER} to another folder."
        ) from error


@contextmanager
def locked(package: Package) -> Iterator[None]:
    """One process at a time downloads a package; the others find what it kept."""
    _make(folder())
    name = f".{package.name.strip('@').replace('/', '-')}-{package.version}.lock"
    with _opened(folder() / name) as file:
        try:
            import fcntl
        except ImportError:  # Windows: both download, and what is kept is whole all the same
            yield
            return
        with suppress(OSError):  # a file system without locks: likewise
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _opened(lock: Path) -> IO[str]:
    try:
        return lock.open("w")
    except OSError as error:
        raise FileError(
            f"models cannot be kept in {lock.parent}: {lock.name} cannot be written: "
            f"{error.strerror}. Set {FOLDER} to another folder."
        ) from error


def digest_of(path: Path) -> str | None:
    """Returns the SHA-256 of a file; None where there is none."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.") from error


def _make(place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
        writable = os.access(place, os.W_OK)
    except OSError as error:
        raise FileError(
            f"models cannot be kept in {place}: {error.strerror}. Set {FOLDER} to another folder."
        ) from error
    if not writable:
        raise FileError(
            f"models cannot be kept in {place}, which may not be written. Set {FOLDER} to another "
            "folder."
        )


def _versions() -> str:
    from importlib.metadata import version

    return f"onnx is {version('onnx')}, NumPy {version('numpy')}."
