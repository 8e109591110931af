"""Plans a batch: its source files, and the target of each."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path

from dala.base.record import record
from dala.base.suggestions import hint
from dala.errors import ArgumentError, FileError
from dala.media.pictures.formats import FORMATS
from dala.media.video.writing.encoding import SUFFIXES

_READ_ONLY = (".gif", ".mpg", ".mpeg", ".ts", ".mts", ".flv", ".ogv", ".wmv", ".3gp")
_WRITTEN = (*FORMATS, *SUFFIXES, ".gif")
TAKEN = (*FORMATS, *SUFFIXES, *_READ_ONLY)
"""The suffixes of files that are picked up from folders."""


@record
class Job:
    """A source file and its target."""

    source: Path
    target: Path


def plan(
    given: Sequence[str], out: str, *, to: str | None, recursive: bool, overwrite: bool = False
) -> list[Job]:
    """Returns a job for each file; raises ArgumentError if targets collide or overwrite sources."""
    suffix = None if to is None else f".{to.lower().lstrip('.')}"
    if suffix is not None and suffix not in _WRITTEN:
        known = [item.removeprefix(".") for item in _WRITTEN]
        raise ArgumentError(f"--to {to}: give one of {', '.join(known)}.{hint(suffix[1:], known)}")
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file: --out takes a folder.")
    jobs: dict[Path, Job] = {}
    for source, place in _sources(given, folder, recursive=recursive):
        target = folder / (place if suffix is None else place.with_suffix(suffix))
        known_job = jobs.get(target)
        if known_job is not None and known_job.source != source:
            raise ArgumentError(
                f"{known_job.source} and {source} would both become {target}: give their folder "
                f"instead, or run batch for each."
            )
        if target.suffix.lower() not in _WRITTEN and source.exists():
            raise ArgumentError(
                f"{source}: nothing is written as {target.suffix!r}: give another format, such as "
                f"--to mp4."
            )
        is_itself = target.exists() and source.exists() and target.samefile(source)
        if is_itself and not overwrite:
            raise ArgumentError(
                f"{target} would be written over itself: give another folder with --out, another "
                f"format with --to, or --overwrite."
            )
        jobs[target] = Job(source, target)
    if not jobs:
        raise FileError(f"there is no picture and no video in {', '.join(given)}.")
    return list(jobs.values())


def _sources(given: Sequence[str], out: Path, *, recursive: bool) -> Iterator[tuple[Path, Path]]:
    """Yields files with their paths relative to the output folder."""
    for text in given:
        path = Path(text)
        if path.is_dir():
            for found in _in_folder(path, out, recursive=recursive):
                yield found, found.relative_to(path)
        elif not path.exists() and glob.has_magic(text):
            matches = [Path(item) for item in sorted(glob.iglob(text, recursive=True))]  # noqa: PTH207  (a pattern may be absolute)
            files = [item for item in matches if item.is_file()]
            if not files:
                raise FileError(f"no file matches {text!r}.")
            yield from ((item, Path(item.name)) for item in files)
        else:
            yield path, Path(path.name)


def _in_folder(folder: Path, out: Path, *, recursive: bool) -> Iterator[Path]:
    made = out.resolve()
    is_inside = made != folder.resolve()  # else targets lie next to their sources
    for found in sorted(folder.rglob("*") if recursive else folder.iterdir()):
        inside = found.relative_to(folder)
        hidden = any(part.startswith(".") for part in inside.parts)
        taken = found.suffix.lower() in TAKEN and found.is_file()
        if taken and not hidden and not (is_inside and made in found.resolve().parents):
            yield found
