"""Color tables from `.cube` files: one curve for each channel (1D), or colors in a cube (3D)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from dala.base.record import record
from dala.base.text_file import read_text
from dala.errors import ArgumentError, FileError, LimitError

Triple = tuple[float, float, float]

LARGEST_CUBE = 65
LARGEST_CURVE = 65536
LARGEST_FILE_BYTES = 64 << 20
LARGEST_NUMBER = 1e38
"""Below the largest of f32."""
LEAST_SPAN = 1e-6
MOST_DIGITS = 9
MOST_SHOWN = 60
"""Characters of a line that an error shows."""

_SIZES = {"LUT_1D_SIZE": LARGEST_CURVE, "LUT_3D_SIZE": LARGEST_CUBE}
_DOMAINS = {"DOMAIN_MIN": 3, "DOMAIN_MAX": 3, "LUT_1D_INPUT_RANGE": 2, "LUT_3D_INPUT_RANGE": 2}


@record
class Cube:
    """A table, (n, n, n, 3) indexed by blue, green and red, or (n, 3); and what it spans."""

    table: np.ndarray
    least: Triple = (0.0, 0.0, 0.0)
    most: Triple = (1.0, 1.0, 1.0)


def stamp_of(path: str | os.PathLike[str]) -> tuple[int, int, int]:
    """What tells whether a file is still the same: its size, when it was changed, its number."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"{path} cannot be read: {reason}.") from error
    return found.st_size, found.st_mtime_ns, found.st_ino


def read_cube(path: str | os.PathLike[str]) -> Cube:
    """The table of a `.cube` file; an error that names the line where it is none."""
    size_bytes = stamp_of(path)[0]
    if not Path(path).is_file():
        raise FileError(f"{path} cannot be read: it is not a file.")
    if size_bytes > LARGEST_FILE_BYTES:
        raise LimitError(
            f"{path} has {size_bytes} bytes, but a .cube file has at most {LARGEST_FILE_BYTES}: "
            f"is it one?"
        )
    return parse_cube(read_text(path), str(path))


def parse_cube(text: str, name: str) -> Cube:
    """The table that the text of a `.cube` file describes; `name` is for its errors."""
    return _Reader(name).read(text)


class _Reader:
    """Reads the lines of a file: keywords first, then rows of three numbers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.line = 0
        self.size: tuple[str, int] | None = None
        self.domains: dict[str, tuple[float, ...]] = {}
        self.rows: list[tuple[float, ...]] = []

    def read(self, text: str) -> Cube:
        for self.line, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if words[0][0].isalpha():
                self._keyword(words[0], words[1:])
            else:
                self._row(words)
        return self._cube()

    def _keyword(self, keyword: str, words: list[str]) -> None:
        if keyword == "TITLE":
            return
        if keyword not in _SIZES and keyword not in _DOMAINS:
            known = ", ".join(("TITLE", *_SIZES, *_DOMAINS))
            raise self._error(f"{_shown(keyword)} is no keyword: those known are {known}.")
        if self.rows:
            raise self._error(
                f"{keyword} comes after the first row: keywords come before all rows."
            )
        if keyword in self.domains or (keyword in _SIZES and self.size):
            said = "one table" if keyword in _SIZES else f"one {keyword}"
            raise self._error(f"{keyword} is one too many: a file has {said}.")
        if keyword in _SIZES:
            self.size = (keyword, self._size(keyword, words))
        else:
            self.domains[keyword] = self._numbers(words, _DOMAINS[keyword], f"{keyword} is")

    def _size(self, keyword: str, words: list[str]) -> int:
        is_whole = len(words) == 1 and words[0].isdecimal() and len(words[0]) <= MOST_DIGITS
        size = int(words[0]) if is_whole else 0
        if 2 <= size <= _SIZES[keyword]:
            return size
        raise self._error(
            f"{keyword} is an integer from 2 to {_SIZES[keyword]}, not {_shown(*words)}."
        )

    def _row(self, words: list[str]) -> None:
        if self.size is None:
            raise self._error(f"a row comes before its size: give {' or '.join(_SIZES)} first.")
        if len(self.rows) == self._wanted():
            raise self._error(f"it has more rows than the {self._wanted()} of {self._told()}.")
        self.rows.append(self._numbers(words, 3, "a row is"))

    def _numbers(self, words: list[str], count: int, what: str) -> tuple[float, ...]:
        try:
            numbers = tuple(map(float, words))
        except ValueError:
            numbers = ()
        if len(numbers) == count and all(abs(item) < LARGEST_NUMBER for item in numbers):
            return numbers
        raise self._error(f"{what} {count} finite numbers, not {_shown(*words)}.")

    def _wanted(self) -> int:
        assert self.size is not None
        keyword, size = self.size
        return size**3 if keyword == "LUT_3D_SIZE" else size

    def _told(self) -> str:
        assert self.size is not None
        return f"{self.size[0]} {self.size[1]}"

    def _cube(self) -> Cube:
        if self.size is None:
            raise ArgumentError(f"{self.name}: it has no table: {' or '.join(_SIZES)} is missing.")
        if len(self.rows) != self._wanted():
            raise self._error(
                f"it ends after {len(self.rows)} of the {self._wanted()} rows of {self._told()}."
            )
        keyword, size = self.size
        shape = (size, size, size, 3) if keyword == "LUT_3D_SIZE" else (size, 3)
        return Cube(np.array(self.rows, np.float32).reshape(shape), *self._domain(keyword))

    def _domain(self, keyword: str) -> tuple[Triple, Triple]:
        given = self.domains.get(keyword.replace("SIZE", "INPUT_RANGE"), (0.0, 1.0))
        least = self.domains.get("DOMAIN_MIN", given[:1] * 3)
        most = self.domains.get("DOMAIN_MAX", given[1:] * 3)
        for low, high in zip(least, most, strict=True):
            if not high - low >= LEAST_SPAN:
                raise ArgumentError(
                    f"{self.name}: its domain is from {least} to {most}, but in every channel it "
                    f"ends at least {LEAST_SPAN:g} above where it begins."
                )
        return (least[0], least[1], least[2]), (most[0], most[1], most[2])

    def _error(self, what: str) -> ArgumentError:
        return ArgumentError(f"{self.name}, line {self.line}: {what}")


def _shown(*words: str) -> str:
    text = " ".join(words)
    return repr(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…")
