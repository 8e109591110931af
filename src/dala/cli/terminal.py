"""Output of commands: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from dala.base.printable import printable
from dala.cli.option_names import told

DEBUG = "DALA_DEBUG"
"""The environment variable that makes errors print tracebacks."""


class Interrupted(Exception):
    """Raised for Ctrl-C, with a hint on how to resume."""


class Terminal(Console):
    """A console that raises BrokenPipeError, and escapes control characters."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable(segment.text, lines=True), segment.style)


def output() -> Terminal:
    """Returns the console for results."""
    return Terminal(highlight=False, markup=False, emoji=False)


def errors() -> Terminal:
    """Returns the console for progress and errors."""
    return Terminal(stderr=True, highlight=False, markup=False, emoji=False)


def is_terminal() -> bool:
    """Returns whether standard output is a terminal."""
    return output().is_terminal


def say(line: str, *, quiet: bool = False) -> None:
    """Prints a line to standard error."""
    if not quiet:
        print(printable(line), file=sys.stderr, flush=True)


def tell(line: str) -> None:
    """Prints a line of the result."""
    print(printable(line), flush=True)


def label(name: str, columns: int) -> str:
    """Returns a name, cut at its start to fit into the columns."""
    shown = printable(name)
    return shown if len(shown) <= columns else f"…{shown[1 - columns :]}"


def complain(message: str) -> None:
    """Prints an error as the one line of a failing command."""
    print(printable(f"dala: {message}", lines=True), file=sys.stderr, flush=True)


def show_warnings() -> None:
    """Makes warnings print as one line each."""
    import warnings

    warnings.showwarning = lambda message, *_: complain(one_line(message))


def print_json(value: Any) -> None:
    """Prints a JSON object, with control characters escaped."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    print("".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text))
    sys.stdout.flush()


def one_line(message: object) -> str:
    """Returns a message without line breaks and control characters.

    Errors are worded for the command line.
    """
    said = told(message) if isinstance(message, BaseException) else str(message)
    return printable(" ".join(said.split()))


def is_debugging() -> bool:
    return os.environ.get(DEBUG, "0") not in ("", "0")
