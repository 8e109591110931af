"""`dala predict`: what a model sees in pictures and videos, told, written, and drawn over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dala.cli import loss_reports, options
from dala.cli.models import complete
from dala.cli.overwriting import ExistingFiles
from dala.cli.process import chosen
from dala.cli.terminal import complain, one_line, print_json, say, tell

if TYPE_CHECKING:
    from dala.cli.predict_formats import Seen, Writing
    from dala.cli.predict_sources import Looked, Source
    from dala.ml.models.model import Model

Row = tuple[str, str, str]
"""The label, the score or share of the picture, and the position."""
SEEN = 0.5
"""The least score of key points that are printed."""
Classes = Annotated[
    list[str] | None,
    typer.Option(
        "--class", "-c", metavar="LABEL", help="Keep only this class; may be given several times."
    ),
]


def predict(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A model of dala models list, or an ONNX file, some of them with --like.",
            autocompletion=complete,
        ),
    ],
    pictures: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...", help="Pictures, folders, videos, or camera for what it sees."
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="Where results are written: .jsonl, .csv, or .json for COCO; or drawn over what "
            "is looked at: a picture, a video, or a folder for several.",
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="jsonl, csv or coco, on standard output unless --out names a file.",
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
    iou: Annotated[
        float | None,
        typer.Option(metavar="0-1", min=0, max=1, help="How much boxes of a class may overlap."),
    ] = None,
    classes: Classes = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The labels of a file's classes, one in each line."),
    ] = None,
    track: Annotated[
        bool,
        typer.Option("--track", help="Number things, the same from frame to frame of a video."),
    ] = False,
    frames: Annotated[
        int | None,
        typer.Option(metavar="COUNT", min=1, help="How many frames of each video are looked at."),
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
) -> int:
    """Say what a model sees in pictures and videos.

    dala predict mobilenet_v2 cat.jpg --top 3

    dala predict yolov8n.onnx clip.mp4 --track -o found.mp4

    dala predict my_faces.onnx --like blazeface photos -o found.csv

    What cannot be read is said, and the rest is looked at; the exit code is 1 then.
    """
    from dala.cli.predict_sources import found_sources
    from dala.cli.predict_targets import plan
    from dala.ml.models.loading import load_model

    loss_reports.refuse(strict=strict)
    existing = ExistingFiles(overwrite=overwrite, skip=skip_existing, quiet=quiet, json=json)
    sources = found_sources(pictures)
    planned = plan(sources, out, format, overwrite=overwrite, json=json)
    kept = existing.left_alone(planned.files)
    if planned.text is not None and planned.text in kept:
        return 0
    with chosen(device), ExitStack() as stack:
        loaded = load_model(model, like, labels=labels)
        given = _options(loaded, top, threshold, iou, classes)
        writing = stack.enter_context(planned.writing()) if planned.format else None
        run = _Run(loaded, given, writing, largest_pixels, frames, quiet=quiet, json=json)
        for source, target in zip(sources, planned.targets, strict=True):
            if target is None or target not in kept:
                run.look(source, target, track=track)
    if json:
        about = {"model": loaded.name, "engine": loaded.engine, "device": loaded.device}
        failed = {"failed": run.failed} if run.failed else {}
        print_json({"ok": not run.failed, **about, "pictures": run.described, **failed})
    elif planned.text is not None:
        say(f"{run.count} results are in {planned.text}", quiet=quiet)
    return 1 if run.failed else 0


class _Run:
    """One run of the command: what was told and written so far, and what could not be read."""

    def __init__(
        self,
        model: Model,
        options: dict[str, Any],
        writing: Writing | None,
        largest_pixels: int | None,
        frames: int | None,
        *,
        quiet: bool,
        json: bool,
    ) -> None:
        self._model, self._options, self._writing = model, options, writing
        self._largest_pixels, self._frames = largest_pixels, frames
        self._quiet, self._json = quiet, json
        self.failed: list[dict[str, str]] = []
        self.described: list[dict[str, Any]] = []
        self.count = 0

    def look(self, source: Source, target: Path | None, *, track: bool) -> None:
        """Look at all of a source; what cannot be read is remembered, and said."""
        from dala.cli.predict_sources import looked_at
        from dala.errors import DeviceError, FileError, MediaError
        from dala.ml.results.tracking import Tracker

        options = dict(self._options)
        if track:
            options["track"] = Tracker(self._threshold())
        with ExitStack() as stack:
            drawn = _Drawn(source, target, stack) if target is not None else None
            everything = looked_at(source, self._largest_pixels)
            while True:
                try:
                    with loss_reports.collected() as lost:
                        looked = next(everything, None)
                except (FileError, MediaError, DeviceError) as error:
                    self._fail(source, error)
                    return
                if looked is None or (looked.frame or 0) >= (self._frames or float("inf")):
                    break
                loss_reports.tell(source.name, lost, quiet=self._quiet or self._json)
                self._see(source, looked, options, drawn)
        if drawn is not None and not self._json:
            say(f"{source.name} is drawn in {target}", quiet=self._quiet)

    def _see(
        self, source: Source, looked: Looked, options: dict[str, Any], drawn: _Drawn | None
    ) -> None:
        from dala.cli.predict_formats import Seen

        results = self._model(looked.image, **options)
        size = (looked.image.shape[1], looked.image.shape[0])
        seen = Seen(source.name, size, results, looked.frame, looked.time_s)
        self.count += len(seen.items)
        if drawn is not None:
            drawn.add(results.draw(looked.image), looked)
        if self._writing is not None:
            self._writing.add(seen)
        elif self._json:
            self.described.append(_described(seen, None if drawn is None else drawn.target))
        else:
            name = source.name if looked.frame is None else f"{source.name} {looked.time_s:.2f} s"
            for line in _lines(name, list(_rows(results))):
                tell(line)

    def _fail(self, source: Source, error: Exception) -> None:
        said = one_line(error)
        self.failed.append({"source": source.name, "error": said})
        if not self._json:
            complain(said if source.name in said else f"{source.name}: {said}")

    def _threshold(self) -> float:
        entry = self._model.entry
        usual = 0.25 if entry is None else entry.settings.get("score", 0.25)
        return float(self._options.get("threshold", usual))


class _Drawn:
    """What is looked at, with results over it: a picture, or a video that is closed at the end."""

    def __init__(self, source: Source, target: Path, stack: ExitStack) -> None:
        self._is_video = source.kind != "picture"
        self.target, self._stack = target, stack
        self._writer: Any = None

    def add(self, image: Any, looked: Looked) -> None:
        """Write one more picture or frame."""
        self.target.parent.mkdir(parents=True, exist_ok=True)
        if not self._is_video:
            from dala.media.pictures.files import save

            save(image, self.target, metadata=looked.metadata)
            return
        if self._writer is None:
            from dala.media.video.writing.video_writer import writer

            self._writer = self._stack.enter_context(writer(self.target))
        self._writer.write(image, looked.time_s)


def _options(
    model: Model,
    top: int | None,
    threshold: float | None,
    iou: float | None,
    classes: Sequence[str] | None,
) -> dict[str, Any]:
    """Returns the options for the model's task, which rejects those that it does not have."""
    is_classifier = model.entry is not None and model.entry.task == "classification"
    given = {
        "top_k" if is_classifier else "max_results": top,
        "threshold": threshold,
        "iou": iou,
        "classes": [int(item) if item.isdigit() else item for item in classes or []] or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _described(seen: Seen, target: Path | None) -> dict[str, Any]:
    own = seen.to_dict()
    return {
        "picture": own.pop("source"),
        "drawn": None if target is None else str(target),
        **own,
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
        number = "" if getattr(item, "track", None) is None else f" {item.track}"
        if isinstance(item, Pose) and item.box is None:
            seen = {name: at for name, at in item.keypoints.items() if at.score >= SEEN}
            points = [f"{name} {at.x:.0f}, {at.y:.0f}" for name, at in seen.items()]
            yield f"{item.label}{number}", sure, "; ".join(points)
        elif isinstance(item, Detection | Pose) and item.box is not None:
            x0, y0, x1, y1 = item.box
            yield item.label + number, sure, f"from {x0:.0f}, {y0:.0f} to {x1:.0f}, {y1:.0f}"
        else:
            yield item.label, sure, ""


def _lines(picture: str, rows: list[Row]) -> Iterator[str]:
    if not rows:
        yield f"{picture}: nothing was found"
        return
    wide = [max(len(row[column]) for row in rows) for column in range(2)]
    for what, sure, where in rows:
        yield f"{picture}: {what:<{wide[0]}}  {sure:>{wide[1]}}  {where}".rstrip()
