"""Documents for `dala run`: a list of filters, or a pipeline on pictures."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dala.base.suggestions import hint
from dala.base.text_file import read_text
from dala.cli import loss_reports
from dala.cli.conversion import Converted, Settings
from dala.cli.filter_syntax import Filter, given_filter
from dala.errors import ArgumentError
from dala.images.frames import converted
from dala.ir.types import IMAGES, U8, dtype_of
from dala.runtime.buffers.buffer import buffer_zeros, from_numpy
from dala.runtime.pipelines.document import at, key, mapping, sequence, text
from dala.runtime.pipelines.file import load_pipeline

_MODES = {1: "gray", 3: "rgb", 4: "rgba"}
_DTYPES = [scalar.name for scalar in IMAGES]


def read(path: Path) -> Mapping[str, Any]:
    """Returns the document in a TOML or JSON file."""
    found = read_text(path)
    kind = "TOML" if path.suffix.lower() == ".toml" else "JSON"
    try:
        document = tomllib.loads(found) if kind == "TOML" else json.loads(found)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"{path} is not {kind}: {error}.") from error
    if isinstance(document, list):
        document = {"filters": document}
    with at(str(path)):
        return mapping(document, "$")


def is_pipeline(document: Mapping[str, Any]) -> bool:
    """Returns whether the document is a pipeline, as `Pipeline.save` writes it."""
    return "stages" in document


def filters_of(
    path: Path,
    document: Mapping[str, Any],
    own: Sequence[str],
    largest_pixels: int | None = None,
) -> list[Filter]:
    """Returns the filters of a document; parameters are in `params` or next to the name."""
    with at(str(path)):
        for name in document:
            if name != "filters":
                raise ArgumentError(
                    f"{key('$', name)} is not known: there is a list `filters`, or there are "
                    f"`buffers` and `stages`.{hint(name, ['filters', 'stages'])}"
                )
        listed = sequence(document.get("filters"), "$.filters")
        return [
            _filter(item, f"$.filters[{i}]", own, path.parent, largest_pixels)
            for i, item in enumerate(listed)
        ]


def _filter(
    given: Any, place: str, own: Sequence[str], base: Path, largest_pixels: int | None
) -> Filter:
    if isinstance(given, str):
        given = {"name": given}
    item = mapping(given, place)
    name = text(item.get("name"), f"{place}.name")
    beside = {name: value for name, value in item.items() if name not in ("name", "params")}
    params = mapping(item.get("params", {}), f"{place}.params")
    with at(place):
        return given_filter(name, {**params, **beside}, own, base, largest_pixels)


def run_pipeline(
    path: Path, document: Mapping[str, Any], source: str, target: str, settings: Settings
) -> Converted:
    """Runs a pipeline on a picture of the right size."""
    from dala.media.pictures.files import load, save, warn_of_loss
    from dala.media.pictures.metadata import cut_bits

    started_s = time.perf_counter()
    with at(str(path)):
        read_name, written_name = _ends(document)
        shape, dtype = _kind(document, read_name)
        out_shape, out_dtype = _kind(document, written_name)
    mode: Any = _MODES[shape[2] if len(shape) == 3 else 1]
    with loss_reports.collected() as lost:
        image, metadata = load(
            source, mode=mode, largest_pixels=settings.largest_pixels, with_metadata=True
        )
        if dtype == U8.name and image.itemsize > 1:
            warn_of_loss(source, [cut_bits(metadata.bits)])
    if image.shape != shape:
        raise ArgumentError(
            f"{source} is {image.shape[1]} × {image.shape[0]}, but {path} was made for pictures of "
            f"{shape[1]} × {shape[0]}: resize it first, or give a list of filters, which takes any."
        )
    out = buffer_zeros(out_shape, dtype_of(out_dtype))
    pipeline = load_pipeline(
        path, {read_name: from_numpy(converted(image, dtype_of(dtype))), written_name: out}
    )
    pipeline.run()
    with loss_reports.collected() as lost_later:
        save(out, target, quality=settings.picture_quality, metadata=metadata)
    elapsed_s = time.perf_counter() - started_s
    size = out_shape[1], out_shape[0]
    return Converted(source, target, "picture", 1, 0, *size, elapsed_s, {}, lost + lost_later)


def _ends(document: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the names of the input buffer and the output buffer."""
    buffers = list(mapping(document.get("buffers", {}), "$.buffers"))
    stages = [
        mapping(item, f"$.stages[{i}]")
        for i, item in enumerate(sequence(document["stages"], "$.stages"))
    ]
    written: set[Any] = set()
    for item in stages:
        output = item.get("output")
        written.update(output if isinstance(output, list) else [output])
    ends = [name for name in buffers if name in written]
    begins = [name for name in buffers if name not in written]
    if len(begins) != 1 or len(ends) != 1:
        raise ArgumentError(
            f"$.buffers: for a picture there is one that is read and one that is written, not "
            f"{len(begins)} and {len(ends)} ({', '.join(buffers) or 'none'}). Run it in Python, "
            f"with compute.load_pipeline()."
        )
    return begins[0], ends[0]


def _kind(document: Mapping[str, Any], name: str) -> tuple[tuple[int, ...], str]:
    place = key("$.buffers", name)
    said = mapping(document["buffers"][name], place)
    shape, dtype = tuple(sequence(said.get("shape"), f"{place}.shape")), said.get("dtype")
    is_image = len(shape) == 2 or (len(shape) == 3 and shape[2] in (3, 4))
    if not is_image or dtype not in _DTYPES:
        raise ArgumentError(
            f"{place}: a picture is (height, width), (height, width, 3) or (height, width, 4) of "
            f"{', '.join(_DTYPES[:-1])} or {_DTYPES[-1]}, not {shape} of {dtype}."
        )
    return shape, str(dtype)
