"""Names of files that hold escape sequences, line breaks, bytes that are no text, or markup."""

from __future__ import annotations

import json
import os
import shutil
from io import StringIO

import pytest

from dala.cli import batch_run, progress, terminal
from dala.cli.conversion import Settings
from dala.cli.terminal import Terminal

EVIL = "a\x1b[31m\nb\x9b2J"
SHOWN = r"a\x1b[31m\nb\x9b2J"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no such names")


def seen(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


@pytest.fixture
def files(folder, picture):
    """A folder with a picture and something broken, both of names that are not to be printed."""
    (folder / "in").mkdir()
    shutil.copy(folder / "photo.png", folder / "in" / f"{EVIL}.png")
    (folder / "in" / f"{EVIL} broken.png").write_text("no picture")
    shutil.copy(folder / "photo.png", os.fsencode(folder / "in") + b"/\xff.png")
    return folder


def test_a_batch_prints_a_line_for_each_file_whatever_their_names(told, files):
    code, out, err = told("batch", "in", "--out", "out", "-f", "invert")
    assert (code, out) == (1, "")
    assert seen(err)
    lines = err.splitlines()
    assert len(lines) == 5  # a line for each, the sum, and what failed
    assert sum(f"out/{SHOWN}.png: 40 × 30" in line for line in lines) == 1
    assert sum(r"out/\udcff.png: 40 × 30" in line for line in lines) == 1
    assert lines[-1].startswith(f"dala: in/{SHOWN} broken.png: is none of the pictures")


def test_a_batch_tells_programs_the_names_themselves(told, files):
    code, out, _ = told("batch", "in", "--out", "out", "-f", "invert", "--json")
    assert code == 1
    assert seen(out)
    found = json.loads(out)
    assert sorted(item["target"] for item in found["made"]) == [
        f"out/{EVIL}.png",
        "out/\udcff.png",
    ]
    assert found["failed"][0]["source"] == f"in/{EVIL} broken.png"


def test_the_line_of_a_process_is_one_line(told, files):
    code, _, err = told("process", f"in/{EVIL}.png", f"{EVIL}.png", "-f", "invert")
    assert code == 0
    assert err.count("\n") == 1
    assert err.startswith(f"{SHOWN}.png: 40 × 30")


def test_what_is_typed_wrongly_is_shown_so(refused, folder):
    assert SHOWN in refused("process", f"{EVIL}.png", "out.png", code=1)
    assert seen(refused("process", "a.png", "b.png", "-f", f"{EVIL}"))
    assert seen(refused(f"--{EVIL}"))


def test_the_file_of_an_error_of_the_system_is_shown_so(refused, folder, picture, monkeypatch):
    def fail(*given, **named):
        raise OSError(5, "Input/output error", EVIL)

    monkeypatch.setattr("dala.cli.conversion.make", fail)
    assert (
        refused("process", "photo.png", "b.png", code=1) == f"dala: {SHOWN}: Input/output error.\n"
    )


@pytest.fixture
def screen(monkeypatch):
    """What goes to standard error, as if that were a terminal, but without colors."""
    file = StringIO()
    made = Terminal(file=file, force_terminal=True, color_system=None, width=100, markup=False)
    for module in (progress, batch_run, terminal):
        monkeypatch.setattr(module, "errors", lambda: made)
    return file


@pytest.mark.parametrize("name", [f"{EVIL}.png", "[/red].png", "[bold]x.png", "[link=x]y.png"])
def test_bars_show_names_as_text(screen, name):
    report = progress.Report(name)
    with report:
        report._bars.refresh()
    jobs = batch_run.BatchRun([], [], Settings(), workers=1, quiet=False)
    with jobs._show:
        jobs._show.running(name)
        jobs._show._bars.refresh()
    shown = screen.getvalue()
    assert terminal.label(name, 20) in shown
    assert "\x1b[31m" not in shown
    assert "\x9b" not in shown
    assert "\nb" not in shown


def test_a_table_shows_names_as_text(screen):
    from rich.table import Table

    table = Table()
    table.add_row(EVIL)
    terminal.errors().print(table)
    assert "\x1b" not in screen.getvalue()
    assert r"a\x1b" in screen.getvalue()


def test_a_long_name_is_shown_by_its_end():
    assert terminal.label("x" * 30 + ".png", 20) == "…" + "x" * 15 + ".png"
    assert len(terminal.label("\x1b" * 30, 20)) == 20
