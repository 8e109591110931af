"""Finds matrix products in programs, and how workgroups share them.

A product is a sum of what a row has times what a column has. An invocation computes several rows of
several columns, in registers: what it reads of either serves all of the other.
"""

from __future__ import annotations

from dala.base.record import record, value
from dala.emit.wgsl.packing import is_packed
from dala.ir.nodes import (
    OUTPUT,
    Apply,
    Const,
    Extent,
    If,
    Load,
    Position,
    Program,
    Reduce,
    walk,
)
from dala.ir.types import F32
from dala.plan.task import Task

QUAD = 4
"""Terms, or columns, that are read at once."""
MOST_TERMS = 65_000
"""More are left to other grids, whose loops are checked where a device may end them."""
LEAST_TERMS = 8
SUMMED_IN_ORDER = 2048
"""The terms that are added up, four at a time, before they are accumulated: 512 additions."""
LARGE = 1 << 16
"""The elements from which on a product takes the larger tile."""


@value
class ProductTile:
    """The part of a product that a workgroup computes.

    Of `down` × `across` invocations each computes `rows` and `columns`. With `lanes`, a workgroup
    is one subgroup, whose invocations hold rows and tell each other; else `depth` terms of both
    factors are kept in workgroup memory.
    """

    rows: int
    columns: int
    down: int
    across: int
    depth: int
    lanes: int = 0

    @property
    def height(self) -> int:
        return self.rows * self.down

    @property
    def width(self) -> int:
        return self.columns * self.across

    @property
    def shared_bytes(self) -> int:
        """The workgroup memory that it takes."""
        return 0 if self.lanes else 4 * self.depth * (self.height + self.width)

    def fitted(self, rows: int) -> ProductTile:
        """The tile that wastes the fewest rows, where these are free to choose."""
        if not self.lanes:
            return self
        if rows < self.lanes:
            return ProductTile(rows, self.columns, 1, self.across, self.depth, self.lanes)
        counts = range(min(self.rows, -(-rows // self.lanes) * self.lanes), 0, -self.lanes)
        found = min(counts, key=lambda count: -(-rows // count) * (2 * count + 5 * self.lanes))
        return ProductTile(found, self.columns, 1, self.across, self.depth, self.lanes)


@value
class ProductTiles:
    """What a device computes products in: large ones, and others."""

    large: ProductTile
    small: ProductTile


HARDWARE = ProductTiles(ProductTile(4, 4, 16, 16, 16), ProductTile(4, 4, 8, 8, 16))
"""What is published of GPUs: 64 × 64 of a matrix, 4 × 4 of them in an invocation."""


@record
class Product:
    """A sum of products: of a row's element, and a column's."""

    node: Reduce
    of_row: Load
    of_column: Load


@value
class ProductPlan:
    """How the product of a task is computed; `wide` inputs are read four elements at a time."""

    tile: ProductTile
    whole: bool
    """Whether the terms come in fours."""
    long: bool
    """Whether sums are accumulated in parts."""
    wide: tuple[str, ...]
    wide_output: bool


def find_product(program: Program) -> Product | None:
    """Returns the product that is all that a program reduces, or None."""
    body = program.body
    if program.rank < 2 or program.output.scattered or program.sites:
        return None
    sums = [item for item in body.statements if isinstance(item, Reduce)]
    others = [item for item in walk(body) if not isinstance(item, Apply | Load | If)]
    if len(sums) != 1 or len(others) != 1:
        return None
    (node,) = sums
    loads = [item for item in node.body.statements if isinstance(item, Load)]
    terms = [item for item in node.body.statements if not isinstance(item, Load)]
    if node.op != "add" or node.type != F32 or len(loads) != 2 or len(terms) != 1:
        return None
    (term,) = terms
    if not isinstance(term, Apply) or term.op != "mul" or set(term.args) != set(loads):
        return None
    if not isinstance(node.start, Const) or node.start.value or node.body.results != (term,):
        return None
    if not isinstance(node.stop, Const | Extent):
        return None
    found = [_side(item, node, program.rank) for item in loads]
    if found == ["row", "column"]:
        return Product(node, loads[0], loads[1])
    return Product(node, loads[1], loads[0]) if found == ["column", "row"] else None


def _side(load: Load, node: Reduce, rank: int) -> str:
    """Whether a read is of a row or of a column of the product; empty if it is of neither."""
    if load.index is None or load.type != F32 or load.channel:
        return ""
    rest = [item for item in load.index if item is not node.counter]
    axes = [item.axis for item in rest if isinstance(item, Position)]
    if len(rest) != len(load.index) - 1 or len(set(axes)) != len(axes):
        return ""
    if not all(isinstance(item, Position) or _is_zero(item) for item in rest):
        return ""
    if rank - 1 in axes:
        return "" if rank - 2 in axes else "column"
    return "row" if rank - 2 in axes else ""


def _is_zero(item: object) -> bool:
    return isinstance(item, Const) and item.value == 0


def plan_product(task: Task, tiles: ProductTiles) -> ProductPlan | None:
    """Returns how a task's product is computed; None where it is none, or too small to pay."""
    product = find_product(task.program)
    if product is None or task.reports or any(map(_is_narrow, task.program.outputs)):
        return None
    rows, columns = task.domain[-2:]
    terms = _terms(task, product)
    if terms is None or not LEAST_TERMS <= terms <= MOST_TERMS:
        return None
    tile = (tiles.large if rows * columns >= LARGE else tiles.small).fitted(rows)
    least = (1, tile.lanes) if tile.lanes else (16, 16)
    if rows < least[0] or columns < least[1]:
        return None
    wide = tuple(item.name for item in task.program.inputs if _is_wide(task, product, item.name))
    reads_wide = product.of_column.source in wide
    turned = product.of_column.index[-1] is product.node.counter  # type: ignore[index]
    adjacent = not tile.lanes or (reads_wide and not turned)
    outputs = task.program.outputs
    wide_output = adjacent and columns % QUAD == 0 and len(outputs) == 1 and outputs[0].type == F32
    return ProductPlan(tile, terms % QUAD == 0, terms > SUMMED_IN_ORDER, wide, wide_output)


def _is_narrow(output: object) -> bool:
    return is_packed(output.type) or output.channels is not None  # type: ignore[attr-defined]


def _is_wide(task: Task, product: Product, name: str) -> bool:
    """Whether an input is read four elements at a time: one whose rows come in fours."""
    item, shape = task.program.input(name), task.shapes[name]
    if item.type != F32 or item.channels is not None or shape[-1] % QUAD:
        return False
    last = len(task.domain) - 1
    for load in walk(task.program.body):
        if not isinstance(load, Load) or load.source != name or load.index is None:
            continue
        final = load.index[-1]
        if isinstance(final, Const) and load in (product.of_row, product.of_column):
            return False
        if isinstance(final, Position) and final.axis == last and shape[-1] < task.domain[-1]:
            return False
    return True


def _terms(task: Task, product: Product) -> int | None:
    """Returns how many terms there are; None where reads leave an input, which has its border."""
    stop = product.node.stop
    terms = (
        int(stop.value) if isinstance(stop, Const) else task.shapes[stop.source][stop.axis]  # type: ignore[attr-defined]
    )
    domain = task.shapes[OUTPUT]
    for load in (product.of_row, product.of_column):
        for item, size in zip(load.index or (), task.shapes[load.source], strict=True):
            if item is product.node.counter:
                fits = size == terms
            elif isinstance(item, Position):
                inner = item.axis >= len(domain) - 2
                clamped = load.border == "clamp" and not inner
                fits = size == domain[item.axis] or (clamped and size == 1)
            else:
                fits = size > 0
            if not fits:
                return None
    return terms
