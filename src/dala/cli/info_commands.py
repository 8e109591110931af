"""`dala filters`, `kernels`, `devices`, `demo`, `gallery`, `bench`: what there is to see."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dala.cli import options
from dala.cli.overwriting import ExistingFiles
from dala.cli.process import chosen
from dala.cli.terminal import is_terminal, output, print_json, say, tell


def _complete_names(incomplete: str) -> list[str]:
    from dala.cli.filter_syntax import known_filters

    return [name for name in known_filters() if name.startswith(incomplete)]


def filters(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="One filter, to see all of it.", autocompletion=_complete_names
        ),
    ] = None,
    kernels: options.Kernels = None,
    json: options.Json = False,
) -> None:
    """List the filters, or say what one of them takes and does."""
    from dala.cli import filter_list
    from dala.cli.kernel_files import load_kernels

    own = load_kernels(kernels or [])
    if name is not None:
        found = filter_list.described(name, own)
        if json:
            print_json({"name": name, **found})
        else:
            for line in filter_list.page(name, found, min(100, output().width)):
                tell(line)
    elif json:
        print_json(filter_list.everything(own))
    elif is_terminal():
        output().print(filter_list.table(own))
    else:
        for line in filter_list.lines(own):
            tell(line)


def _complete_kernels(incomplete: str) -> list[str]:
    from dala.gpu import compute

    return [name for name in compute.Kernel.list() if name.startswith(incomplete)]


def kernels(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="One kernel, to see all of it.", autocompletion=_complete_kernels
        ),
    ] = None,
    kernels: options.Kernels = None,
    json: options.Json = False,
) -> None:
    """List the kernels, or say what one of them takes and does."""
    from dala.cli import kernel_list
    from dala.cli.kernel_files import load_kernels
    from dala.gpu import compute

    load_kernels(kernels or [])
    if name is not None:
        found = kernel_list.described(name)
        if json:
            print_json({"name": name, **found})
            return
        for line in kernel_list.page(name, found, min(100, output().width)):
            print(line)
        return
    described = {name: compute.Kernel.lookup(name).describe() for name in compute.Kernel.list()}
    if json:
        print_json(described)
        return
    for known, item in described.items():
        params = map(str, compute.Kernel.lookup(known).params)
        tell(f"{known}({', '.join([*item['inputs'], *params])})")
        tell(f"    {item['doc']}")


def devices(json: options.Json = False) -> None:
    """List the devices; * marks the one that is used unless told otherwise."""
    from dala.gpu import compute

    default = compute.device_info()["id"]
    found: list[dict[str, Any]] = compute.devices()
    if json:
        print_json({"default": default, "devices": found})
        return
    for info in found:
        mark = "*" if info["id"] == default else " "
        tell(f"{mark} {info['id']:<10} {info['name']} ({info['kind']})")


def demo(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="Where the videos go; made if need be.")
    ] = "dala-demo",
    device: options.Device = None,
    overwrite: options.Overwrite = False,
    skip_existing: options.SkipExisting = False,
) -> None:
    """Run kernels on buffers, make a short clip, and filter it."""
    from dala.demo import CLIP, RESULT, run

    existing = ExistingFiles(overwrite=overwrite, skip=skip_existing, quiet=False)
    kept = existing.left_alone([Path(folder) / name for name in (CLIP, RESULT)])
    with chosen(device):
        for line in run(None if kept else Path(folder)):
            tell(line)


def gallery(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="Where the page goes; made if need be.")
    ],
    device: options.Device = None,
    overwrite: options.Overwrite = False,
    skip_existing: options.SkipExisting = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Write a page that shows what every filter does to a picture."""
    from dala.media.showcase.gallery import INDEX_NAME, write_gallery

    existing = ExistingFiles(overwrite=overwrite, skip=skip_existing, quiet=quiet, json=json)
    if existing.left_alone([Path(folder) / INDEX_NAME]):
        return
    with chosen(device):
        page = write_gallery(folder)
    if json:
        print_json({"ok": True, "page": str(page)})
    else:
        say(f"The gallery is in {page}", quiet=quiet)


def bench(context: typer.Context) -> int:
    """Measure dala against its peers, in a clone of the repository; takes its own options."""
    import subprocess
    import sys

    import dala
    from dala.errors import FileError

    root = Path(dala.__file__).resolve().parents[2]
    if not (root / "benchmarks" / "__main__.py").exists():
        raise FileError(
            "the benchmarks are not installed: run ./dala bench in a clone of the repository."
        )
    command = [sys.executable, "-m", "benchmarks", *context.args]
    return subprocess.call(command, cwd=root)
