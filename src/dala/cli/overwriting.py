"""What is there already: asked about on a terminal, refused elsewhere, or as options say."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from dala.cli.terminal import say
from dala.errors import FileError


class ExistingFiles:
    """What is to become of files that are there already."""

    def __init__(self, *, overwrite: bool, skip: bool, quiet: bool, json: bool = False) -> None:
        if overwrite and skip:
            raise typer.BadParameter("--overwrite and --skip-existing exclude each other.")
        self.overwrite = overwrite
        self._skip = skip
        self._quiet = quiet
        # Where a program reads the result, no person waits to be asked.
        self._may_ask = not json

    def left_alone(self, targets: Sequence[Path]) -> list[Path]:
        """Those that are there and stay as they are; a FileError unless it is known what to do."""
        # A device or a pipe is written into, and a folder has rules of its own.
        there = [target for target in targets if target.is_file()]
        if not there or self.overwrite:
            return []
        if not self._skip:
            self._skip = self._asked(there, len(targets)) == "skip"
        if not self._skip:
            return []
        for target in there:
            say(f"{target}: left out, it is there already", quiet=self._quiet or len(targets) > 1)
        return there

    def _asked(self, there: list[Path], count: int) -> str:
        """What whoever sits at the terminal wants: overwrite or skip; else a FileError."""
        said = f"{there[0]} is there already"
        if count > 1:
            said = f"{len(there)} of {count} files are there already, such as {there[0]}"
        if not self._may_ask or not sys.stdin.isatty() or not sys.stderr.isatty():
            them = "it" if count == 1 else "them"
            raise FileError(
                f"{said}: --overwrite (-y) replaces {them}, --skip-existing leaves {them} alone."
            )
        offered = "overwrite or skip? [o/s/N] " if count > 1 else "overwrite? [y/N] "
        try:
            print(f"{said}: {offered}", end="", file=sys.stderr, flush=True)
            answer = sys.stdin.readline().strip().lower()
        except KeyboardInterrupt:
            print(file=sys.stderr)  # what is told about it does not follow the question
            raise
        if answer in ("y", "yes", "o", "overwrite"):
            return "overwrite"
        if count > 1 and answer in ("s", "skip"):
            return "skip"
        raise FileError(f"{said}, and nothing was written.")
