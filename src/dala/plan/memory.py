"""Memory plans: buffers that are not live at the same time share a slot.

A buffer is live from the first unit that uses it to the last; what a unit writes never shares a
slot with what it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dala.base.record import record
from dala.plan.step import Overlaps


@record
class MemoryPlan:
    """The sizes of the slots in bytes, and the slot that each buffer is given."""

    sizes: tuple[int, ...]
    slots: Mapping[int, int]


def plan_memory(
    uses: Sequence[Iterable[int]], sizes: Mapping[int, int], overlaps: Overlaps
) -> MemoryPlan:
    """Returns the plan for buffers of given sizes, from the buffers that each unit uses, in order.

    Buffers that share memory, seen in two ways, are one and keep their slot together.
    """
    owner = {number: min({number, *overlaps.get(number, ())}) for number in sizes}
    last = {owner[n]: at for at, used in enumerate(uses) for n in used if n in owner}
    needed: dict[int, int] = {}
    for number, size in sizes.items():
        needed[owner[number]] = max(size, needed.get(owner[number], 0))
    made: list[int] = []
    free: list[int] = []
    slots: dict[int, int] = {}
    for at, used in enumerate(uses):
        here = dict.fromkeys(owner[n] for n in used if n in owner)
        for number in here:
            if number not in slots:
                slots[number] = _take(free, made, needed[number])
        free += [slots[number] for number in here if last[number] == at]
    return MemoryPlan(tuple(made), {n: slots[owner[n]] for n in sizes if owner[n] in slots})


def _take(free: list[int], made: list[int], size: int) -> int:
    """Returns the smallest free slot of that size, or the largest, grown."""
    if not free:
        made.append(size)
        return len(made) - 1
    fitting = [slot for slot in free if made[slot] >= size]
    taken = min(fitting, key=made.__getitem__) if fitting else max(free, key=made.__getitem__)
    free.remove(taken)
    made[taken] = max(made[taken], size)
    return taken
