"""The options that commands share."""

from __future__ import annotations

from typing import Annotated

import typer

VIDEO, SHOW, FILTERS = "Video", "What is shown", "Filters"


def _complete_filters(incomplete: str) -> list[tuple[str, str]]:
    from dala.cli.filter_syntax import completions

    return list(completions(incomplete))


def _complete_devices(incomplete: str) -> list[tuple[str, str]]:
    from dala.devices import devices

    return [(item["id"], item["name"]) for item in devices() if item["id"].startswith(incomplete)]


Filters = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        "-f",
        metavar="FILTER",
        help="A filter, such as blur:radius=3,sigma=1.5; may be given several times, in order.",
        rich_help_panel=FILTERS,
        autocompletion=_complete_filters,
        show_default=False,
    ),
]
Kernels = Annotated[
    list[str] | None,
    typer.Option(
        "--kernels",
        "-k",
        metavar="FILE",
        help="A Python file with kernels of your own, which -f then knows. It is run as Python.",
        rich_help_panel=FILTERS,
        show_default=False,
    ),
]
Size = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="The size of the result: 1280x720, whatever its proportions were; or one that keeps "
        "them: 640x, x360, 50%, fit:640x360 (all of it inside that box; enlarged if it is smaller) "
        "or fill:640x360 (covers the box, cropped around the middle). Sides that follow are "
        "rounded, in video to even numbers.",
    ),
]
LargestPixels = Annotated[
    int | None,
    typer.Option(
        metavar="COUNT",
        min=1,
        help="How many pixels a picture that is read may have; 268435456 unless given.",
    ),
]
Quality = Annotated[
    float | None,
    typer.Option(metavar="0-100", help="How good the result looks; smaller files look worse."),
]
Codec = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="h264, hevc, vp9, av1, ffv1 or prores; goes with the suffix unless given.",
        rich_help_panel=VIDEO,
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="ultrafast to veryslow: slower ones make smaller files.",
        rich_help_panel=VIDEO,
    ),
]
Start = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Where to begin: seconds, or 1:23.5.",
        rich_help_panel=VIDEO,
    ),
]
End = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Where to end: seconds, or 1:23.5.", rich_help_panel=VIDEO),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        "-y",
        help="Replace what is there already, without asking.",
        show_default=False,
    ),
]
SkipExisting = Annotated[
    bool,
    typer.Option(
        "--skip-existing", help="Leave what is there already as it is.", show_default=False
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Fail where something cannot be kept, such as 16 bits or the EXIF of a picture.",
        show_default=False,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on with a run that was interrupted.",
        rich_help_panel=VIDEO,
        show_default=False,
    ),
]
Mute = Annotated[
    bool,
    typer.Option(
        "--no-sound", help="Leave the sound out.", rich_help_panel=VIDEO, show_default=False
    ),
]
Rate = Annotated[
    float | None,
    typer.Option(
        metavar="FPS",
        help="Frames in a second, of pictures and raw frames, which do not say.",
        rich_help_panel=VIDEO,
    ),
]
RawSize = Annotated[
    str | None,
    typer.Option(
        metavar="WxH", help="The size of raw frames on standard input.", rich_help_panel=VIDEO
    ),
]
RawFormat = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Of raw frames on standard input: rgba, rgb, gray or yuv420p.",
        rich_help_panel=VIDEO,
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="What computes: cpu, webgpu, or part of a device's name; see dala devices.",
        autocompletion=_complete_devices,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Print errors only.", rich_help_panel=SHOW, show_default=False
    ),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print the result as one JSON object on standard output.",
        rich_help_panel=SHOW,
        show_default=False,
    ),
]
