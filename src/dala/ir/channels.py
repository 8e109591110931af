"""Image programs that do the same to every channel, seen as programs over a row of channels."""

from __future__ import annotations

from dala.ir.access import offsets_of
from dala.ir.nodes import (
    Apply,
    Const,
    Extent,
    Load,
    Param,
    Position,
    Program,
    Value,
    walk,
)
from dala.ir.record import changed
from dala.ir.simplify import Rewriter, drop_dead


def over_channels(program: Program) -> Program | None:
    """The program over the channels of all pixels, side by side; None where they are not alike.

    It reads and writes what the program does as long as no read leaves a row: there a pixel beyond
    the edge is not a channel beyond it.
    """
    channels = program.output.channels or 1
    if program.rank != 2 or channels == 1 or program.output.scattered:
        return None
    if any(item.channels not in (None, channels) for item in program.inputs):
        return None
    images = {item.name for item in program.inputs if item.channels}
    for item in walk(program.body):
        if not isinstance(item, Apply | Load):
            return None
        if isinstance(item, Load) and not _is_plain(item, images):
            return None
    alike = _Likeness()
    first, *others = program.body.results
    for number, other in enumerate(others, 1):
        if not alike.same(first, other, number):
            return None
    return _flattened(program, channels, images)


def _is_plain(load: Load, images: set[str]) -> bool:
    """Whether a read is of a pixel at a fixed distance, or the same for the whole row."""
    if load.source in images:
        return offsets_of(load, 2) is not None
    return load.index is not None and all(
        isinstance(value, Const | Param | Extent)
        or (isinstance(value, Position) and value.axis == 0)
        for value in load.index
    )


class _Likeness:
    """Whether a value is computed for one channel as another is for the first."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int], bool] = {}

    def same(self, first: Value, other: Value, channel: int) -> bool:
        key = (id(first), id(other), channel)
        if key not in self._known:
            self._known[key] = self._compare(first, other, channel)
        return self._known[key]

    def _compare(self, first: Value, other: Value, channel: int) -> bool:
        match first, other:
            case Load(), Load():
                places = (None, None) if first.channel is None else (0, channel)
                return (
                    first.source == other.source
                    and first.border == other.border
                    and (first.channel, other.channel) == places
                    and _same_place(first, other)
                )
            case Apply(), Apply():
                return (
                    first.op == other.op
                    and first.type == other.type
                    and all(
                        self.same(a, b, channel)
                        for a, b in zip(first.args, other.args, strict=True)
                    )
                )
            case Position(), _:
                return first is other and first.axis == 0
            case ((Const() | Param() | Extent()), _):
                return first is other
        return False


def _same_place(first: Load, other: Load) -> bool:
    """Whether both are read at the same distance: only there may the column be used."""
    if first.index is None or other.index is None:
        return first.index is other.index
    return all(a is b for a, b in zip(first.index, other.index, strict=True))


def _flattened(program: Program, channels: int, images: set[str]) -> Program:
    rewriter = _Flat(channels, images)
    with rewriter.builder.block() as body:
        for statement in program.body.statements:
            rewriter.statement(statement)
        body.results = (rewriter.value(program.body.results[0]),)
    drop_dead(body)
    inputs = tuple(
        changed(item, channels=None) if item.name in images else item for item in program.inputs
    )
    output = changed(program.output, channels=None)
    return changed(program, inputs=inputs, output=output, body=body)


class _Flat(Rewriter):
    """Copies statements, with reads of pixels as reads of the channel at the same distance."""

    def __init__(self, channels: int, images: set[str]) -> None:
        super().__init__()
        self._channels = channels
        self._images = images

    def load(self, old: Load) -> Value:
        if old.source not in self._images:
            return super().load(old)
        build = self.builder
        if old.index is None:
            return build.load(old.type, old.source, None, None, old.border)
        offsets = offsets_of(old, 2)
        assert offsets is not None
        down, across = offsets[0], offsets[1] * self._channels
        row, column = build.position(0), build.position(1)
        index = (
            build.apply("add", row, build.const(row.type, down)),
            build.apply("add", column, build.const(column.type, across)),
        )
        return build.load(old.type, old.source, index, None, old.border)
