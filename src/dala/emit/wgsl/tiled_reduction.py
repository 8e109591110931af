"""Emits reductions such as matmul that workgroups compute tile by tile.

If one input does not depend on the column and another not on the row, a square workgroup needs
sixteen times fewer reads than its invocations would by themselves.
"""

from __future__ import annotations

from dala.base.record import record
from dala.emit.wgsl.memory import Memory
from dala.emit.wgsl.ops import literal
from dala.ir.nodes import Apply, Const, Extent, Load, Position, Program, Reduce, Value
from dala.ir.ops import neutral_of
from dala.ir.types import U32

TILE = 16
"""Rows and columns of a tile."""


@record
class TileableReduction:
    """A reduction whose reads are shared along the columns, or along the rows."""

    node: Reduce
    of_rows: tuple[Load, ...]
    of_columns: tuple[Load, ...]


def find_tileable(program: Program) -> TileableReduction | None:
    """Returns the only reduction of a program if it can be computed in tiles, else None."""
    if program.rank < 2 or program.output.scattered:
        return None
    found = [item for item in program.body.statements if isinstance(item, Reduce)]
    if len(found) != 1 or not _counts_from_zero(found[0]):
        return None
    node, last = found[0], program.rank - 1
    of_rows: list[Load] = []
    of_columns: list[Load] = []
    for item in node.body.statements:
        if isinstance(item, Load):
            axes = _axes(item, node.counter)
            if axes is None or {last, last - 1} <= axes:
                return None
            (of_columns if last in axes else of_rows).append(item)
        elif not isinstance(item, Apply):
            return None
    if not of_rows or not of_columns:
        return None
    return TileableReduction(node, tuple(of_rows), tuple(of_columns))


def _counts_from_zero(node: Reduce) -> bool:
    return isinstance(node.start, Const) and node.start.value == 0 and isinstance(node.stop, Extent)


def _axes(load: Load, counter: Value) -> set[int] | None:
    """Returns the axes of the positions in a read's index; None unless its indices are plain."""
    if load.index is None or counter not in load.index:
        return None
    rest = [value for value in load.index if value is not counter]
    if not all(isinstance(value, Position | Const) for value in rest):
        return None
    return {value.axis for value in rest if isinstance(value, Position)}


def tiled_reduction(body: Memory, tileable: TileableReduction) -> tuple[str, list[str]]:
    """Emits the reduction; returns its name and the declarations of the tiles.

    `across` and `down` are the invocation's coordinates in its tile.
    """
    node, size = tileable.node, f"{TILE}u"
    trips = body.trips(node, 1)
    neutral = literal(node.type, neutral_of(node.op, node.type))
    tiles: list[str] = []
    total = body.var(node.type, neutral)
    with body.iterations("0u", trips, TILE) as first:
        for load, place in _placed(tileable):
            body.values[node.counter] = body.let(
                node.counter.type, f"{node.counter.type.wgsl}({first} + {place})"
            )
            tile = f"tile{len(tiles)}"
            tiles.append(f"var<workgroup> {tile}: array<{load.type.wgsl}, {TILE * TILE}>;")
            body.line(f"{tile}[local] = {body.load(load)};")
        body.line("workgroupBarrier();")
        part = body.var(node.type, neutral)
        stop = body.let(U32, f"min({trips} - {first}, {size})", "t")
        with body.iterations("0u", stop) as iteration:
            body.values[node.counter] = body.let(
                node.counter.type, f"{node.counter.type.wgsl}({first} + {iteration})"
            )
            for number, (load, place) in enumerate(_placed(tileable)):
                index = (
                    f"down * {size} + {iteration}"
                    if place == "across"
                    else f"{iteration} * {size} + across"
                )
                body.values[load] = body.let(load.type, f"tile{number}[{index}]")
            for item in node.body.statements:
                if not isinstance(item, Load):
                    body.statement(item)
            term = body.value(node.body.results[0])
            body.line(f"{part} = {body.combined(node, part, term)};")
        body.line(f"{total} = {body.combined(node, total, part)};")
        body.line("workgroupBarrier();")
    return total, tiles


def _placed(tileable: TileableReduction) -> list[tuple[Load, str]]:
    """Returns the reads, and the direction in which an invocation loads its part of each tile."""
    rows = [(load, "across") for load in tileable.of_rows]
    return rows + [(load, "down") for load in tileable.of_columns]
