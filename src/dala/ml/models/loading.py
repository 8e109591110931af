"""Where a model comes from: a name of the catalog, or any ONNX file."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, Literal, overload
from weakref import WeakValueDictionary

from dala.base.deprecation import renamed_argument
from dala.devices.cpu.threads import thread_count
from dala.errors import ArgumentError, ModelError, argument, either
from dala.ml.catalog.entries import MODELS, Entry, find
from dala.ml.models.model import ENGINES, Choice, Model, tensor_shape
from dala.ml.results.results import Classification, Detection, Pose, Results, Segmentation

_loaded: WeakValueDictionary[tuple[str, Choice, int], Model] = WeakValueDictionary()
"""Models of the catalog that somebody holds, by their names, engines and threads."""
_loading = threading.Lock()

Source = str | os.PathLike[str] | bytes


Classifier = Literal["mobilenet_v2"]
Detector = Literal["yolo_v5", "blazeface"]
Poser = Literal["posenet"]
Segmenter = Literal["deeplab", "selfie_segmentation"]
"""The names of the catalog by task, for type checkers; a test compares both."""


@overload
def load_model(
    source: Classifier, *, engine: Choice = "auto", accept_license: bool = False
) -> Model[Results[Classification]]: ...
@overload
def load_model(
    source: Detector, *, engine: Choice = "auto", accept_license: bool = False
) -> Model[Results[Detection]]: ...
@overload
def load_model(
    source: Poser, *, engine: Choice = "auto", accept_license: bool = False
) -> Model[Results[Pose]]: ...
@overload
def load_model(
    source: Segmenter, *, engine: Choice = "auto", accept_license: bool = False
) -> Model[Segmentation]: ...
@overload
def load_model(
    source: Source, like: Classifier, *, engine: Choice = "auto", accept_license: bool = False
) -> Model[Results[Classification]]: ...
@overload
def load_model(
    source: Source, like: Detector, *, engine: Choice = "auto", accept_license: bool = False
) -> Model[Results[Detection]]: ...
@overload
def load_model(
    source: Source, like: Poser, *, engine: Choice = "auto", accept_license: bool = False
) -> Model[Results[Pose]]: ...
@overload
def load_model(
    source: Source, like: Segmenter, *, engine: Choice = "auto", accept_license: bool = False
) -> Model[Segmentation]: ...
@overload
def load_model(
    source: Source,
    like: str | None = None,
    *,
    engine: Choice = "auto",
    accept_license: bool = False,
) -> Model[Any]: ...
@renamed_argument("accept_licence", "accept_license")
def load_model(
    source: Source,
    like: str | None = None,
    *,
    engine: Choice = "auto",
    accept_license: bool = False,
) -> Model[Any]:
    """Returns a model by its name in the catalog, or from an ONNX file.

    A name is fetched when it is first used, converted and kept; later it needs no network. With
    `like`, the name of a model of the catalog, the file is fed and read as that one is; without,
    its inputs and outputs are what it declares, for `predict`. `engine` is "onnxruntime", on the
    CPU, with copies between it and a GPU; "dala", whose kernels run wherever the buffers are; or
    "auto": the latter between buffers of a hardware GPU where it can compute all of the model, else
    the former. `accept_license` is for weights whose license binds you: `model_info(name)` tells.
    """
    if engine not in ENGINES:
        raise ArgumentError(f"load_model: engine {engine!r} is not one of {', '.join(ENGINES)}.")
    if isinstance(source, str) and source in MODELS:
        if like is not None:
            raise ArgumentError(
                f"{either('load_model: ', '')}{source!r} is in the catalog and "
                f"{argument('like', repr(like), like)} is for files: leave one out, or give the "
                f"file as {either('a Path', f'./{source}')}."
            )
        return _named(find(source), engine, accept_license)
    entry = None if like is None else find(like)
    if isinstance(source, str) and not _looks_like_a_file(source):
        find(source)
    return _from_file(source, entry, engine)


def _named(entry: Entry, engine: Choice, accept_license: bool) -> Model:
    from dala.ml.sources import read

    with _loading:
        key = (entry.name, engine, thread_count())
        known = _loaded.get(key)
        if known is None:
            data = read(entry, accept_license=accept_license)
            known = _loaded[key] = Model(entry.name, data, entry, engine)
        return known


def _from_file(source: Source, entry: Entry | None, choice: Choice) -> Model:
    from dala.ml.onnx.file import checked_model
    from dala.ml.onnx.inference import check_inferred

    if not isinstance(source, str | os.PathLike | bytes):
        raise ArgumentError(
            f"load_model: a model is a name, the path of an ONNX file, or its bytes, not "
            f"{type(source).__name__}."
        )
    name = "model" if isinstance(source, bytes) else Path(source).stem
    checked = checked_model(source)
    if choice != "dala":  # which looks at sizes itself, before it makes room for them
        check_inferred(name, checked)
    model = Model(name, checked, entry, choice)
    if entry is not None:
        _check_alike(model, entry)
    return model


def _looks_like_a_file(source: str) -> bool:
    is_there = os.path.exists(source)  # noqa: PTH110  (Path's raises where a name is too long)
    return is_there or Path(source).suffix != "" or len(Path(source).parts) > 1


def _check_alike(model: Model, entry: Entry) -> None:
    """Refuse a model that cannot be fed as the catalog's is."""
    takes, shape = model.takes, tensor_shape(entry)
    if len(takes) == 1 and takes[0].dtype == entry.dtype and takes[0].accepts(shape):
        return
    given = ", ".join(f"{item.name}: {item}" for item in takes)
    raise ModelError(
        f"{model.name} is not like {entry.name}, which takes one input, {entry.dtype} "
        f"{shape}: this one takes {given}."
        + either(" Load it without like=, and give predict() what it takes.", "")
    )
