"""Finds stores of neighboring elements, in programs that store to each of the output's once.

`out[2 * i]` and `out[2 * i + 1]` are a group: interleaved in registers they fill whole rows.
"""

from __future__ import annotations

from dala.base.record import value
from dala.ir.nodes import Program, Store, Value
from dala.ir.polynomials import Leaf, polynomial, position_of

Form = frozenset[tuple[tuple[Leaf, ...], int]]


@value
class StoreGroup:
    """Stores whose elements follow each other, and how far those of the next position are.

    The step is as many elements as there are stores; -1 if rows are written backward, and 0 if it
    is another for each position.
    """

    step: int
    stores: tuple[Store, ...]


def store_groups(program: Program) -> list[StoreGroup]:
    """Returns the groups of all stores."""
    rows: dict[tuple[tuple[Value, ...], Form, int], dict[int, Store]] = {}
    groups = []
    for item in program.body.statements:
        if isinstance(item, Store):
            last = polynomial(item.index[-1]) or {}
            step = _step(program, item)
            if step > 1:
                form = frozenset((product, factor) for product, factor in last.items() if product)
                rows.setdefault((item.index[:-1], form, step), {})[last.get((), 0)] = item
            else:
                groups.append(StoreGroup(step, (item,)))
    for (_, _, step), stores in rows.items():
        if len(stores) == step and max(stores) - min(stores) == step - 1:
            groups.append(StoreGroup(step, tuple(stores[i] for i in sorted(stores))))
        else:
            groups += [StoreGroup(0, (item,)) for item in stores.values()]
    return groups


def _step(program: Program, item: Store) -> int:
    """Returns how far the element of the next position is; 0 if that differs, or it goes down."""
    here = position_of(program.rank - 1)
    *outer, last = ({} if (part := polynomial(i)) is None else part for i in item.index)
    if any(here in product for part in outer for product in part):
        return 0
    moving = {product: factor for product, factor in last.items() if here in product}
    step = moving.get((here,), 0) if len(moving) == 1 else 0
    return step if step >= -1 else 0
