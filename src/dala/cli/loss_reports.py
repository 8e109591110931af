"""What a file holds and its result does not: said in a line, or an error with `--strict`."""

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
    """Inside, losses are lines for people, or go to whoever collects them."""
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
    """Have losses be errors from now on, until `reported` ends, where that is asked for."""
    if strict:
        warnings.simplefilter("error", LossWarning)


@contextmanager
def collected() -> Iterator[list[str]]:
    """Inside, in this thread, losses are put into a list."""
    lost: list[str] = []
    token = _collected.set(lost)
    try:
        yield lost
    finally:
        _collected.reset(token)


def tell(name: str, lost: Sequence[str], *, quiet: bool) -> None:
    """All that was lost of a file, in one line; nothing where that is nothing."""
    if lost:
        say(f"dala: {name}: {'; '.join(lost)}.", quiet=quiet)
