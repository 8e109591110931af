"""The model that a filter is told to use: one that is loaded, a name, or a file."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from dala.devices.cpu.threads import thread_count
from dala.errors import ArgumentError, argument
from dala.ml.models.loading import load_model
from dala.ml.models.model import Model

MOST_MODELS = 4
"""Models that stay loaded for the next frame, the latest ones."""


def chosen_model(what: str, given: Any, like: str | None = None) -> Model:
    """The model; one that was loaded for an earlier frame is used again, if its file is the same.

    A file is fed and read as `like` is, a model of the catalog.
    """
    if isinstance(given, Model):
        if like is not None:
            raise ArgumentError(
                f"{what}: {argument('like', repr(like))} is for files, but {given.name} is loaded: "
                f"leave it out."
            )
        return given
    if not isinstance(given, str | os.PathLike):
        raise ArgumentError(
            f"{what}: model is a name such as 'yolo_v5', the path of an ONNX file, or what "
            f"load_model() gives, not {given!r}."
        )
    source = given if isinstance(given, str) else Path(given)
    return _kept(source, like, _stamp(Path(given)), thread_count())


def _stamp(path: Path) -> tuple[int, int] | None:
    """Returns what changes when a file does."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size


@lru_cache(MOST_MODELS)
def _kept(
    source: str | Path,
    like: str | None,
    stamp: tuple[int, int] | None,
    threads: int,
) -> Model:
    return load_model(source, like)
