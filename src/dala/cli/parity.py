"""`dala parity`: whether every node of a model is computed alike on every device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dala.cli import options
from dala.cli.terminal import print_json, tell

if TYPE_CHECKING:
    import numpy as np

DEVICES = ("cpu", "webgpu")


def parity(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="An ONNX file, or a model of dala models list.")
    ],
    given: Annotated[
        str | None,
        typer.Argument(
            metavar="[INPUTS]",
            help="A picture, or arrays as .npz, by the names of inputs; else random ones.",
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Where the smallest model goes that shows the first difference.",
        ),
    ] = Path(),
    device: Annotated[
        list[str] | None,
        typer.Option(
            "--device", "-d", metavar="DEVICE", help="What to compare; cpu and webgpu if not given."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Go on after the first difference, and list every node.")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Of the random inputs.")] = 0,
    json: options.Json = False,
) -> None:
    """Find the first node of a model that a device computes differently.

    Every node is run on the CPU and on WebGPU, and compared with ONNX Runtime where it is
    installed, all of them fed with the same values. Ends with 1 if a node differs.

    dala parity mine.onnx photo.jpg
    """
    from dala.ml.catalog.entries import MODELS, find
    from dala.ml.comparison import parity as compare
    from dala.ml.sources import read

    source = read(find(model)) if model in MODELS else Path(model)
    found = compare(
        source,
        None if given is None else _inputs(model, source, given),
        devices=device or DEVICES,
        out=out,
        every=every,
        seed=seed,
    )
    if json:
        print_json({"ok": bool(found), **found.to_dict()})
    else:
        for line in found.lines(every=every):
            tell(line)
    if not found:
        raise typer.Exit(1)


def _inputs(model: str, source: Path | bytes, given: str) -> dict[str, np.ndarray]:
    """Returns what a file holds, by the names of inputs."""
    import numpy as np

    if not given.endswith(".npz"):
        return _of_picture(model, source, given)
    try:
        with np.load(given, allow_pickle=False) as held:
            return {name: held[name] for name in held.files}
    except (OSError, ValueError) as error:
        from dala.errors import FileError

        raise FileError(f"{given} cannot be read as arrays: {error}.") from error


def _of_picture(model: str, source: Path | bytes, given: str) -> dict[str, Any]:
    """Returns a picture as the model takes it, by its entry in the catalog or by its shape."""
    import numpy as np

    from dala import ml
    from dala.errors import ArgumentError
    from dala.media.pictures.files import load
    from dala.ml.catalog.entries import MODELS, find
    from dala.ml.models.model import tensor_shape
    from dala.ml.models.recognition import preparation
    from dala.ml.onnx.contents import read_contents
    from dala.ml.onnx.file import checked_model

    (item, *others) = read_contents(model, checked_model(source)).inputs
    sizes = item.shape or ()
    layout = "nchw" if sizes[1:2] == (3,) else "nhwc"
    across = sizes[2:] if layout == "nchw" else sizes[1:3]
    if others or len(sizes) != 4 or not all(isinstance(size, int) for size in across):
        raise ArgumentError(
            f"{model} does not take one picture, but {', '.join(map(str, (item, *others)))}: give "
            f"its inputs as arrays in an .npz file, by their names."
        )
    options: dict[str, Any] = {"layout": layout}
    height, width = across
    if model in MODELS:
        entry = find(model)
        options = preparation(entry)
        height, width = tensor_shape(entry)[2:] if entry.layout == "nchw" else entry.shape
    tensor = ml.preprocess(load(given), size=(width, height), **options)
    return {item.name: np.asarray(tensor).reshape([s if isinstance(s, int) else 1 for s in sizes])}
