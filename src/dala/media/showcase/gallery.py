"""Writes the gallery: a page that shows every filter applied to the sample picture."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dala import __version__
from dala.base.atomic_file import create_temporary_folder
from dala.base.file_path import checked_path
from dala.base.text_file import write_text
from dala.devices import current_device
from dala.errors import FileError
from dala.media.gpu import apply_filter, filters
from dala.media.pictures import files
from dala.media.showcase import gallery_page, sample
from dala.media.showcase.filter_examples import CUBE_NAME, Example, Material
from dala.media.showcase.gallery_page import Card

INDEX_NAME = "index.html"
MODEL_GROUPS = ("models",)
"""The filter groups that need a model's weights."""
_QUALITY = 88
_OWN_SUFFIXES = (".webp", ".cube")


def write_gallery(
    folder: str | os.PathLike[str], *, height: int = sample.HEIGHT, width: int = sample.WIDTH
) -> Path:
    """Renders every filter on the current device into a folder; returns the path of index.html.

    Filters that need a model's weights are left out; masks are generated, like the picture. The
    folder is new, empty, or an earlier gallery, which is replaced; other folders are refused. It is
    replaced as a whole: if something fails, it keeps its previous content. The page only needs the
    files next to it, and opens without a server.
    """
    target = _target(folder)
    described = {
        name: item for name, item in filters().items() if item["group"] not in MODEL_GROUPS
    }
    material = Material(height, width)
    with _replaced_folder(target) as made:
        sample.write_cube(made / CUBE_NAME)
        cards = [_card(made, name, described[name], material) for name in described]
        files.save(material.picture, made / "sample.webp", quality=_QUALITY)
        where = str(current_device().info()["name"])
        page = gallery_page.page(cards, version=__version__, device=where)
        write_text(made / INDEX_NAME, page)
    return target / INDEX_NAME


def render(name: str, example: Example, folder: Path) -> np.ndarray:
    """Returns the filtered example, computed on the current device; the folder holds its table."""
    given = {
        param: str(folder / value) if isinstance(value, str) and value == CUBE_NAME else value
        for param, value in example.params.items()
    }
    result = apply_filter(example.image, name, **example.others, **given)
    return np.asarray(result)


def _card(folder: Path, name: str, described: Mapping[str, Any], material: Material) -> Card:
    """Writes a filter's pictures into the folder, and returns its card for the page."""
    example = material.example(name, described)
    after = render(name, example, folder)
    files.save(after, folder / f"{name}.webp", quality=_QUALITY)
    before = "sample.webp"
    if example.image is not material.picture:
        before = f"{name}-before.webp"
        files.save(example.image, folder / before, quality=_QUALITY)
    height, width = material.shape
    return Card(
        name=name,
        group=described["group"],
        doc=described["doc"],
        inputs=tuple(described["inputs"]),
        used=example.params,
        params=described["params"],
        before=before,
        after=f"{name}.webp",
        size=(after.shape[1], after.shape[0]),
        frame=(width, height),
    )


def _target(folder: Any) -> Path:
    """Returns the folder to write; raises FileError if it holds something else than a gallery."""
    target = checked_path("a folder", folder).absolute()
    try:
        if not target.exists():
            return target
        if not target.is_dir():
            raise FileError(f"{target} is a file: give a new or an empty folder for the gallery.")
        inside = sorted(item.name for item in target.iterdir())
        if not inside or _is_gallery(target, inside):
            return target
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{target} cannot be read: {error.strerror or error}.") from error
    foreign = next((item for item in inside if not _is_own(item)), inside[0])
    raise FileError(
        f"{target} holds something else than a gallery, such as {foreign!r}, and is left as it is: "
        f"give a new or an empty folder."
    )


def _is_gallery(folder: Path, names: list[str]) -> bool:
    """Returns whether a folder holds an earlier gallery and nothing else."""
    if not all(_is_own(name) and (folder / name).is_file() for name in names):
        return False
    index = folder / INDEX_NAME
    return index.is_file() and gallery_page.MARK in index.read_text("utf-8", errors="replace")


def _is_own(name: str) -> bool:
    return name == INDEX_NAME or name.endswith(_OWN_SUFFIXES)


@contextmanager
def _replaced_folder(target: Path) -> Iterator[Path]:
    """Yields a temporary folder that replaces the target unless the block fails."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{target} cannot be made: {error.strerror or error}.") from error
    temporary = create_temporary_folder(target)
    try:
        made = temporary / "new"
        made.mkdir()
        yield made
        if target.exists():
            target.replace(temporary / "old")
        made.replace(target)
    except OSError as error:
        _put_back(temporary / "old", target)
        if isinstance(error, FileError):
            raise
        raise FileError(f"{target} cannot be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _put_back(old: Path, target: Path) -> None:
    if old.exists() and not target.exists():
        old.replace(target)
