"""Text files in UTF-8, read and written as a whole."""

from __future__ import annotations

import os

from dala.base.atomic_file import write_atomically
from dala.base.file_path import checked_path
from dala.errors import ArgumentError, FileError


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes the text to a file; where that fails, the file keeps its previous content."""
    write_atomically(checked_path("a file", path), text.encode("utf-8"))


def read_text(path: str | os.PathLike[str]) -> str:
    """Returns the text of a file."""
    source = checked_path("a file", path)
    try:
        return source.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"{source} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{source} is not text in UTF-8: {error}.") from error
