"""Rewrites programs that compute each channel from its own as ones over interleaved channels."""

from __future__ import annotations

from collections.abc import Hashable

from dala.base.record import changed, remembered
from dala.ir.nodes import (
    Apply,
    Channel,
    Const,
    Extent,
    Load,
    Param,
    Position,
    Program,
    Value,
    by_output,
    operands_of,
    used,
    walk,
)
from dala.ir.simplify import Rewriter, drop_dead
from dala.ir.types import U8

Own = int | None
"""The channel that a value is computed from; None if it is the same for all of them."""
MIXED = -1
"""Marks values computed from several channels, or that differ from column to column."""
MOST_DISTINCT = 3
"""In how many ways channels may be computed: all of them are, and each channel takes its own."""
MOST_WITH_TABLES = 2
"""The same where values are read from tables, which takes longer than telling channels apart."""


def treats_channels_alike(program: Program) -> bool:
    """Whether all channels are computed in the same way, each of its own."""
    flat = over_channels(program)
    return flat is not None and not any(isinstance(value, Channel) for value in used(flat.body))


@remembered
def over_channels(program: Program) -> Program | None:
    """Returns the program over interleaved channels, or None if channels are mixed.

    It is equivalent only while no read leaves its row: beyond the edge, the next element is a
    channel of a neighboring pixel.
    """
    channels = program.output.channels or 1
    if program.rank > 2 or channels == 1 or program.output.scattered or program.sites:
        return None
    if program.rank == 1 and any(isinstance(value, Position) for value in used(program.body)):
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
    return _flattened(program, channels, images) if _keep_apart(program, images) else None


def _is_plain(load: Load, images: set[str], uniforms: set[Value]) -> bool:
    """Whether a read is of a pixel as far away in all of a row, or uniform along the row."""
    if load.index is None:
        return load.source in images
    *rest, column = load.index
    if _is_of_table(load, images):
        return True
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


def _is_of_table(load: Load, images: set[str]) -> bool:
    """Whether a read goes where a value says."""
    return load.source not in images and load.index is not None and len(load.index) == 1


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


def _keep_apart(program: Program, images: set[str]) -> bool:
    """Whether each channel is computed from its own channel, in one of a few ways.

    Uses value numbering: values computed in the same way, from whichever channel, share a number.
    """
    numbers: dict[Hashable, int] = {}
    known: dict[Value, tuple[int, Own]] = {}
    last = program.rank - 1

    def number(key: Hashable) -> int:
        return numbers.setdefault(key, len(numbers))

    def look_up(value: Value) -> tuple[int, Own]:
        if value in known:
            return known[value]
        column = isinstance(value, Position) and value.axis == last
        return number(id(value)), MIXED if column else None

    for item in program.body.statements:
        match item:
            case Load() if item.source in images:
                place = None if item.index is None else tuple(map(id, item.index))
                known[item] = (number((item.source, place, item.border)), item.channel)
            case Apply() | Load():
                args = [look_up(arg) for arg in operands_of(item)]
                channels = {channel for _, channel in args} - {None}
                channel = channels.pop() if len(channels) == 1 else MIXED if channels else None
                what = item.op if isinstance(item, Apply) else (item.source, item.border)
                known[item] = (number((what, item.type, *(n for n, _ in args))), channel)
    results = [look_up(value) for value in program.body.results]
    loads = [item for item in program.body.statements if isinstance(item, Load)]
    has_tables = any(_is_of_table(load, images) for load in loads)
    most = MOST_WITH_TABLES if has_tables else MOST_DISTINCT
    return all(_are_own(found, most) for found in by_output(program.outputs, results))


def _are_own(found: list[tuple[int, Own]], most: int) -> bool:
    is_own = all(own in (None, channel) for channel, (_, own) in enumerate(found))
    return is_own and len({number for number, _ in found}) <= most


def _flattened(program: Program, channels: int, images: set[str]) -> Program:
    rewriter = _Flat(channels, images)
    with rewriter.builder.block() as body:
        for statement in program.body.statements:
            rewriter.statement(statement)
        values = [rewriter.value(item) for item in program.body.results]
        body.results = tuple(map(rewriter.chosen, by_output(program.outputs, values)))
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
        self._channel = Channel(U8, channels)

    def chosen(self, values: list[Value]) -> Value:
        """Returns the value of each channel's own, of those that all of them are."""
        result, build = values[0], self.builder
        for value in dict.fromkeys(values[1:]):
            if value is values[0]:
                continue
            places = [place for place, other in enumerate(values) if other is value]
            tests = [build.apply("eq", self._channel, build.const(U8, at)) for at in places]
            is_own = tests[0]
            for test in tests[1:]:
                is_own = build.apply("or", is_own, test)
            result = build.select(is_own, value, result)
        return result

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
