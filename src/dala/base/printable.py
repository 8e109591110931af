"""Escapes control characters in untrusted text, such as names of files and models.

A name can contain escape sequences that move a terminal's cursor, change colors or set its title,
line breaks, and bidirectional marks that reorder its letters. None of them is printed.
"""

from __future__ import annotations

_KEPT = frozenset("\u00a0\u1680\u202f\u205f\u3000\u200c\u200d") | {
    chr(code) for code in range(0x2000, 0x200B)
}
"""Spaces and joiners that occur in legitimate names."""


def printable(text: object, *, lines: bool = False) -> str:
    """Returns the text with unprintable characters escaped as in Python: `\\x1b`, `\\n`, `\\u202e`.

    With `lines`, line breaks and tabs are kept, for text of several lines.

    >>> print(printable("a\\x1b[31m\\nb.png"))
    a\\x1b[31m\\nb.png
    """
    said = str(text)
    if said.isprintable():
        return said
    kept = _KEPT | {"\n", "\t"} if lines else _KEPT
    return "".join(
        each if each.isprintable() or each in kept else each.encode("unicode_escape").decode()
        for each in said
    )
