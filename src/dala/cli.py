"""The command line: `dala demo`, `dala filters`, `dala gallery`, `dala devices`, `dala kernels`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from dala import __version__
from dala.errors import DalaError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    parser = argparse.ArgumentParser(
        prog="dala",
        description="Portable GPU compute for Python.",
        epilog="In a clone of the repository, ./dala bench measures it against its peers.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"dala {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    commands.add_parser("demo", help="buffers in, kernels run, results and the device printed")
    commands.add_parser("devices", help="every device, and which one is used unless told otherwise")
    commands.add_parser("kernels", help="every kernel, its inputs, its parameters and what it does")
    commands.add_parser("filters", help="every image filter, its parameters and what it does")
    gallery = commands.add_parser("gallery", help="a page that shows what every filter does")
    gallery.add_argument("folder", help="where the page and its pictures go; made if need be")
    chosen = parser.parse_args(arguments)
    if chosen.command is None:
        parser.print_help()
        return 2
    try:
        if chosen.command == "gallery":
            return _gallery(chosen.folder)
        run = {"demo": _demo, "devices": _devices, "filters": _filters, "kernels": _kernels}
        return run[chosen.command]()
    except DalaError as error:
        print(f"dala: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except KeyboardInterrupt:
        print("dala: interrupted", file=sys.stderr)
        return 130


def _demo() -> int:
    from dala.demo import run

    for line in run():
        print(line, flush=True)
    return 0


def _devices() -> int:
    from dala.gpu import compute

    default = compute.device_info()["id"]
    for info in compute.devices():
        mark = "*" if info["id"] == default else " "
        print(f"{mark} {info['id']:<10} {info['name']} ({info['kind']})")
    return 0


def _kernels() -> int:
    from dala.gpu import compute

    for name in compute.Kernel.list():
        kernel = compute.Kernel.lookup(name)
        arguments = ", ".join([*kernel.inputs, *map(str, kernel.params)])
        print(f"{name}({arguments})\n    {kernel.describe()['doc']}")
    return 0


def _filters() -> int:
    from dala.media.listing import lines

    for line in lines():
        print(line)
    return 0


def _gallery(folder: str) -> int:
    from dala.media.gallery import write_gallery

    print(f"The gallery is in {write_gallery(folder)}")
    return 0
