"""Splits a program into per-row and per-position statements, and chooses its vector width."""

from __future__ import annotations

import math

from dala.emit.row_reads import RowReads
from dala.emit.running_folds import is_running, running_folds
from dala.emit.variance import Variance
from dala.ir.nodes import (
    Apply,
    AtomicUpdate,
    Block,
    Channel,
    For,
    If,
    Load,
    Program,
    Reduce,
    Report,
    Result,
    Statement,
    Store,
    Value,
    While,
    blocks_of,
    operands_of,
    used,
    walk,
)
from dala.ir.ops import CONVERT
from dala.ir.types import Scalar
from dala.ir.writes import own_elements
from dala.plan.chunks import MEMORY_COST, effort_of
from dala.plan.watchdog import Shapes

PAIR = 2
"""Vectors computed per iteration unless something else is known to be better."""
LEAST_PAIRED, MOST_PAIRED = 8, 64
"""The statements of a program that is computed two vectors at a time.

With less, one that goes element by element is bound by memory, which takes loads and stores in
turns better than in pairs.
"""
DEEP = 20
"""The dependency depth from which on iterations of a loop hardly overlap."""
LATENCY = 8
"""Operations in flight until the first one completes: two per cycle, for four cycles."""
_PAIRED_BITS = 32

Key = Value | tuple[If | For | While, int]
"""A per-row value, or a result of a per-row structured statement."""


Line = tuple[str, int, Value]
"""An input, one of its axes, and an index along it."""


class Partition:
    """The per-row statements, the per-position ones, and the values passed between them."""

    def __init__(self, program: Program, vector_bits: int, *, wide: bool) -> None:
        self.program = program
        self.variance = Variance(program)
        self.reads = RowReads(program, self.variance)
        widest = _widest(program, self.variance, self.reads)
        self.lanes = 1
        if not _runs_alone(program, self.variance, self.reads):
            self.lanes = vector_bits // max(8, min(32, widest.bits))
        self.vectors = 1
        if wide and self.lanes > 1:
            self.vectors = _vectors_at_a_time(program, self.variance, widest, vector_bits)
            self.lanes *= self.vectors
        channels = [item.count for item in used(program.body) if isinstance(item, Channel)]
        if channels and self.lanes > 1:
            self.lanes = math.lcm(self.lanes, channels[0])  # each vector begins with the same
        statements = program.body.statements
        alone = program.output.scattered and self.lanes == 1
        rows = set() if alone or program.sites else self._rows(statements)
        self.of_row = [item for item in statements if item in rows]
        self.of_position = [item for item in statements if item not in rows]
        self.passed = self._passed()

    def _rows(self, statements: list[Statement]) -> set[Statement]:
        """Returns the statements that are uniform along a row, together with all their operands."""
        rows: set[Statement] = set()
        known = set(statements)
        for statement in statements:
            needed = (_maker(value) for value in used(Block([statement])))
            outer = {maker for maker in needed if maker in known and maker is not statement}
            if outer <= rows and not self._varies(statement):
                rows.add(statement)
        return rows

    def _varies(self, node: Statement) -> bool:
        if isinstance(node, If | For | While):
            inner = [item for block in blocks_of(node) for item in walk(block)]
            return any(self._varies(item) for item in inner) or any(
                Result(value.type, node, i) in self.variance for i, value in enumerate(_left(node))
            )
        return isinstance(node, Store | AtomicUpdate | Report) or node in self.variance

    def _passed(self) -> list[tuple[Key, Scalar]]:
        """Returns the per-row values that per-position statements use."""
        passed: dict[Key, Scalar] = {}
        rows = set(self.of_row)
        positions = Block(self.of_position, self.program.body.results)
        for value in used(positions):
            if isinstance(value, Result) and value.node in rows:
                passed[(value.node, value.index)] = value.type
            elif value in rows:
                passed[value] = value.type
        return list(passed.items())

    def boundary_reads(self) -> list[Load]:
        """Returns the reads that delimit the interior of a row: one for each place."""
        found: dict[object, Load] = {}
        for load in self.reads.bounded(self.of_row):
            found.setdefault((load.source, load.index and load.index[-1]), load)
        return list(found.values())

    def lines_read(self) -> set[Line]:
        """Returns the indices of reads along rows that say, once for a row, which one is read."""
        return {
            (load.source, axis, value)
            for load in self.reads.bounded(self.of_row)
            for axis, value in enumerate((load.index or ())[:-1])
            if self.reads.is_known(value, set(self.of_row))
        }


def loops_over_rows(program: Program) -> bool:
    """Whether the program loops or reduces once per row, or folds along it."""
    if running_folds(program):
        return True
    rows = Partition(program, vector_bits=128, wide=False).of_row
    return any(isinstance(item, For | Reduce | While) for item in walk(Block(rows)))


def effort_per_position(program: Program, shapes: Shapes, width: int) -> int:
    """Returns roughly how many operations a position takes, with its share of those of its row."""
    partition = Partition(program, vector_bits=128, wide=False)
    of_row = effort_of(partition.of_row, shapes) // max(1, width)
    written = MEMORY_COST * len(program.outputs)
    return written + effort_of(partition.of_position, shapes) + of_row


def _maker(value: Value) -> object:
    """Returns the statement that defines a value."""
    return value.node if isinstance(value, Result) else value


def _left(node: If | For | While) -> tuple[Value, ...]:
    return node.then.results if isinstance(node, If) else node.carried


def _runs_alone(program: Program, variance: Variance, reads: RowReads) -> bool:
    """Whether positions are computed one by one, as inner loops access memory better, or must."""
    shares_elements = program.output.scattered and not own_elements(program)
    walks = _walks_along_loops(program, variance, reads)
    return bool(program.sites) or shares_elements or walks or _looks_up(program, variance, reads)


def _looks_up(program: Program, variance: Variance, reads: RowReads) -> bool:
    """Whether all it does is to read narrow elements anywhere: no CPU gathers these in vectors."""
    statements = walk(program.body)
    if not all(isinstance(item, Load) or _is_conversion(item) for item in statements):
        return False
    anywhere = [
        item
        for item in statements
        if isinstance(item, Load) and item.index is not None and item not in reads.steps
    ]
    return any(item in variance for item in anywhere) and all(
        item.type.bits < _PAIRED_BITS for item in anywhere
    )


def _is_conversion(item: Statement) -> bool:
    return isinstance(item, Apply) and item.op == CONVERT


def _vectors_at_a_time(
    program: Program, variance: Variance, widest: Scalar, vector_bits: int
) -> int:
    """Returns how many vectors to interleave to hide the latency of dependent operations.

    A processor overlaps the iterations of a short loop by itself, but not those of a long one.
    """
    statements = walk(program.body)
    if any(isinstance(item, Apply) and is_running(item) for item in statements):
        return 1
    divides = any(isinstance(item, Apply) and item.op in ("floordiv", "mod") for item in statements)
    if widest.bits != _PAIRED_BITS or divides:
        return 1
    loads = [item for item in statements if isinstance(item, Load)]
    if len(statements) < LEAST_PAIRED and all(load.index is None for load in loads):
        return 1
    usual = PAIR if len(statements) <= MOST_PAIRED else 1
    straight = all(isinstance(item, Apply | Load) for item in statements)
    if straight and (depth := _depth(program)) > DEEP:
        wanted = LATENCY * depth / len(statements)
        registers = 32 if vector_bits == 512 else 16
        live = max(1, _most_live(program, variance))
        return next((n for n in (8, 4, 2) if n < 2 * wanted and n * live <= registers), usual)
    return usual


def _depth(program: Program) -> int:
    """Returns the length of the longest chain of dependent operations."""
    depths: dict[Value, int] = {}
    for item in program.body.statements:
        if isinstance(item, Apply):
            depths[item] = 1 + max((depths.get(arg, 0) for arg in item.args), default=0)
    return max(depths.values(), default=0)


def _most_live(program: Program, variance: Variance) -> int:
    """Returns the largest number of vectors that are live at the same time."""
    live = {value for value in program.body.results if value in variance}
    most = len(live)
    for item in reversed(program.body.statements):
        live.discard(item)
        live.update(value for value in operands_of(item) if _is_computed(value, variance))
        most = max(most, len(live))
    return most


def _is_computed(value: Value, variance: Variance) -> bool:
    return isinstance(value, Apply | Load) and value in variance


def _walks_along_loops(program: Program, variance: Variance, reads: RowReads) -> bool:
    """Whether reads are contiguous along a loop counter rather than along the row."""
    along_loop = False
    changing = _changing(program)
    for node in walk(program.body):
        if isinstance(node, Load) and node.index is not None and node in variance:
            if node in reads.steps:
                return False
            along = node.index[-1]
            along_loop = along_loop or (along not in variance and _among(changing, along))
    return along_loop and any(isinstance(item, Reduce | For) for item in walk(program.body))


def _changing(program: Program) -> set[Value]:
    """Returns the counters of loops, and what is computed from them or from what loops carry."""
    found: set[Value] = set()
    for node in walk(program.body):
        if isinstance(node, For | Reduce):
            found.add(node.counter)
        if isinstance(node, For | While):
            found.update(node.carried)
        operands = operands_of(node)
        if isinstance(node, Apply | Load | Reduce) and any(_among(found, v) for v in operands):
            found.add(node)
    return found


def _among(changing: set[Value], value: Value) -> bool:
    """Whether a value may change in a loop; results of branches and loops count as changing."""
    return isinstance(value, Result) or value in changing


def _widest(program: Program, variance: Variance, reads: RowReads) -> Scalar:
    """Returns the widest type that vectors have; addresses of reads along the row are none."""
    types = [
        item.type
        for item in walk(program.body)
        if isinstance(item, Apply | Load) and item in variance and item not in reads.addresses
    ]
    types += [item.type for item in program.outputs]
    return max(types, key=lambda scalar: scalar.bits)
