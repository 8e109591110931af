"""What happens to existing targets: options, else a question on a terminal, else an error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from dala.cli.terminal import say
from dala.errors import FileError


class ExistingFiles:
    """The choice between overwriting and skipping existing files."""

    def __init__(self, *, overwrite: bool, skip: bool, quiet: bool, json: bool = False) -> None:
        if overwrite and skip:
            raise typer.BadParameter("--overwrite and --skip-existing exclude each other.")
        self.overwrite = overwrite
        self._skip = skip
        self._quiet = quiet
        # With --json nobody is there to answer.
        self._may_ask = not json

    def left_alone(self, targets: Sequence[Path]) -> list[Path]:
        """Returns the existing targets to skip; raises FileError if the user has not chosen."""
        # Devices and pipes are written to directly; folders have their own rules.
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
        """Asks the user, and returns "overwrite" or "skip"; raises FileError for anything else."""
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
            print(file=sys.stderr)  # the message starts on a new line
            raise
        if answer in ("y", "yes", "o", "overwrite"):
            return "overwrite"
        if count > 1 and answer in ("s", "skip"):
            return "skip"
        raise FileError(f"{said}, and nothing was written.")
