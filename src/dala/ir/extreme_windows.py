"""Recognizes minima and maxima over a rectangle of elements around each position."""

from __future__ import annotations

from dala.base.record import record
from dala.ir.access import offsets_of
from dala.ir.fixed_point import in_fixed_point
from dala.ir.nodes import Apply, Border, Input, Load, Program, Value

LEAST_ELEMENTS = 9
"""Fewer are not worth two passes."""


@record
class Window:
    """One result: the extreme of the elements in some rows and columns, by their offsets."""

    op: str
    source: str
    border: Border
    channel: int | None
    rows: tuple[int, ...]
    columns: tuple[int, ...]


def extreme_windows(program: Program) -> tuple[Input, list[Window]] | None:
    """Returns the windows whose extremes a program stores, all of one input, or None."""
    if program.rank != 2 or len(program.outputs) != 1 or program.output.scattered:
        return None
    found = [_window(value) for value in in_fixed_point(program).body.results]
    windows = [window for window in found if window is not None]
    if len(windows) != len(found) or len({(item.source, item.border) for item in windows}) != 1:
        return None
    source, output = program.input(windows[0].source), program.output
    is_alike = (source.rank, source.type, source.channels) == (2, output.type, output.channels)
    is_own = all(item.channel in (None, i) for i, item in enumerate(windows))
    return (source, windows) if is_alike and is_own else None


def _window(value: Value) -> Window | None:
    if not isinstance(value, Apply) or value.op not in ("min", "max"):
        return None
    loads: set[Load] = set()
    pending: list[Value] = [value]
    seen: set[Value] = set()
    while pending:
        item = pending.pop()
        if item in seen:
            continue
        seen.add(item)
        if isinstance(item, Load):
            loads.add(item)
        elif isinstance(item, Apply) and item.op == value.op:
            pending += item.args
        else:
            return None
    kinds = {(load.source, load.border, load.channel) for load in loads}
    places = {offsets_of(load, 2) for load in loads}
    if len(kinds) != 1 or None in places:
        return None
    rows, columns = (sorted({place[axis] for place in places if place}) for axis in (0, 1))
    whole = len(rows) * len(columns)
    if len(places) != whole or whole < LEAST_ELEMENTS or 1 in (len(rows), len(columns)):
        return None
    ((source, border, channel),) = kinds
    return Window(value.op, source, border, channel, tuple(rows), tuple(columns))
