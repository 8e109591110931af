"""What is said of a kernel when it is made: checked against its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dala.errors import ArgumentError, KernelSyntaxError
from dala.ir.nodes import BORDERS, Border
from dala.lang.example_specialization import example_of
from dala.lang.lower import Definition
from dala.lang.source import Source


def checked_definition(
    source: Source, border: str, *, accumulate: bool, checks: bool | None
) -> Definition:
    """Returns a kernel as written; raises for mistakes that no dtypes and ranks would mend."""
    definition = Definition(source, border_rule(border), accumulate, checks)
    if accumulate and definition.signature.out is None:
        raise source.error(
            KernelSyntaxError,
            source.tree,
            "accumulate=True is for kernels with `out: dala.Out`; this one returns its element.",
            "Take `out: dala.Out`, and write out.add(i, value).",
        )
    example_of(definition)
    return definition


def border_rule(given: str) -> Border:
    """Returns the border rule of that name."""
    for border in BORDERS:
        if given == border:
            return border
    raise ArgumentError(f"border {given!r} is not one of {', '.join(BORDERS)}.")


def check_name(name: Any) -> None:
    """Refuse what cannot be a kernel's name."""
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"a kernel's name is a text that is not empty, not {name!r}.")


def check_declared(
    name: str,
    inputs: tuple[int | Sequence[str] | None, tuple[str, ...]],
    params: tuple[Sequence[str] | Mapping[str, Any] | None, list[str]],
) -> None:
    """Refuse inputs and parameters that were said to be others than the source's."""
    said, taken = inputs
    if isinstance(said, int):
        if said != len(taken):
            raise ArgumentError(
                f"kernel {name!r}: inputs={said} was said, but its source takes "
                f"{len(taken)} ({', '.join(taken) or 'none'})."
            )
    elif said is not None and tuple(said) != taken:
        raise ArgumentError(
            f"kernel {name!r}: inputs={list(said)} was said, but its source takes {list(taken)}."
        )
    given, names = params
    if given is not None and sorted(given) != sorted(names):
        raise ArgumentError(
            f"kernel {name!r}: params={list(given)} was said, but its source takes {names}."
        )
