"""How a file is fed and read: as it says itself, or as a model of the catalog is."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dala.base.record import changed
from dala.errors import ArgumentError, FileError, ModelError, argument, either
from dala.ml.catalog.entries import Entry
from dala.ml.catalog.labels import LISTS, labels
from dala.ml.catalog.reading import Reading
from dala.ml.onnx.contents import Contents
from dala.ml.tasks.yolo_files import layout_of, yolo_reading
from dala.ml.tasks.yolo_heads import form_of

Labels = Sequence[str] | str | os.PathLike[str]
"""Labels themselves, the file that they are in, or the name of a list of the catalog's."""
MOST_LABEL_BYTES = 1 << 24


def reading_of(
    name: str,
    contents: Contents,
    metadata: dict[str, str],
    like: Entry | None,
    given: Labels | None,
) -> Reading | None:
    """How images go into a file's model, and what comes out; None where nothing tells.

    Refuses a model that cannot be fed as the one that it is said to be like.
    """
    own = () if given is None else read_labels(given)
    about = (name, contents.inputs, contents.outputs, metadata, own)
    if like is None:
        found = yolo_reading(*about)
        if found is None and own:
            raise ArgumentError(
                f"{name}: {argument('labels')} are of use where it is known what the model gives: "
                f"say so by {argument('like')}."
            )
        return found
    if like.decoding == "yolo":
        found = yolo_reading(*about, told=True)
        if found is not None and found.decoding == "yolo":
            return (
                found
                if found.labels
                else changed(found, labels=_yolo_labels(like, found, contents))
            )
    return _adapted(name, contents, like, own)


def read_labels(given: Labels) -> tuple[str, ...]:
    """Labels as a caller gives them: a list, a file with one in each line, or a JSON file."""
    if isinstance(given, str) and given in LISTS:
        return labels(given)
    if not isinstance(given, str | os.PathLike):
        found: Any = list(given)
    else:
        path = Path(given)
        try:
            if path.stat().st_size > MOST_LABEL_BYTES:
                raise ArgumentError(f"{path} has more than {MOST_LABEL_BYTES:,} bytes of labels.")
            text = path.read_text(encoding="utf-8")
            is_json = path.suffix.lower() == ".json"
            found = json.loads(text) if is_json else text.splitlines()
        except OSError as error:
            raise FileError(f"the labels in {path} cannot be read: {error.strerror}.") from error
        except ValueError as error:
            raise FileError(f"the labels in {path} cannot be read: {error}.") from error
    if isinstance(found, dict):
        found = [found.get(str(index)) for index in range(len(found))]
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise ArgumentError(
            f"{argument('labels')} are texts, one for each class, or a file with one in each line; "
            f"a JSON file has a list of them, or a mapping from their numbers."
        )
    found = [item.strip() for item in found if item.strip()]
    if not found:
        raise ArgumentError(f"{argument('labels')}: there are none in what was given.")
    return tuple(found)


def _adapted(name: str, contents: Contents, like: Entry, own: tuple[str, ...]) -> Reading:
    """The entry, with the layout, the size and the number of classes that the file has."""
    takes = contents.inputs
    fed = layout_of(takes[0], like.size) if len(takes) == 1 else None
    if fed is None or takes[0].dtype != like.dtype:
        shape = (1, 3, *like.shape) if like.layout == "nchw" else (1, *like.shape, 3)
        given = ", ".join(f"{item.name}: {item}" for item in takes)
        raise ModelError(
            f"{name} is not like {like.name}, which takes one input, {like.dtype} "
            f"{shape}, or of another height, width and order of axes: this one takes {given}."
            + either(" Load it without like=, and give predict() what it takes.", "")
        )
    layout, size = fed
    settings = dict(like.settings)
    if "resize" in settings:
        settings["resize"] = round(settings["resize"] * min(size) / min(like.size))
    return changed(
        like, layout=layout, size=size, settings=settings, labels=own or _those_of(like, contents)
    )


def _yolo_labels(like: Entry, found: Reading, contents: Contents) -> str | tuple[str, ...]:
    """The entry's labels, unless the shapes say that the model has other classes."""
    shapes = [item.fixed for item in contents.outputs if item.fixed and len(item.fixed) == 3]
    if found.settings["head"] != "detect" or not shapes:
        return like.labels
    count = len(like.names)
    form = form_of(shapes[0][1:], found.shape, 0, count, is_ended=False)
    return () if form is None or form.ended else like.labels


def _those_of(like: Entry, contents: Contents) -> str | tuple[str, ...]:
    """The entry's labels, unless the model gives another number of classes: then none."""
    if like.task != "classification" or len(contents.outputs) != 1:
        return like.labels
    shape = contents.outputs[0].shape or ()
    count = shape[1] if len(shape) >= 2 else None
    return () if isinstance(count, int) and count != len(like.names) else like.labels
