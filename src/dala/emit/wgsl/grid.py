"""Maps the positions of a task to the invocations of a GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from dala.base.record import value
from dala.emit.partition import Partition
from dala.emit.wgsl.packing import is_packed
from dala.emit.wgsl.products import HARDWARE, ProductPlan, ProductTiles, plan_product
from dala.emit.wgsl.tiled_reduction import TILE, find_tileable
from dala.ir.nodes import AtomicUpdate, Const, Extent, Output, Reduce, walk
from dala.ir.types import F64
from dala.plan.task import Task

MOST_GROUPS = 65_535
"""The most workgroups along one axis of a dispatch: what WebGPU guarantees."""
GROUP = 256
"""Invocations per workgroup: what WebGPU guarantees."""
WIDEST = 64
"""Invocations along a row, if the workgroup can also cover other rows."""
SHARED_FROM = 64
"""The number of terms from which on a workgroup shares a row's reduction."""
SERIAL = 1 << 14
"""The most positions that a single invocation computes in one dispatch."""

Kind = Literal["flat", "grid", "rows", "tiles", "products", "serial"]


@value
class Grid:
    """One invocation for every `step` positions, in workgroups of `columns` × `rows`.

    `flat` counts positions through all rows; `grid` has separate columns and rows; in `rows` a
    workgroup shares one row, in `tiles` a square of rows and columns, in `products` a tile of which
    each invocation has several rows and columns; in `serial` a single invocation computes
    everything, in as many dispatches as that takes. Where positions scatter to elements of their
    own, they update them without atomics.
    """

    kind: Kind
    columns: int
    rows: int
    step: int = 1
    own_elements: bool = False
    product: ProductPlan | None = None

    def dispatch(self, domain: tuple[int, ...]) -> tuple[int, int, int]:
        """Returns the number of workgroups along each axis that covers a domain."""
        rows, width = math.prod(domain[:-1]), domain[-1]
        if self.kind == "serial":
            return (1, 1, 1)
        if self.kind == "rows":
            return spread(rows)
        if self.kind == "flat":
            return spread(-(-rows * width // (self.step * self.columns)))
        if self.kind == "tiles":
            *outer, down, across = domain
            return (-(-across // self.columns), -(-down // self.rows), math.prod(outer))
        if self.product is not None:
            *outer, down, across = domain
            tile = self.product.tile
            return (-(-across // tile.width), -(-down // tile.height), math.prod(outer))
        down = -(-rows // self.rows)
        y = min(down, MOST_GROUPS)
        return (-(-width // (self.step * self.columns)), y, -(-down // y))

    def first_positions(self, domain: tuple[int, ...]) -> Sequence[int]:
        """Returns the first position of each dispatch of a run; usually there is only one."""
        return range(0, math.prod(domain), SERIAL) if self.kind == "serial" else (0,)


def spread(groups: int) -> tuple[int, int, int]:
    """Returns a dispatch of at least this many workgroups, within the limit along each axis."""
    x = min(groups, MOST_GROUPS)
    y = min(-(-groups // x), MOST_GROUPS)
    return (x, y, -(-groups // (x * y)))


def grid_for(task: Task, products: ProductTiles = HARDWARE) -> Grid:
    """Returns the best grid for a task; `products` are the tiles that suit the device."""
    program, own = task.program, task.owns_elements
    updates = [item for item in walk(program.body) if isinstance(item, AtomicUpdate)]
    if not own and any(map(_needs_order, updates)):
        return Grid("serial", 1, 1)
    longest = 0 if task.reports else _longest_row(task)
    if longest >= SHARED_FROM:
        return Grid("rows", min(GROUP, _power(longest)), 1)
    plan = plan_product(task, products)
    if plan is not None:
        found = Grid("products", plan.tile.across, plan.tile.down, product=plan)
        if max(found.dispatch(task.domain)) <= MOST_GROUPS:
            return found
    tiles = Grid("tiles", TILE, TILE)
    if not task.reports and _suits_tiles(task) and max(tiles.dispatch(task.domain)) <= MOST_GROUPS:
        return tiles
    width, rows = task.domain[-1], math.prod(task.domain[:-1])
    step = 1 if task.scattered else max(map(_positions_per_word, program.outputs))
    units = width // step
    columns = min(_power(units), WIDEST if rows > 1 else GROUP)
    if len(task.domain) == 1 or width % step or units > MOST_GROUPS * columns:
        return Grid("flat", GROUP, 1, step, own)
    return Grid("grid", columns, min(_power(rows), GROUP // columns), step, own)


def _positions_per_word(output: Output) -> int:
    """Returns how many positions an invocation computes to write whole words of an output."""
    return output.type.per_word if is_packed(output.type) and output.channels != 4 else 1


def _needs_order(update: AtomicUpdate) -> bool:
    """Whether an update has no atomic form: no GPU has one of f64, nor compares 64 bits at once."""
    type = update.value.type
    return type == F64 or (type.bits == 64 and update.op != "add")


def _suits_tiles(task: Task) -> bool:
    """Whether there are enough rows, columns and terms for tiles to pay off."""
    tileable = find_tileable(task.program)
    if tileable is None:
        return False
    return min(*task.domain[-2:]) >= TILE and _terms(task, tileable.node) >= 2 * TILE


def _longest_row(task: Task) -> int:
    """Returns the most terms of a reduction that is uniform along a row; 0 if there is none."""
    if task.scattered:
        return 0
    found = [0]
    for item in Partition(task.program, vector_bits=128, wide=False).of_row:
        if isinstance(item, Reduce):
            found.append(_terms(task, item))
    return max(found)


def _terms(task: Task, node: Reduce) -> int:
    if isinstance(node.stop, Extent):
        return task.shapes[node.stop.source][node.stop.axis]
    if isinstance(node.stop, Const):
        return int(node.stop.value)
    return max((size for _, shape in task.inputs for size in shape), default=0)


def _power(count: int) -> int:
    """Returns the smallest power of two that is not below the count."""
    return 1 << max(0, count - 1).bit_length()
