"""Computes small integers in 16 bits: a vector holds twice as many as of 32.

Sums and differences of bytes stay far below what 32 bits hold. Where bounds show that neither they
nor what they are made of leave 16 bits, they are computed there, with the same results.
"""

from __future__ import annotations

from dala.base.record import changed, remembered
from dala.ir.nodes import Apply, Const, Program, Statement, Value, walk
from dala.ir.ops import CONVERT
from dala.ir.simplify import Rewriter, drop_dead
from dala.ir.types import BOOL, S16, Scalar

FEWEST = 2
"""Operations in a row that pay for widening what they come to."""

Bounds = tuple[int, int]


@remembered
def in_short_integers(program: Program) -> Program:
    """Returns the program with integers in 16 bits where they fit and several are added up."""
    chosen = _chosen(program)
    if not chosen:
        return program
    rewriter = _Shortened(chosen)
    with rewriter.builder.block() as body:
        body.results = rewriter.copy(program.body)
    drop_dead(body)
    return changed(program, body=body)


def _chosen(program: Program) -> set[Apply]:
    """Returns the operations that are computed in 16 bits."""
    bounds: dict[Value, Bounds] = {}
    found: dict[Apply, int] = {}
    """The operations that fit, and how many of them each is the last of."""
    for item in walk(program.body):
        if not isinstance(item, Apply) or not item.type.is_integer or item.type == BOOL:
            continue
        if item.op == CONVERT:
            source = item.args[0].type
            if source.is_integer and source.bits <= 8 and _holds(item.type, source.lowest):
                bounds[item] = source.lowest, source.highest
            continue
        ends = [_bounds_of(arg, bounds) for arg in item.args]
        known = [end for end in ends if end is not None]
        whole = _followed(item.op, known) if len(known) == len(ends) else None
        if (
            item.type.bits > 16
            and whole is not None
            and _fits(whole)
            and _holds(item.type, whole[0])
        ):
            bounds[item] = whole
            found[item] = 1 + sum(found.get(arg, 0) for arg in item.args if isinstance(arg, Apply))
    inner = {arg for item in found for arg in item.args}
    few = [item for item, count in found.items() if count < FEWEST and item not in inner]
    return {*found}.difference(few)


def _bounds_of(value: Value, bounds: dict[Value, Bounds]) -> Bounds | None:
    if isinstance(value, Const) and value.type.is_integer:
        return int(value.value), int(value.value)
    return bounds.get(value)


def _holds(type: Scalar, least: int) -> bool:
    """Whether a type of more than 16 bits holds numbers from there on; unsigned ones wrap at 0."""
    return type.lowest <= least


def _fits(bounds: Bounds) -> bool:
    return S16.lowest <= bounds[0] and bounds[1] <= S16.highest


def _followed(op: str, ends: list[Bounds]) -> Bounds | None:
    """Returns the bounds of an operation on operands that have these; None of another one."""
    if not all(map(_fits, ends)):
        return None
    (low, high), (least, most) = ends[0], ends[-1]
    match op:
        case "add":
            return low + least, high + most
        case "sub":
            return low - most, high - least
        case "mul":
            products = [a * b for a in (low, high) for b in (least, most)]
            return min(products), max(products)
        case "min":
            return min(low, least), min(high, most)
        case "max":
            return max(low, least), max(high, most)
        case "neg":
            return -high, -low
        case "shl" if least == most and 0 <= least < S16.bits:
            return low << least, high << least
    return None


class _Shortened(Rewriter):
    """Copies statements; those that are chosen in 16 bits."""

    def __init__(self, chosen: set[Apply]) -> None:
        super().__init__()
        self._chosen = chosen
        self._short: dict[Value, Value] = {}

    def statement(self, old: Statement) -> None:
        if isinstance(old, Apply) and old in self._chosen:
            short = self.builder.apply(old.op, *map(self._shortened, old.args))
            self._short[old] = short
            self._new[old] = self.builder.convert(short, old.type)
        elif isinstance(old, Apply) and self._widens(old, old.type):
            self._new[old] = self.builder.convert(self._short[old.args[0]], old.type)
        else:
            super().statement(old)

    def _widens(self, old: Apply, to: Scalar) -> bool:
        """Whether a short value is converted to a type that holds it."""
        is_short = old.op == CONVERT and old.args[0] in self._short
        return is_short and (to.is_float and not to.is_storage)

    def _shortened(self, old: Value) -> Value:
        if isinstance(old, Const):
            return self.builder.const(S16, int(old.value))
        if old in self._short:
            return self._short[old]
        assert isinstance(old, Apply)
        assert old.op == CONVERT
        return self.builder.convert(self.value(old.args[0]), S16)
