"""What a command prints: its result on standard output, everything else on standard error."""

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
"""The variable that has errors show where they come from."""


class Interrupted(Exception):
    """Ctrl-C, with what can be done to go on."""


class Terminal(Console):
    """A console that leaves it to its caller what to do when nobody reads any more."""

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
    """Where results go; text is printed as it is."""
    return Terminal(highlight=False, markup=False, emoji=False)


def errors() -> Terminal:
    """Where progress and complaints go."""
    return Terminal(stderr=True, highlight=False, markup=False, emoji=False)


def is_terminal() -> bool:
    """Whether a person sees the result, so that it may be laid out and colored."""
    return output().is_terminal


def say(line: str, *, quiet: bool = False) -> None:
    """A line for people, beside the result."""
    if not quiet:
        print(printable(line), file=sys.stderr, flush=True)


def tell(line: str) -> None:
    """A line of the result, for people."""
    print(printable(line), flush=True)


def label(name: str, columns: int) -> str:
    """A name, or its end, that takes no more than so many columns."""
    shown = printable(name)
    return shown if len(shown) <= columns else f"…{shown[1 - columns :]}"


def complain(message: str) -> None:
    """What went wrong, as the one line that a failing command prints."""
    print(printable(f"dala: {message}", lines=True), file=sys.stderr, flush=True)


def show_warnings() -> None:
    """Have what libraries warn of told in a line, as all else is."""
    import warnings

    warnings.showwarning = lambda message, *_: complain(one_line(message))


def print_json(value: Any) -> None:
    """The one object that a program reads; what is not seen is written as JSON has it."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    print("".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text))
    sys.stdout.flush()


def one_line(message: object) -> str:
    """A message without its line breaks, and without what would move the cursor.

    Of an error it is what whoever typed the command is told.
    """
    said = told(message) if isinstance(message, BaseException) else str(message)
    return printable(" ".join(said.split()))


def is_debugging() -> bool:
    return os.environ.get(DEBUG, "0") not in ("", "0")
