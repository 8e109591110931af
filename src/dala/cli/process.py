"""`dala process` and `dala run`: filters on a picture or on a video."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dala.cli import loss_reports, options
from dala.cli.overwriting import ExistingFiles
from dala.cli.terminal import Interrupted, print_json, say

if TYPE_CHECKING:
    from dala.cli.conversion import Converted, Settings
    from dala.cli.filter_syntax import Filter

Source = Annotated[
    str, typer.Argument(metavar="SOURCE", help="A picture, a video, or - for standard input.")
]
Target = Annotated[
    str,
    typer.Argument(metavar="TARGET", help="What is written, in the format of its suffix, or -."),
]


def process(
    source: Source,
    target: Target,
    filter: options.Filters = None,
    kernels: options.Kernels = None,
    size: options.Size = None,
    quality: options.Quality = None,
    largest_pixels: options.LargestPixels = None,
    device: options.Device = None,
    overwrite: options.Overwrite = False,
    skip_existing: options.SkipExisting = False,
    strict: options.Strict = False,
    codec: options.Codec = None,
    preset: options.Preset = None,
    start: options.Start = None,
    end: options.End = None,
    resume: options.Resume = False,
    no_sound: options.Mute = False,
    rate: options.Rate = None,
    raw_size: options.RawSize = None,
    raw_format: options.RawFormat = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Apply filters to a picture or a video.

    dala process clip.mp4 out.mp4 -f blur:radius=3,sigma=1.5 -f sharpen:amount=0.5

    dala process photo.jpg out.png -f overlay:layer=logo.png,x=10 --size fit:1280x720

    Sound, subtitles and chapters are kept as they are. The result appears under its name when it
    is whole.
    """
    from dala.cli.conversion import Settings
    from dala.cli.filter_syntax import read_filters
    from dala.cli.kernel_files import load_kernels

    settings = Settings.of(
        codec=codec,
        quality=quality,
        preset=preset,
        size=size,
        start=start,
        end=end,
        resume=resume,
        sound=not no_sound,
        rate=rate,
        raw_size=raw_size,
        raw_format=raw_format,
        largest_pixels=largest_pixels,
    )
    loss_reports.refuse(strict=strict)
    existing = ExistingFiles(overwrite=overwrite, skip=skip_existing, quiet=quiet, json=json)
    with chosen(device):
        chain = read_filters(filter or [], load_kernels(kernels or []), largest_pixels)
        if not _is_left(source, target, existing, settings, json=json):
            make_one(source, target, chain, settings, quiet=quiet, json=json)


def run(
    pipeline: Annotated[
        str, typer.Argument(metavar="PIPELINE", help="A list of filters, as .toml or .json.")
    ],
    source: Source,
    target: Target,
    kernels: options.Kernels = None,
    size: options.Size = None,
    quality: options.Quality = None,
    largest_pixels: options.LargestPixels = None,
    device: options.Device = None,
    overwrite: options.Overwrite = False,
    skip_existing: options.SkipExisting = False,
    strict: options.Strict = False,
    codec: options.Codec = None,
    preset: options.Preset = None,
    start: options.Start = None,
    end: options.End = None,
    resume: options.Resume = False,
    no_sound: options.Mute = False,
    rate: options.Rate = None,
    raw_size: options.RawSize = None,
    raw_format: options.RawFormat = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Apply the filters of a file to a picture or a video.

    The file has a list of filters, each with its name and its parameters; or it is a pipeline as
    pipeline.save() writes it, with one buffer that is read and one that is written.
    """
    from dala.cli import run_documents
    from dala.cli.conversion import Settings
    from dala.cli.kernel_files import load_kernels

    settings = Settings.of(
        codec=codec,
        quality=quality,
        preset=preset,
        size=size,
        start=start,
        end=end,
        resume=resume,
        sound=not no_sound,
        rate=rate,
        raw_size=raw_size,
        raw_format=raw_format,
        largest_pixels=largest_pixels,
    )
    loss_reports.refuse(strict=strict)
    existing = ExistingFiles(overwrite=overwrite, skip=skip_existing, quiet=quiet, json=json)
    with chosen(device):
        own = load_kernels(kernels or [])
        document = run_documents.read(Path(pipeline))
        if run_documents.is_pipeline(document):
            if settings != Settings(quality=quality, largest_pixels=largest_pixels):
                raise typer.BadParameter(
                    f"{pipeline} is a pipeline of buffers, for pictures of one size: of the "
                    f"options only --quality, --largest-pixels, --device, --overwrite, "
                    f"--skip-existing, --strict, --quiet and --json go with it."
                )
            if not _is_left(source, target, existing, settings, json=json):
                made = run_documents.run_pipeline(
                    Path(pipeline), document, source, target, settings
                )
                finish(made, quiet=quiet, json=json)
            return
        chain = run_documents.filters_of(Path(pipeline), document, own, largest_pixels)
        if not _is_left(source, target, existing, settings, json=json):
            make_one(source, target, chain, settings, quiet=quiet, json=json)


def _is_left(
    source: str, target: str, existing: ExistingFiles, settings: Settings, *, json: bool
) -> bool:
    """Returns whether an existing target is skipped; resumed runs do not ask."""
    from dala.cli.conversion import STANDARD
    from dala.media.video.writing.segments import finished_frames

    if target == STANDARD or (settings.resume and finished_frames(Path(target))):
        return False
    if not existing.left_alone([Path(target)]):
        return False
    if json:
        print_json({"ok": True, "source": source, "target": target, "left_out": True})
    return True


def make_one(
    source: str,
    target: str,
    chain: Sequence[Filter],
    settings: Settings,
    *,
    quiet: bool,
    json: bool,
) -> None:
    """Converts one file with progress, and prints the result."""
    from dala.cli import conversion
    from dala.cli.progress import Report

    if target == conversion.STANDARD and json:
        raise typer.BadParameter("--json and the frames would both go to standard output.")
    report = Report(Path(source).name, quiet=quiet)
    try:
        with report:
            made = conversion.make(source, target, chain, settings, report)
    except KeyboardInterrupt:
        raise Interrupted(_how_to_go_on(target)) from None
    finish(made, quiet=quiet, json=json)


def finish(made: Converted, *, quiet: bool, json: bool) -> None:
    """Prints the result, as text or JSON."""
    if json:
        from dala.devices import current_device

        print_json({"ok": True, **made.describe(), "device": current_device().id})
    else:
        say(made.line(), quiet=quiet)
    loss_reports.tell(made.source, made.lost, quiet=quiet or json)


def _how_to_go_on(target: str) -> str:
    from dala.media.video.writing.segments import finished_frames

    kept = finished_frames(Path(target))
    if not kept:
        return "interrupted; nothing was written."
    return (
        f"interrupted; {kept} frames are kept: the same command with --resume goes on after them."
    )


@contextmanager
def chosen(device: str | None) -> Iterator[None]:
    """Uses the device inside the block."""
    from dala.devices import current_device, using

    with using(device or current_device()):
        yield
