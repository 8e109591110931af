"""What ONNX says of each operator: its inputs and outputs, and the attributes it cannot do without.

`operators.txt` has a line for each operator at each version that changed it, so that a model can
be checked where the onnx package is not installed; `tools/operator_schemas` writes it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dala.base.record import record

_TABLE = Path(__file__).parent / "operators.txt"
ANY = 1 << 31
"""The most inputs or outputs of an operator that takes any number."""


@record
class Side:
    """The inputs or the outputs of an operator: how many there may be, and what they are called."""

    least: int
    most: int
    names: tuple[str, ...]
    """Those that may be left out end in "?"; the last may end in "*" and come any number of times.
    """


@record
class Schema:
    """An operator at one version."""

    inputs: Side
    outputs: Side
    required: tuple[str, ...]
    """Attributes that have no default."""


def find_schema(operator: str, version: int, domain: str) -> Schema | None:
    """Returns an operator as a version of its domain has it; None where that has it no more."""
    versions = _table().get((domain, operator), {})
    since = max((each for each in versions if each <= version), default=0)
    line = versions.get(since, "")
    return _read(line) if line else None


@cache
def _table() -> dict[tuple[str, str], dict[int, str]]:
    """Lines by operators and the versions since which they hold; empty for one that is gone."""
    found: dict[tuple[str, str], dict[int, str]] = {}
    for line in _TABLE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, since, rest = line.split(" ", 2)
            domain, _, operator = name.rpartition("/")
            found.setdefault((domain, operator), {})[int(since)] = "" if rest == "gone" else rest
    return found


@cache
def _read(line: str) -> Schema:
    sides, _, required = line.partition(" !")
    inputs, _, outputs = sides.partition(" > ")
    return Schema(_side(inputs), _side(outputs), tuple(required.split()))


def _side(text: str) -> Side:
    counts, *names = text.split()
    least, _, most = counts.partition("-")
    return Side(int(least), ANY if most == "any" else int(most), tuple(names))
