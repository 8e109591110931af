"""What a command prints: its result on standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, NoReturn

from rich.console import Console

DEBUG = "DALA_DEBUG"
"""The variable that has errors show where they come from."""


class Interrupted(Exception):
    """Ctrl-C, with what can be done to go on."""


class Terminal(Console):
    """A console that leaves it to its caller what to do when nobody reads any more."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def output() -> Terminal:
    """Where results go; text is printed as it is."""
    return Terminal(highlight=False, markup=False, emoji=False)


def errors() -> Terminal:
    """Where progress and complaints go."""
    return Terminal(stderr=True, highlight=False, markup=False, emoji=False)


def is_terminal() -> bool:
    """Whether a person sees the result, so that it may be laid out and coloured."""
    return output().is_terminal


def say(line: str, *, quiet: bool = False) -> None:
    """A line for people, beside the result."""
    if not quiet:
        print(line, file=sys.stderr, flush=True)


def complain(message: str) -> None:
    """What went wrong, as the one line that a failing command prints."""
    say(f"dala: {message}")


def show_warnings() -> None:
    """Have what libraries warn of told in a line, as all else is."""
    import warnings

    warnings.showwarning = lambda message, *_: complain(one_line(message))


def print_json(value: Any) -> None:
    """The one object that a program reads."""
    print(json.dumps(value, ensure_ascii=False, default=str), flush=True)


def one_line(message: object) -> str:
    """A message without its line breaks, and without what would move the cursor."""
    text = " ".join(str(message).split())
    return "".join(character if character.isprintable() else "�" for character in text)


def is_debugging() -> bool:
    return os.environ.get(DEBUG, "0") not in ("", "0")
