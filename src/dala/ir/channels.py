"""Rewrites image programs that treat all channels alike as programs over interleaved channels."""

from __future__ import annotations

from collections.abc import Hashable

from dala.base.record import changed, remembered
from dala.ir.nodes import (
    Apply,
    Const,
    Extent,
    Load,
    Param,
    Position,
    Program,
    Value,
    by_output,
    walk,
)
from dala.ir.simplify import Rewriter, drop_dead

Channel = int | None
"""The channel that a value is computed from; None if it is the same for all of them."""
MIXED = -1
"""Marks values computed from several channels, or that differ from column to column."""


@remembered
def over_channels(program: Program) -> Program | None:
    """Returns the program over interleaved channels, or None if channels are treated differently.

    It is equivalent only while no read leaves its row: beyond the edge, the next element is a
    channel of a neighboring pixel.
    """
    channels = program.output.channels or 1
    if program.rank != 2 or channels == 1 or program.output.scattered or program.sites:
        return None
    if any(item.channels != channels for item in program.outputs):
        return None
    if any(item.channels not in (None, channels) for item in program.inputs):
        return None
    images = {item.name for item in program.inputs if item.channels}
    if not all(isinstance(item, Apply | Load) for item in walk(program.body)):
        return None
    uniforms: set[Value] = set()
    for item in program.body.statements:
        if isinstance(item, Load) and not _is_plain(item, images, uniforms):
            return None
        if isinstance(item, Apply) and all(_is_uniform(arg, uniforms) for arg in item.args):
            uniforms.add(item)
    if not _are_alike(program, images):
        return None
    return _flattened(program, channels, images)


def _is_plain(load: Load, images: set[str], uniforms: set[Value]) -> bool:
    """Whether a read is of a pixel as far away in all of a row, or uniform along the row."""
    if load.index is None:
        return load.source in images
    *rest, column = load.index
    if not all(_is_uniform(value, uniforms) for value in rest):
        return False
    if load.source not in images:
        return _is_uniform(column, uniforms)
    terms = _aside(column)
    return (
        len(rest) == 1
        and terms is not None
        and all(_is_uniform(value, uniforms) for value in terms)
    )


def _is_uniform(value: Value, uniforms: set[Value]) -> bool:
    """Whether a value is the same along a row."""
    if isinstance(value, Position):
        return value.axis == 0
    return isinstance(value, Const | Param | Extent) or value in uniforms


def _aside(column: Value) -> list[Value] | None:
    """Returns the terms of an index beside the position along the row; None without that."""
    terms: list[Value] = []
    pending = [column]
    while pending:
        value = pending.pop()
        if isinstance(value, Apply) and value.op == "add":
            pending += value.args
        else:
            terms.append(value)
    along = [value for value in terms if isinstance(value, Position) and value.axis == 1]
    return [value for value in terms if value not in along] if len(along) == 1 else None


def _are_alike(program: Program, images: set[str]) -> bool:
    """Whether each channel is computed from its own channel in the same way as the first.

    Uses value numbering: values computed in the same way, from whichever channel, share a number.
    """
    numbers: dict[Hashable, int] = {}
    known: dict[Value, tuple[int, Channel]] = {}

    def number(key: Hashable) -> int:
        return numbers.setdefault(key, len(numbers))

    def look_up(value: Value) -> tuple[int, Channel]:
        if value in known:
            return known[value]
        column = isinstance(value, Position) and value.axis == 1
        return number(id(value)), MIXED if column else None

    for item in program.body.statements:
        match item:
            case Load() if item.source in images:
                place = None if item.index is None else tuple(map(id, item.index))
                known[item] = (number((item.source, place, item.border)), item.channel)
            case Apply():
                args = [look_up(arg) for arg in item.args]
                channels = {channel for _, channel in args} - {None}
                channel = channels.pop() if len(channels) == 1 else MIXED if channels else None
                known[item] = (number((item.op, item.type, *(n for n, _ in args))), channel)
    results = [look_up(value) for value in program.body.results]
    return all(map(_is_alike, by_output(program.outputs, results)))


def _is_alike(found: list[tuple[int, Channel]]) -> bool:
    is_own = found[0][1] is not None
    wanted = [(found[0][0], channel if is_own else None) for channel in range(len(found))]
    return found == wanted


def _flattened(program: Program, channels: int, images: set[str]) -> Program:
    rewriter = _Flat(channels, images)
    with rewriter.builder.block() as body:
        for statement in program.body.statements:
            rewriter.statement(statement)
        body.results = tuple(rewriter.value(item) for item in program.body.results[::channels])
    drop_dead(body)
    inputs = tuple(
        changed(item, channels=None) if item.name in images else item for item in program.inputs
    )
    outputs = tuple(changed(item, channels=None) for item in program.outputs)
    return changed(program, inputs=inputs, outputs=outputs, body=body)


class _Flat(Rewriter):
    """Copies statements, turning pixel reads into reads of the channel at the same offset."""

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
        column: Value = build.position(1)
        for far in _aside(old.index[1]) or ():
            pixels = self.value(far)
            elements = build.apply("mul", pixels, build.const(pixels.type, self._channels))
            column = build.apply("add", column, elements)
        return build.load(
            old.type, old.source, (self.value(old.index[0]), column), None, old.border
        )
