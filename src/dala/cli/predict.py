"""`dala predict`: what a model sees in pictures, as lines, as JSON, and drawn over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dala.cli import loss_reports, options
from dala.cli.models import complete
from dala.cli.overwriting import ExistingFiles
from dala.cli.process import chosen
from dala.cli.terminal import print_json, say, tell

if TYPE_CHECKING:
    from dala.ml.models.model import Model

Row = tuple[str, str, str]
"""The label, the score or share of the picture, and the position."""
SEEN = 0.5
"""The least score of key points that are printed."""


def predict(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A model of dala models list, or an ONNX file with --like.",
            autocompletion=complete,
        ),
    ],
    pictures: Annotated[list[str], typer.Argument(metavar="PICTURE...", help="What to look at.")],
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="Where the picture goes with the results drawn over it; a folder for several.",
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(metavar="COUNT", min=1, help="How many results there are at most."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(metavar="0-1", min=0, max=1, help="How sure the model has to be."),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The model of the list that an ONNX file is fed and read as.",
            autocompletion=complete,
        ),
    ] = None,
    largest_pixels: options.LargestPixels = None,
    overwrite: options.Overwrite = False,
    skip_existing: options.SkipExisting = False,
    strict: options.Strict = False,
    device: options.Device = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Say what a model sees in pictures.

    dala predict mobilenet_v2 cat.jpg --top 3

    dala predict my_faces.onnx --like blazeface crowd.png -o found.png
    """
    from dala.media.pictures.files import load, save
    from dala.ml.models.loading import load_model

    loss_reports.refuse(strict=strict)
    existing = ExistingFiles(overwrite=overwrite, skip=skip_existing, quiet=quiet, json=json)
    targets = _targets(pictures, out, overwrite=overwrite)
    kept = existing.left_alone([target for target in targets if target is not None])
    with chosen(device):
        loaded = load_model(model, like)
        given = _options(loaded, top, threshold)
        described = []
        for picture, target in zip(pictures, targets, strict=True):
            if target in kept:
                continue
            with loss_reports.collected() as lost:
                image, metadata = load(picture, largest_pixels=largest_pixels, with_metadata=True)
                results = loaded(image, **given)
                if target is not None:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    save(results.draw(image), target, metadata=metadata)
            loss_reports.tell(picture, lost, quiet=quiet or json)
            if json:
                described.append(_described(picture, target, image, results))
                continue
            for line in _lines(picture, list(_rows(results))):
                tell(line)
            if target is not None:
                say(f"{picture} is drawn in {target}", quiet=quiet)
    if json:
        about = {"model": loaded.name, "engine": loaded.engine, "device": loaded.device}
        print_json({"ok": True, **about, "pictures": described})


def _targets(pictures: Sequence[str], out: str | None, *, overwrite: bool) -> list[Path | None]:
    """Returns the target of each annotated picture; raises if targets collide."""
    from dala.errors import ArgumentError
    from dala.media.pictures.formats import FORMATS

    if out is None:
        return [None] * len(pictures)
    if Path(out).suffix.lower() in FORMATS and not Path(out).is_dir():
        if len(pictures) > 1:
            raise ArgumentError(
                f"--out {out} is one picture, but there are {len(pictures)}: give a folder."
            )
        targets = [Path(out)]
    else:
        targets = [Path(out) / Path(picture).name for picture in pictures]
    for place, target in enumerate(targets):
        if target in targets[:place]:
            raise ArgumentError(
                f"--out {out}: two pictures would become {target}: give them one after another."
            )
        if target.resolve() == Path(pictures[place]).resolve() and not overwrite:
            raise ArgumentError(
                f"--out {out}: {target} would be written over itself: choose another, or give "
                f"--overwrite."
            )
    return list(targets)


def _options(model: Model, top: int | None, threshold: float | None) -> dict[str, Any]:
    """Returns the options for the model's task, which rejects those that it does not have."""
    is_classifier = model.entry is not None and model.entry.task == "classification"
    given = {"top_k" if is_classifier else "max_results": top, "threshold": threshold}
    return {name: value for name, value in given.items() if value is not None}


def _described(picture: str, target: Path | None, image: Any, results: Any) -> dict[str, Any]:
    return {
        "picture": picture,
        "width": image.shape[1],
        "height": image.shape[0],
        "drawn": None if target is None else str(target),
        "results": results.to_dict(),
    }


def _rows(results: Any) -> Iterator[Row]:
    """Returns a row for each result."""
    from dala.ml.results.results import Detection, Pose, Segmentation

    if isinstance(results, Segmentation):
        for label, share in results.shares().items():
            yield label, f"{share:.1%}", "of the picture"
        return
    for item in results:
        sure = f"{item.score:.1%}"
        if isinstance(item, Detection):
            x0, y0, x1, y1 = item.box
            yield item.label, sure, f"from {x0:.0f}, {y0:.0f} to {x1:.0f}, {y1:.0f}"
        elif isinstance(item, Pose):
            seen = {name: at for name, at in item.keypoints.items() if at.score >= SEEN}
            points = [f"{name} {at.x:.0f}, {at.y:.0f}" for name, at in seen.items()]
            yield "person", sure, "; ".join(points)
        else:
            yield item.label, sure, ""


def _lines(picture: str, rows: list[Row]) -> Iterator[str]:
    if not rows:
        yield f"{picture}: nothing was found"
        return
    wide = [max(len(row[column]) for row in rows) for column in range(2)]
    for what, sure, where in rows:
        yield f"{picture}: {what:<{wide[0]}}  {sure:>{wide[1]}}  {where}".rstrip()
