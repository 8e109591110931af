"""Finds the source of functions typed at Python's prompt or passed with `-c`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from types import CodeType

_OLDEST = 10_000
"""The number of most recent history lines that are searched."""

_MOST_BRACKETS = 32
"""The most lines of closing brackets that may follow a function's last instruction."""


def find_lines(code: CodeType) -> list[str]:
    """Returns the lines from a function's first line on; empty if they cannot be found.

    Up to Python 3.12, Python itself keeps neither.
    """
    for text in _candidates(code):
        lines = text.splitlines(keepends=True)
        if _makes(text, code):
            return lines[code.co_firstlineno - 1 :]
    return []


def _candidates(code: CodeType) -> Iterator[str]:
    """Yields texts that the code may have been compiled from, the most likely first."""
    if code.co_filename == "<string>":
        yield from _command()
    elif code.co_filename == "<stdin>":
        yield from _statements(code)


def _command() -> Iterator[str]:
    """Yields the text passed as `python -c TEXT`, also as `-cTEXT` or after other flags."""
    if sys.argv[:1] != ["-c"]:
        return
    after = iter(sys.orig_argv[1:])
    for argument in after:
        if argument.startswith("-") and not argument.startswith("--"):
            _, option, attached = argument.partition("c")
            if option:
                yield attached or next(after, "")
                return


def _statements(code: CodeType) -> Iterator[str]:
    """Yields the latest prompt lines that may form the statement around the function."""
    readline = sys.modules.get("readline")  # loaded by the prompt, if there is one
    if readline is None:
        return
    last = readline.get_current_history_length()
    typed = [readline.get_history_item(i) or "" for i in range(max(1, last - _OLDEST), last + 1)]
    ends = [end for _, end, _, _ in code.co_positions() if end is not None]
    least = max([code.co_firstlineno, *ends])
    for start in range(len(typed) - least, -1, -1):
        statement = typed[start : start + least]
        if f"def {code.co_name}" not in "\n".join(statement):
            continue
        for more in range(min(_MOST_BRACKETS, len(typed) - start - least) + 1):
            text = "\n".join(typed[start : start + least + more]) + "\n"
            if _parses(text):
                yield text
                break


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def _makes(text: str, code: CodeType) -> bool:
    """Whether compiling the text yields exactly this function."""
    if not _parses(text):
        return False
    inside = [compile(text, code.co_filename, "exec", dont_inherit=True)]
    while inside:
        made = inside.pop()
        if _same(made, code):
            return True
        inside += [item for item in made.co_consts if isinstance(item, CodeType)]
    return False


def _same(a: CodeType, b: CodeType) -> bool:
    return (
        a.co_name == b.co_name
        and a.co_firstlineno == b.co_firstlineno
        and a.co_code == b.co_code
        and a.co_names == b.co_names
        and a.co_varnames == b.co_varnames
        and _constants(a) == _constants(b)
    )


def _constants(code: CodeType) -> list[str]:
    return [repr(item) for item in code.co_consts if not isinstance(item, CodeType)]
