"""Where a scattering program writes: whether positions share elements, and which none writes.

An index that is linear in the position, such as `2 * i + 1`, `n - 1 - i` or `y * width + x`, tells
each position's elements from all others'. Such programs run in lanes and on many threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from dala.base.record import remembered, value
from dala.ir.nodes import OUTPUT, Program, Store, Write, walk
from dala.ir.polynomials import Leaf, Polynomial, polynomial, position_of, uses_position

MOST_STEP = 1 << 20
"""The largest step between the elements of two neighbors: lanes of a vector never wrap around."""
_WRAPS = 1 << 31

Shapes = Mapping[str, tuple[int, ...]]


@value
class _Steps:
    """Axes of the domain that lie apart along an axis of the output, and by how much."""

    axes: tuple[int, ...]
    step: int


def own_elements(program: Program) -> tuple[_Steps, ...]:
    """Returns how positions' elements lie apart; empty if two positions may share an element."""
    found = _told_apart(program)
    return found if len(_axes(found)) == program.rank else ()


def rows_write_own_elements(program: Program, domain: tuple[int, ...]) -> bool:
    """Whether no element of the output is written from two rows of this domain."""
    found = _told_apart(program)
    outer = set(range(program.rank - 1))
    return bool(outer) and outer <= _axes(found) and _stay_apart(found, domain)


@remembered
def _told_apart(program: Program) -> tuple[_Steps, ...]:
    """Returns how elements of positions lie apart, along the axes of the output that say so."""
    writes = [item.index for item in walk(program.body) if isinstance(item, Write)]
    found: list[_Steps] = []
    for index in zip(*writes, strict=True) if program.output.scattered else ():
        steps = _apart(program, [polynomial(part) for part in index])
        if steps is not None:
            found.append(steps)
    return tuple(found)


def _axes(found: tuple[_Steps, ...]) -> set[int]:
    return {axis for steps in found for axis in steps.axes}


def writes_own_elements(program: Program, domain: tuple[int, ...]) -> bool:
    """Whether no element of the output is written by two positions of this domain."""
    found = own_elements(program)
    return bool(found) and _stay_apart(found, domain)


def _stay_apart(found: tuple[_Steps, ...], domain: tuple[int, ...]) -> bool:
    """Whether no index wraps around."""
    return all(
        steps.step * math.prod(domain[axis] for axis in steps.axes) < _WRAPS for steps in found
    )


def covers_output(program: Program, domain: tuple[int, ...], shapes: Shapes) -> bool:
    """Whether each element of the output is stored to, whatever the inputs hold."""
    if not writes_own_elements(program, domain):
        return False
    size = shapes[OUTPUT]
    kept: dict[object, set[tuple[int, ...]]] = {}
    for item in program.body.statements:
        if isinstance(item, Store):
            parts = [polynomial(part) for part in item.index]
            if all(
                part is not None and _stays_inside(part, length, domain, shapes)
                for part, length in zip(parts, size, strict=True)
            ):
                found = [part for part in parts if part is not None]
                kept.setdefault(tuple(map(_form, found)), set()).add(tuple(map(_constant, found)))
    # Writes that differ in constants alone hit different elements at each position.
    most = max(map(len, kept.values()), default=0)
    return most * math.prod(domain) == math.prod(size)


def _apart(program: Program, parts: list[Polynomial | None]) -> _Steps | None:
    """Returns how positions lie apart along one axis of the output, by the index of each write."""
    first = parts[0]
    if first is None:
        return None
    for part in parts:
        if part is None or _form(part) != _form(first):
            return None
    moving = {product: factor for product, factor in first.items() if uses_position(product)}
    step = abs(next(iter(moving.values()), 0))
    constants = [_constant(part) for part in parts if part is not None]
    if not max(constants) - min(constants) < step <= MOST_STEP:
        return None
    if len(moving) == 1:
        (product,) = moving
        return _Steps((product[0][2],), step) if len(product) == 1 else None
    if set(moving) == set(_row_major(program)) and len(set(moving.values())) == 1:
        return _Steps(tuple(range(program.rank)), step)
    return None


def _row_major(program: Program) -> Iterable[tuple[Leaf, ...]]:
    """Returns the products whose sum is the row-major number of a position."""
    over = program.inputs[0].name if program.inputs else OUTPUT
    for axis in range(program.rank):
        sizes = [("e", over, inner) for inner in range(axis + 1, program.rank)]
        yield tuple(sorted([*sizes, position_of(axis)]))


def _form(part: Polynomial) -> frozenset[tuple[tuple[Leaf, ...], int]]:
    """Returns all but the constant."""
    return frozenset((product, factor) for product, factor in part.items() if product)


def _constant(part: Polynomial) -> int:
    return part.get((), 0)


def _stays_inside(part: Polynomial, size: int, domain: tuple[int, ...], shapes: Shapes) -> bool:
    low = high = 0
    for product, factor in part.items():
        least, most = factor, factor
        for kind, source, axis in product:
            if kind == "a":
                return False
            far = domain[axis] - 1 if kind == "p" else shapes[source][axis]
            near = 0 if kind == "p" else far
            ends = (least * near, least * far, most * near, most * far)
            least, most = min(ends), max(ends)
        low, high = low + least, high + most
    return low >= 0 and high < size
