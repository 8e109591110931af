"""Errors of commands, which are kept for long and raised to many, without what they would hold."""

from __future__ import annotations

import copy
import traceback
from contextlib import suppress


def write_down_frames(error: BaseException, heading: str) -> None:
    """Turn the traceback into a note of the error.

    A command is remembered for long, and its error's frames, which hold on to their functions,
    would keep every buffer alive that was used there.
    """
    with suppress(Exception):  # an error whose own methods fail must not end the worker
        error.add_note(heading + "".join(traceback.format_exception(error)))
    chain, seen = [error], {id(error)}
    while chain:
        link = chain.pop()
        link.__traceback__ = None
        for earlier in (link.__cause__, link.__context__):
            if earlier is not None and id(earlier) not in seen:
                seen.add(id(earlier))
                chain.append(earlier)


def fresh(error: BaseException) -> BaseException:
    """Returns a copy to raise: raising adds the waiter's frames, and keeps their locals alive."""
    try:
        made = copy.copy(error)
        if type(made) is not type(error) or str(made) != str(error):
            return error
    except Exception:
        return error
    made.__cause__ = error.__cause__
    made.__context__ = error.__context__
    made.__suppress_context__ = error.__suppress_context__
    return made
