"""Splits stencils whose weights are a product: a sum down the columns, then one along the rows.

So are minima and maxima over a rectangle.

A stencil of m by n levels takes m · n multiplications for each result; its two passes take m + n.
What lies between them is seen by nobody. It is kept in 16 bits: exactly where the weights are
fractions of a small denominator, as those of means and binomials are, else in parts of a level; and
in floats where 16 bits would be too coarse.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain

import numpy as np

from dala.base.record import changed, record, remembered
from dala.ir.access import offsets_of
from dala.ir.builder import Builder
from dala.ir.extreme_windows import extreme_windows
from dala.ir.fixed_point import stored_forms
from dala.ir.level_forms import ROOM, Form, Level
from dala.ir.level_plans import LARGEST_ERROR, as_fraction, closest, plan_of
from dala.ir.level_sums import LevelSums
from dala.ir.nodes import Block, Border, Input, Load, Program, Value
from dala.ir.types import F32, S32, U8, U16, Scalar

BETWEEN = "between"
"""The input of the second pass."""
LEAST_GAIN = 2
"""How many times fewer weights two passes must have."""
MOST_APART = 1 / 256
"""How far off a product may be from the weights, in levels, for all of them together."""
PART_BITS = (7, 8)
"""How finely levels are kept between the passes. With 7 bits two of them can be added in 16."""


@record
class Taps:
    """The weights of one result: those down the columns, which add up to 1, and along the rows."""

    channel: int | None
    down: dict[int, float]
    across: dict[int, float]
    form: Form


@record
class Stencil:
    """A program whose every result is a separable stencil of one input."""

    source: Input
    border: Border
    taps: tuple[Taps, ...]


@record
class Between:
    """The first pass. Its results times `unit` are levels, `error` off; floats have no `most`."""

    program: Program
    unit: float = 1.0
    most: int | None = None
    error: float = 0.0


@remembered
def separated(program: Program) -> tuple[Program, Program] | None:
    """Returns two programs that compute a separable stencil one after the other, or None.

    The second reads what the first one writes, in its own row only.
    """
    stencil = _stencil(program)
    if stencil is None:
        return _extremes(program)
    for first in chain(_exact_sums(program, stencil), _close_sums(program, stencil)):
        second = _levels(program, stencil, first)
        if second is not None:
            return first.program, second
    return _float_sums(program, stencil), _rounded_floats(program, stencil)


# -- recognizing -----------------------------------------------------------------------------------


def _stencil(program: Program) -> Stencil | None:
    if program.rank != 2 or len(program.outputs) != 1 or program.output.type != U8:
        return None
    forms = stored_forms(program)
    if forms is None:
        return None
    loads = {level.value for form in forms for level in form.weights}
    sources = {(load.source, load.border) for load in loads if isinstance(load, Load)}
    if not all(isinstance(load, Load) and load.type == U8 for load in loads) or len(sources) != 1:
        return None
    ((name, border),) = sources
    source = program.input(name)
    if source.rank != 2 or source.channels != program.output.channels:
        return None
    taps = list(map(_taps, forms))
    found = tuple(item for item in taps if item is not None)
    if len(found) != len(taps) or not all(
        item.channel in (None, i) for i, item in enumerate(found)
    ):
        return None
    pays = any(_pays(item) for item in found)
    return Stencil(source, border, found) if pays else None


def _taps(form: Form) -> Taps | None:
    """Returns the factors of a result's weights, or None if they are no product."""
    weights = form.weights
    channels = {level.value.channel for level in weights if isinstance(level.value, Load)}
    if form.uniforms or len(channels) != 1:
        return None
    places: dict[tuple[int, ...], float] = {}
    for level, weight in weights.items():
        place = offsets_of(level.value, 2) if isinstance(level.value, Load) else None
        if place is None:
            return None
        places[place] = weight
    rows, columns = (sorted({place[axis] for place in places}) for axis in (0, 1))
    matrix = np.array([[places.get((y, x), 0.0) for x in columns] for y in rows])
    column = matrix[:, np.abs(matrix).sum(axis=0).argmax()]
    total = column.sum()
    if not total or (column / total < 0).any():
        return None
    down = column / total
    across = down @ matrix / (down @ down)
    if 255 * np.abs(matrix - np.outer(down, across)).sum() > MOST_APART:
        return None
    return Taps(
        channels.pop(),
        dict(zip(rows, down.tolist(), strict=True)),
        dict(zip(columns, across.tolist(), strict=True)),
        form,
    )


def _pays(taps: Taps) -> bool:
    down, across = len(taps.down), len(taps.across)
    return len(taps.form.weights) >= LEAST_GAIN * (down + across)


# -- the passes ------------------------------------------------------------------------------------


class _Pass(Builder):
    """Builds one pass, which reads one input along one axis."""

    def __init__(self, source: Input, border: Border, axis: int) -> None:
        super().__init__()
        self.source = source
        self.border = border
        self.axis = axis

    def read(self, taps: Taps) -> list[tuple[Value, float]]:
        """Returns the elements that a result is a sum of, and their weights."""
        weights = (taps.down, taps.across)[self.axis]
        return [(self._element(taps, at), weight) for at, weight in weights.items() if weight]

    def _element(self, taps: Taps, offset: int) -> Value:
        index: list[Value] = [self.position(0), self.position(1)]
        index[self.axis] = self.apply("add", index[self.axis], self.const(S32, offset))
        return self.load(
            self.source.type, self.source.name, tuple(index), taps.channel, self.border
        )

    def sum(self, taps: Taps) -> Value:
        """Returns a result in floats."""
        total: Value = self.const(F32, 0.0)
        for element, weight in self.read(taps):
            part = self.apply("mul", self.convert(element, F32), self.const(F32, weight))
            total = self.apply("add", total, part)
        return total


def _down(stencil: Stencil) -> _Pass:
    return _Pass(stencil.source, stencil.border, 0)


def _across(stencil: Stencil, type: Scalar) -> _Pass:
    return _Pass(changed(stencil.source, name=BETWEEN, type=type), stencil.border, 1)


def _made(program: Program, part: _Pass, body: Block, type: Scalar, which: str) -> Program:
    """Returns a pass as a program; nothing is left in it to be narrowed."""
    return changed(
        program,
        name=f"{program.name} ({which})",
        inputs=(part.source,),
        params=(),
        outputs=(changed(program.output, type=type),),
        body=body,
        narrowed=True,
    )


def _exact_sums(program: Program, stencil: Stencil) -> Iterator[Between]:
    """Yields the first pass in whole fractions of a level, if they fit 16 bits."""
    weights = {weight for taps in stencil.taps for weight in taps.down.values() if weight}
    fractions = {weight: as_fraction(weight) for weight in weights}
    parts = math.lcm(*(item.denominator for item in fractions.values()))
    most = U8.highest * parts + parts
    if most > ROOM:
        return
    part = _down(stencil)
    with part.block() as body:
        for taps in stencil.taps:
            total: Value = part.const(U16, 0)
            for level, weight in part.read(taps):
                count = part.const(U16, int(fractions[weight] * parts))
                total = part.apply("add", total, part.apply("mul", part.convert(level, U16), count))
            body.results += (total,)
    yield Between(_made(program, part, body, U16, "down"), 1 / parts, most)


def _close_sums(program: Program, stencil: Stencil) -> Iterator[Between]:
    """Yields first passes in parts of a level: ever finer ones."""
    for bits in PART_BITS:
        part, most, error = _down(stencil), 0, 0.0
        with part.block() as body:
            for taps in stencil.taps:
                levels = {Level(level, U8.highest): weight for level, weight in part.read(taps)}
                plan = closest(Form(levels, {}, 0.0), bits)
                if plan is None or plan.bits != bits:
                    break
                body.results += (LevelSums(part).total(plan, 0),)
                most = max(most, (U8.highest << bits) + len(plan.groups))
                error = max(error, plan.error)
            else:
                made = _made(program, part, body, U16, "down")
                yield Between(made, 1 / (1 << bits), most, error)


def _levels(program: Program, stencil: Stencil, first: Between) -> Program | None:
    """Returns the second pass in 16 bits, or None if that is not close enough."""
    part = _across(stencil, U16)
    with part.block() as body:
        for taps in stencil.taps:
            weights = {
                Level(level, first.most or 0): weight * first.unit
                for level, weight in part.read(taps)
            }
            form = changed(taps.form, levels=weights)
            plan = plan_of(form)
            spread = sum(map(abs, taps.across.values()))
            if plan is None or first.error * spread + plan.error > 2 * LARGEST_ERROR:
                return None
            body.results += (LevelSums(part).rounded(form, plan),)
    return _made(program, part, body, U8, "across")


def _extremes(program: Program) -> tuple[Program, Program] | None:
    """Returns two passes of minima or maxima, or None if the program has none over windows."""
    found = extreme_windows(program)
    if found is None:
        return None
    source, windows = found
    taps = tuple(
        Taps(
            *(item.channel, dict.fromkeys(item.rows, 1.0), dict.fromkeys(item.columns, 1.0)),
            Form({}, {}, 0.0),
        )
        for item in windows
    )
    stencil = Stencil(source, windows[0].border, taps)
    passes = []
    for part, which in ((_down(stencil), "down"), (_across(stencil, source.type), "across")):
        with part.block() as body:
            for item, window in zip(taps, windows, strict=True):
                first, *rest = (element for element, _ in part.read(item))
                for element in rest:
                    first = part.apply(window.op, first, element)
                body.results += (first,)
        passes.append(_made(program, part, body, source.type, which))
    return passes[0], passes[1]


def _float_sums(program: Program, stencil: Stencil) -> Program:
    part = _down(stencil)
    with part.block() as body:
        body.results = tuple(map(part.sum, stencil.taps))
    return _made(program, part, body, F32, "down")


def _rounded_floats(program: Program, stencil: Stencil) -> Program:
    part = _across(stencil, F32)
    with part.block() as body:
        for taps in stencil.taps:
            total = part.apply("add", part.sum(taps), part.const(F32, taps.form.constant))
            for op, limit in zip(("max", "min"), taps.form.limits, strict=True):
                if math.isfinite(limit):
                    total = part.apply(op, total, part.const(F32, limit))
            body.results += (part.convert(total, U8),)
    return _made(program, part, body, U8, "across")
