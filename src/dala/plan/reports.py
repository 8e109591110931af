"""The records that checks and lines to print leave behind: words of 32 bits, one record each.

A record is its position (two words, the lower first), its site and the words of its values; all
records of a program have the same size. Devices keep them in the order of positions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from dala.base.record import record
from dala.errors import KernelCheckError
from dala.ir.nodes import Program, Site
from dala.ir.types import BOOL, F32, Scalar

MOST_LINES = 1000
"""The most lines of one launch that are printed: the first ones, by position."""
HEAD_WORDS = 3
"""The words of a record before its values."""

_silent: ContextVar[bool] = ContextVar("silent", default=False)


@record
class Said:
    """What the positions of a launch have said: the first lines, and the first failed check."""

    lines: Sequence[np.ndarray]
    count: int
    """How many lines there were in all."""
    failed: np.ndarray | None


def record_words(program: Program) -> int:
    """Returns the size of a program's records."""
    return HEAD_WORDS + max((sum(map(words_of, holes(site))) for site in program.sites), default=0)


def holes(site: Site) -> list[Scalar]:
    """Returns the types of the values that a site shows."""
    return [part for part in site.parts if isinstance(part, Scalar)]


def words_of(scalar: Scalar) -> int:
    """Returns how many words carry a value of a type."""
    return 2 if scalar.bits == 64 else 1


def tell(name: str, program: Program, shape: tuple[int, ...], said: Said) -> None:
    """Print the lines of a launch; raises KernelCheckError if a check failed."""
    if said.count and not _silent.get():
        lines = [_shown(program.sites[int(item[2])], item) for item in said.lines]
        if said.count > len(lines):
            lines.append(
                f"… {said.count - len(lines):,} more lines of {name} are not shown: the first "
                f"{MOST_LINES:,} by position are."
            )
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    if said.failed is not None:
        site = program.sites[int(said.failed[2])]
        flat = int(said.failed[0]) | int(said.failed[1]) << 32
        position = tuple(int(at) for at in np.unravel_index(flat, shape))
        values = _shown(site, said.failed)
        raise KernelCheckError.at(name, position, site.text, values, site.place)


@contextmanager
def silent() -> Iterator[None]:
    """Prints nothing inside: another device prints the same lines."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def _shown(site: Site, item: np.ndarray) -> str:
    words = iter(item[HEAD_WORDS:])
    found = []
    for part in site.parts:
        if isinstance(part, str):
            found.append(part)
        else:
            taken = np.array([next(words) for _ in range(words_of(part))], np.uint32)
            found.append(str(_value(part, taken)))
    return "".join(found)


def _value(scalar: Scalar, words: np.ndarray) -> object:
    if scalar == BOOL:
        return bool(words[0])
    if scalar.bits == 64:
        return words.view(scalar.numpy)[0]
    if scalar.is_float:
        return words.view(F32.numpy)[0].astype(scalar.numpy)
    return words.view(np.int32 if scalar.kind == "s" else np.uint32)[0]
