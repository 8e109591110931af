"""`dala batch`: the same filters on many files, several at a time."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from dala.cli import loss_reports, options
from dala.cli.overwriting import ExistingFiles
from dala.cli.process import chosen
from dala.cli.terminal import Interrupted, print_json, say

MOST_WORKERS = 4


def batch(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...", help="Files, folders, and patterns such as 'shots/**/*.jpg'."
        ),
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FOLDER", help="Where the results go.")
    ],
    filter: options.Filters = None,
    kernels: options.Kernels = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="SUFFIX", help="Another format for all of them, such as webp."),
    ] = None,
    recursive: Annotated[
        bool,
        typer.Option(
            "--recursive", "-r", help="Folders with all that is below.", show_default=False
        ),
    ] = False,
    workers: Annotated[
        int, typer.Option(metavar="COUNT", min=1, max=64, help="How many files at a time.")
    ] = min(MOST_WORKERS, os.cpu_count() or 1),
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
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Leave out what is made already, and go on with what was interrupted.",
            show_default=False,
        ),
    ] = False,
    no_sound: options.Mute = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> int:
    """Apply filters to many pictures and videos.

    dala batch photos/ 'clips/*.mp4' --out small -f grayscale --size fit:640x360

    Of a folder all pictures and videos are taken. A file that fails does not stop the others; it
    is listed in the end, and the exit code is 1.
    """
    from dala.cli.batch_plan import plan
    from dala.cli.batch_run import BatchRun
    from dala.cli.conversion import Settings
    from dala.cli.filter_syntax import read_filters
    from dala.cli.kernel_files import load_kernels
    from dala.cli.progress import seconds

    settings = Settings.of(
        codec=codec,
        quality=quality,
        preset=preset,
        size=size,
        start=start,
        end=end,
        resume=resume,
        sound=not no_sound,
        largest_pixels=largest_pixels,
    )
    loss_reports.refuse(strict=strict)
    with chosen(device):
        chain = read_filters(filter or [], load_kernels(kernels or []), largest_pixels)
        existing = ExistingFiles(overwrite=overwrite, skip=skip_existing, quiet=quiet, json=json)
        jobs = plan(sources, out, to=to, recursive=recursive, overwrite=overwrite)
        # A resumed batch replaces outdated targets, and skips the others itself.
        kept = [] if resume else existing.left_alone([job.target for job in jobs])
        work = BatchRun(jobs, chain, settings, kept=kept, workers=workers, quiet=quiet)
        try:
            work.run()
        except KeyboardInterrupt:
            raise Interrupted(
                f"interrupted; {len(work.made)} of {len(jobs)} files are made: the same command "
                f"with --resume goes on."
            ) from None
    if json:
        print_json(work.describe())
        return 1 if work.failed else 0
    parts = [f"{len(work.made)} made"]
    parts += [f"{len(work.left_out)} left out"] if work.left_out else []
    parts += [f"{len(work.failed)} failed"] if work.failed else []
    say(f"{_files(len(jobs))}: {', '.join(parts)}, in {seconds(work.seconds)}", quiet=quiet)
    for made in work.made:
        loss_reports.tell(made.source, made.lost, quiet=quiet)
    for source, error in work.failed.items():
        say(f"dala: {source}: {error}")
    return 1 if work.failed else 0


def _files(count: int) -> str:
    return f"{count} file{'s' * (count != 1)}"
