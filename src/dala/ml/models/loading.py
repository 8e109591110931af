"""Where a model comes from: a name of the catalog, or any ONNX file."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, overload
from weakref import WeakValueDictionary

from dala.base.deprecation import renamed_argument
from dala.devices.cpu.threads import thread_count
from dala.errors import ArgumentError, argument, either
from dala.ml.catalog.entries import MODELS, Entry, find
from dala.ml.catalog.reading import Reading
from dala.ml.models.likeness import Labels, reading_of
from dala.ml.models.model import ENGINES, Choice, Model
from dala.ml.onnx.contents import Contents
from dala.ml.results.results import Classification, Detection, Pose, Results, Segmentation

_loaded: WeakValueDictionary[tuple[str, Choice, int], Model] = WeakValueDictionary()
"""Models of the catalog that somebody holds, by their names, engines and threads."""
_loading = threading.Lock()

Source = str | os.PathLike[str] | bytes


Classifier = Literal["mobilenet_v2"]
Detector = Literal["yolo_v5", "blazeface", "text_detection", "document_layout"]
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
    source: Source,
    like: Classifier,
    *,
    labels: Labels | None = None,
    engine: Choice = "auto",
    accept_license: bool = False,
) -> Model[Results[Classification]]: ...
@overload
def load_model(
    source: Source,
    like: Detector,
    *,
    labels: Labels | None = None,
    engine: Choice = "auto",
    accept_license: bool = False,
) -> Model[Results[Detection]]: ...
@overload
def load_model(
    source: Source,
    like: Poser,
    *,
    labels: Labels | None = None,
    engine: Choice = "auto",
    accept_license: bool = False,
) -> Model[Results[Pose]]: ...
@overload
def load_model(
    source: Source,
    like: Segmenter,
    *,
    labels: Labels | None = None,
    engine: Choice = "auto",
    accept_license: bool = False,
) -> Model[Segmentation]: ...
@overload
def load_model(
    source: Source,
    like: str | None = None,
    *,
    labels: Labels | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    links_within: str | os.PathLike[str] | None = None,
    engine: Choice = "auto",
    accept_license: bool = False,
) -> Model[Any]: ...
@renamed_argument("accept_licence", "accept_license")
def load_model(
    source: Source,
    like: str | None = None,
    *,
    labels: Labels | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    links_within: str | os.PathLike[str] | None = None,
    engine: Choice = "auto",
    accept_license: bool = False,
) -> Model[Any]:
    """Returns a model by its name in the catalog, or from a file: ONNX, or TensorFlow.js' JSON.

    A name is fetched when it is first used, converted and kept; later it needs no network. A file
    of YOLO is fed and read as its metadata and its shapes say. With `like`, the name of a model of
    the catalog, a file is fed and read as that one is, whatever its size and its number of classes;
    else its inputs and outputs are what it declares, for `predict`. `labels` name a file's classes:
    a list, or a text file with one in each line. `engine` is "onnxruntime", on the CPU, with copies
    between it and a GPU; "dala", whose kernels run wherever the buffers are; or "auto": the latter
    between buffers of a hardware GPU where it can compute all of the model, and everywhere if ONNX
    Runtime is not installed, else the former.
    `shapes` fix by their names what a graph of TensorFlow.js leaves open of its inputs. Tensors in
    files beside the model are read through links only into the folder `links_within`, such as the
    cache of a hub, whose files are links. `accept_license` is for weights whose license binds you:
    `model_info(name)` tells.
    """
    if engine not in ENGINES:
        raise ArgumentError(f"load_model: engine {engine!r} is not one of {', '.join(ENGINES)}.")
    if engine == "auto" and not _has_onnx_runtime():
        engine = "dala"
    if isinstance(source, str) and source in MODELS:
        if like is not None:
            raise ArgumentError(
                f"{either('load_model: ', '')}{source!r} is in the catalog and "
                f"{argument('like', repr(like), like)} is for files: leave one out, or give the "
                f"file as {either('a Path', f'./{source}')}."
            )
        if labels is not None:
            raise ArgumentError(
                f"load_model: {source!r} is in the catalog and has labels of its own: "
                f"{argument('labels')} are for files."
            )
        return _named(find(source), engine, accept_license)
    entry = None if like is None else find(like)
    if isinstance(source, str) and not _looks_like_a_file(source):
        find(source)
    return _from_file(source, entry, labels, engine, shapes, links_within)


def _has_onnx_runtime() -> bool:
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        return False
    return True


def _named(entry: Entry, engine: Choice, accept_license: bool) -> Model:
    from dala.ml.sources import read

    with _loading:
        key = (entry.name, engine, thread_count())
        known = _loaded.get(key)
        if known is None:
            data = read(entry, accept_license=accept_license)
            known = _loaded[key] = Model(entry.name, data, entry, engine)
        return known


def _from_file(
    source: Source,
    like: Entry | None,
    labels: Labels | None,
    choice: Choice,
    shapes: Mapping[str, Sequence[int]] | None,
    links_within: str | os.PathLike[str] | None,
) -> Model:
    from dala.ml.onnx.file import checked_model
    from dala.ml.onnx.inference import check_inferred
    from dala.ml.onnx.metadata import read_metadata

    if not isinstance(source, str | os.PathLike | bytes):
        raise ArgumentError(
            f"load_model: a model is a name, the path of an ONNX file, or its bytes, not "
            f"{type(source).__name__}."
        )
    name = "model" if isinstance(source, bytes) else Path(source).stem
    path = None if isinstance(source, bytes) else Path(source)
    is_json = path is not None and path.suffix.lower() == ".json"
    if shapes is not None and not is_json:
        raise ArgumentError(
            "load_model: shapes are for a model.json of TensorFlow.js; an ONNX file's axes may "
            "stay open."
        )
    if path is not None and is_json:
        from dala.ml.models.tfjs_files import read_tfjs

        source = read_tfjs(path, name, shapes)
    root = None if links_within is None else Path(links_within).expanduser()
    checked = checked_model(source, root)
    if choice != "dala":  # which looks at sizes itself, before it makes room for them
        check_inferred(name, checked)

    def reading(contents: Contents) -> Reading | None:
        return reading_of(name, contents, read_metadata(name, checked), like, labels)

    return Model(name, checked, reading, choice)


def _looks_like_a_file(source: str) -> bool:
    is_there = os.path.exists(source)  # noqa: PTH110  (Path's raises where a name is too long)
    return is_there or Path(source).suffix != "" or len(Path(source).parts) > 1
