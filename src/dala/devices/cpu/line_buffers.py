"""Plans the line buffers of a fusion group: how many rows each keeps, and how wide tiles are."""

from __future__ import annotations

import math

from dala.base.record import record, remembered
from dala.devices.cpu.caches import core_bytes
from dala.emit.llvm.row_cuts import LINE_BYTES
from dala.emit.partition import effort_per_position, loops_over_rows
from dala.ir.access import accesses
from dala.ir.nodes import Load, walk
from dala.plan.chunks import Chunks, cut
from dala.plan.fusion import FusionGroup, Halo, halos, reach
from dala.plan.step import Step

MOST_BYTES, LEAST_BYTES = 640 << 10, 256 << 10
"""The stack space for a group's line buffers; in between, it depends on the cache of a core."""
CORE_SHARE = 5 / 8
"""The part of a core's cache that line buffers may take."""
USUAL_ROWS = 8
"""The rows of a line buffer; more only where consumers look farther around."""
LEAST_TILE = 256
"""The fewest columns of a tile, if rows are longer."""
PAGE_LINES, LEAST_APART = 4096 // LINE_BYTES, 3
"""The cache lines of a page, and how many of them rows are apart in their pages."""
HALO_SHARE = 1 / 24
"""The part of a chunk that may be computed for its neighbors as well, if it can be made longer."""
SAVED_EFFORT = 8
"""The effort that fusion saves for each byte that is not read from or written to the last cache."""


@record
class LineBuffers:
    """How a group is computed: `step` rows and `width` columns at a time.

    `rows` and `pitches` are those of each line buffer, in the order of steps and outputs; `columns`
    is the halo of each step on the left and on the right.
    """

    rows: tuple[int, ...]
    pitches: tuple[int, ...]
    columns: tuple[Halo, ...]
    step: int
    width: int


def plan_line_buffers(group: FusionGroup, materialized: set[int]) -> LineBuffers | None:
    """Returns the line buffers of a group, or None if they would outgrow the cache of a core."""
    lags = _lags(group.steps, group.halo)
    buffered = [
        (lag, scalar.size_bytes * (item.channels or 1), step.domain[1])
        for step, lag in zip(group.steps, lags, strict=True)
        for number, item, (scalar, _) in zip(
            step.outputs, step.program.outputs, step.output_kinds, strict=True
        )
        if number not in materialized
    ]
    longest = max((lag for lag, *_ in buffered), default=0)
    width = max(step.domain[1] for step in group.steps)
    columns = _column_halos(group.steps)
    ring = max(USUAL_ROWS, _power_of_two(longest + longest // 2))
    while ring > longest:
        rows = tuple(_power_of_two(ring - longest + lag) for lag, *_ in buffered)
        column = sum(count * size for count, (_, size, _) in zip(rows, buffered, strict=True))
        tile = _tile(width, column, columns)
        if tile:
            outside = max((sum(halo) for halo in columns or ()), default=0)
            pitches = tuple(
                _pitch(size * min(length, tile + outside + LINE_BYTES))
                for _, size, length in buffered
            )
            none = ((0, 0),) * len(group.steps)
            return LineBuffers(rows, pitches, columns or none, ring - longest, tile)
        ring //= 2
    return None


def pays(group: FusionGroup, buffers: LineBuffers, materialized: set[int], threads: int) -> bool:
    """Whether what a group saves is more than what it computes twice around chunks and tiles."""
    chunks = cut_group(group, threads)
    twice = 0.0
    for step, halo, columns in zip(group.steps, group.halo, buffers.columns, strict=True):
        share = sum(halo) / chunks.size if chunks.count > 1 else 0.0
        if buffers.width < step.domain[1]:
            share += sum(columns) / buffers.width
        twice += share * _effort(step) * step.output_kinds[0][0].size_bytes
    read = {number for step in group.steps for number in step.inputs}
    saved = sum(
        scalar.size_bytes * (item.channels or 1) * (1 if number in materialized else 2)
        for step in group.steps
        for number, item, (scalar, _) in zip(
            step.outputs, step.program.outputs, step.output_kinds, strict=True
        )
        if number in read
    )
    return 2 * twice <= SAVED_EFFORT * saved


def cut_group(group: FusionGroup, threads: int) -> Chunks:
    """Returns the chunks of a group, long enough that few rows are computed twice."""
    rows, width = group.steps[-1].domain
    efforts = [_effort(step) for step in group.steps]
    around = sum(effort * sum(halo) for effort, halo in zip(efforts, group.halo, strict=True))
    least = math.ceil(around / sum(efforts) / HALO_SHARE)
    return cut(rows, width, sum(efforts), threads, whole_rows=True, least_rows=least)


@remembered
def _effort(step: Step) -> int:
    return effort_per_position(step.program, step.task().shapes, step.domain[-1])


@remembered
def _stays_in_tiles(step: Step) -> bool:
    """Whether a step may be computed in tiles: it reads no column far away, nor loops over rows."""
    loads = [item for item in walk(step.program.body) if isinstance(item, Load)]
    wraps = any(load.border == "wrap" and load.index is not None for load in loads)
    return not wraps and not loops_over_rows(step.program)


def _column_halos(steps: tuple[Step, ...]) -> tuple[Halo, ...] | None:
    """Returns the halo of each step on the left and the right, or None if there can be no tiles."""
    if len({step.domain[1] for step in steps}) > 1 or not all(map(_stays_in_tiles, steps)):
        return None
    return halos(steps, 1)


def _tile(width: int, column_bytes: int, columns: tuple[Halo, ...] | None) -> int:
    """Returns the columns of a tile, of which each takes so many bytes; 0 if there is no room."""
    most = max(LEAST_BYTES, min(MOST_BYTES, int(CORE_SHARE * core_bytes())))
    if width * column_bytes <= most:
        return width
    if columns is None:
        return 0
    outside = max(map(sum, columns))
    count = -(-width // max(1, most // column_bytes - outside))
    tile = -(-width // count)
    tile += -tile % LINE_BYTES  # so that tiles begin with a cache line
    return tile if tile >= LEAST_TILE else 0


def _pitch(size_bytes: int) -> int:
    """Returns the bytes from row to row, in whole cache lines.

    A read whose place in its page is that of a write before it waits for the write, so no rows that
    are in use together lie at about the same place.
    """
    lines = -(-size_bytes // LINE_BYTES)
    while any(_apart(lines * rows) < LEAST_APART for rows in range(1, USUAL_ROWS + 2)):
        lines += 1
    return lines * LINE_BYTES


def _apart(lines: int) -> int:
    """Returns how many cache lines it is to the same place of a page."""
    return min(lines % PAGE_LINES, -lines % PAGE_LINES)


def _power_of_two(least: int) -> int:
    return 1 << max(0, least - 1).bit_length()


def _lags(steps: tuple[Step, ...], halo: tuple[Halo, ...]) -> list[int]:
    """Returns how many rows of each step are kept for consumers, beyond those computed at a time.

    A step is ahead of its consumer by the rows that others need below; the consumer looks back.
    """
    lags = [0] * len(steps)
    places = {number: i for i, step in enumerate(steps) for number in step.outputs}
    for i, step in enumerate(steps):
        found = accesses(step.program)
        for item, number in zip(step.program.inputs, step.inputs, strict=True):
            place = places.get(number)
            if place is not None and place < i:
                up, _ = reach(found[item.name], step.program, item.name, 0)
                lags[place] = max(lags[place], halo[place][1] - halo[i][1] + up)
    return lags
