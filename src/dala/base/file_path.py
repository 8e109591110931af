"""Paths that callers pass as arguments."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dala.errors import ArgumentError


def checked_path(subject: str, given: Any) -> Path:
    """Returns the path; raises ArgumentError where it cannot name a file.

    `subject` is what the path is for, as an error begins: "a picture file".
    """
    if not isinstance(given, str | os.PathLike) or not os.fspath(given):
        raise ArgumentError(f"{subject} is named by a string or a path, not by {given!r}.")
    if "\0" in os.fsdecode(given):
        raise ArgumentError(f"{given!r} cannot name {subject}: it contains a NUL character.")
    return Path(os.fsdecode(given))
