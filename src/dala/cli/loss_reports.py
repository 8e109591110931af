"""Reports of what a conversion loses: a line on stderr, or an error with `--strict`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from dala.cli.terminal import say
from dala.errors import LossWarning

_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


@contextmanager
def reported() -> Iterator[None]:
    """Prints loss warnings inside the block, unless they are collected."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", LossWarning)
        usual = warnings.showwarning

        def show(message: Any, *rest: Any, **named: Any) -> None:
            collected = _collected.get()
            if not isinstance(message, LossWarning):
                usual(message, *rest, **named)
            elif collected is not None:
                collected += message.lost
            else:
                say(f"dala: {message}")

        warnings.showwarning = show
        yield


def refuse(*, strict: bool) -> None:
    """Turns losses into errors if `strict`, until `reported` ends."""
    if strict:
        warnings.simplefilter("error", LossWarning)


@contextmanager
def collected() -> Iterator[list[str]]:
    """Yields a list that collects the losses of this thread inside the block."""
    lost: list[str] = []
    token = _collected.set(lost)
    try:
        yield lost
    finally:
        _collected.reset(token)


def tell(name: str, lost: Sequence[str], *, quiet: bool) -> None:
    """Prints what a file lost in one line, if anything."""
    if lost:
        say(f"dala: {name}: {'; '.join(lost)}.", quiet=quiet)
