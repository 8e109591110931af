"""Text files that are written whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from dala.errors import ArgumentError, FileError


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Put the text into a file; where that fails, what was there before stays as it was."""
    target = _path(path)
    try:
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")  # a device or a pipe is not replaced
        else:
            _replace(target.resolve(), text)
    except OSError as error:
        raise FileError(f"{target} cannot be written: {error.strerror or error}.") from error


def _replace(target: Path, text: str) -> None:
    aside = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        with aside.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        aside.replace(target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file."""
    source = _path(path)
    try:
        return source.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"{source} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{source} is not text in UTF-8: {error}.") from error


def _path(given: str | os.PathLike[str]) -> Path:
    if not isinstance(given, str | os.PathLike) or not os.fspath(given):
        raise ArgumentError(f"a file is named by a text or a path, not by {given!r}.")
    if "\0" in os.fspath(given):
        raise ArgumentError(f"{given!r} names no file: it has a NUL in it.")
    return Path(given)
