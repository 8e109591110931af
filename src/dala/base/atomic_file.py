"""Files that appear under their name complete, or not at all.

Data is written to a temporary file in the target's folder, and an atomic rename puts it in place.
A failure at any point before the rename leaves what the target held before. The temporary name is
unpredictable, so that nobody can place a link there beforehand.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dala.errors import FileError

_MAX_STEM_CHARACTERS = 32
_MAX_SUFFIX_CHARACTERS = 16
_BINARY = getattr(os, "O_BINARY", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY


def temporary_path(target: Path) -> Path:
    """Returns an unused hidden path next to the target, with the target's suffix.

    Names are cut short: a target whose own name is as long as the file system allows still works.
    """
    stem = target.stem[:_MAX_STEM_CHARACTERS]
    suffix = target.suffix if len(target.suffix) <= _MAX_SUFFIX_CHARACTERS else ""
    # Not from tempfile: its import takes 4 ms.
    return target.with_name(f".{stem}.{os.urandom(8).hex()}.partial{suffix}")


def create_temporary_folder(target: Path) -> Path:
    """Creates an empty temporary folder next to the target; raises FileError where it cannot."""
    path = temporary_path(target)
    try:
        path.mkdir()
    except OSError as error:
        raise _unwritable(target, error) from error
    return path


def replace_file(temporary: Path, target: Path) -> None:
    """Renames a complete temporary file to its target.

    Where that replaces a file, the data is flushed first: a rename that reached the disk before
    the data would lose both versions in a power failure.
    """
    if target.exists():
        descriptor = os.open(temporary, os.O_RDWR | _BINARY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    temporary.replace(target)


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yields a path to write to, which is renamed to the target unless the block fails."""
    temporary = temporary_path(target)
    try:
        yield temporary
        replace_file(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def replace_data(
    target: Path, data: bytes, *, permissions: int = 0o666, folder: int | None = None
) -> None:
    """Writes a file and renames it to its target; raises OSError where that fails.

    With `folder`, the descriptor of an open folder, the target is a name in it.
    """
    temporary = temporary_path(target)
    descriptor = os.open(temporary, _CREATE, permissions, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if _exists(target, folder):
                file.flush()
                os.fsync(descriptor)
        os.replace(temporary, target, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file; raises FileError, and keeps the previous content, where that fails.

    Symbolic links are followed. Devices and pipes are written to directly.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)
        else:
            replace_data(path.resolve(), data)
    except OSError as error:
        raise _unwritable(path, error) from error


def _exists(path: Path, folder: int | None) -> bool:
    try:
        os.stat(path, dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


def _unwritable(path: Path, error: OSError) -> FileError:
    return FileError(f"{path} cannot be written: {error.strerror or error}.")
