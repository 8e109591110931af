"""Emits the statements of a program as LLVM IR: arithmetic and branches."""

from __future__ import annotations

from dala.emit.extreme_networks import Networks
from dala.emit.llvm.ir_writer import Operand, Writer, constant, llvm_type
from dala.emit.llvm.lookups import Lookups
from dala.emit.llvm.ops import Ops
from dala.emit.llvm.running_folds import emit_running_fold
from dala.emit.running_folds import is_running
from dala.emit.statements import Statements
from dala.emit.variance import Variance
from dala.ir.level_tables import LOOKUP
from dala.ir.nodes import (
    Apply,
    Channel,
    Const,
    Effect,
    Extent,
    For,
    If,
    Param,
    Position,
    Program,
    Reduce,
    Result,
    Value,
    While,
    walk,
)
from dala.ir.types import BOOL


class Body(Statements[Operand]):
    """Emits statements for one position, or for as many as the writer has lanes.

    `free_order` allows LLVM to reassociate float sums: only where a value is computed in a single
    way, so that it never depends on its place in a chunk.
    """

    def __init__(
        self, program: Program, writer: Writer, variance: Variance, *, free_order: bool
    ) -> None:
        super().__init__(program)
        self.writer = writer
        self.variance = variance
        self.ops = Ops(writer)
        self.free_order = free_order
        self.wide: dict[Value, Operand] = {}
        self.networks: Networks = {}
        self.mask: Operand | None = None
        self.lookups = Lookups(writer, "")
        self.carried: dict[Apply, Operand] = {}
        """What running folds have come to so far."""
        self.watched = ""
        """The function that grants loops more fuel; empty if no loop runs long."""

    # -- values ----------------------------------------------------------------------------------

    def value(self, value: Value) -> Operand:
        match value:
            case Const():
                return constant(value.type, value.value)
            case Param():
                return Operand(f"%param.{self._param(value.name)}", llvm_type(value.type))
            case Extent():
                return Operand(f"%extent.{self.source(value.source)}.{value.axis}", "i32")
            case Position():
                return self.position(value.axis)
            case Channel():
                return self.values["channel"]
            case Result():
                return self.values[(value.node, value.index)]
            case _:
                return self.values[value]

    def position(self, axis: int) -> Operand:
        known = self.values.get(("position", axis))
        if known is None:
            wide = Operand(f"%position.{axis}", "i64")
            known = self.writer.emit("i32", f"trunc {wide} to i32")
        return known

    def leaf(self, kind: str, name: str, axis: int) -> Operand:
        """Returns a leaf of a polynomial that is no position: an extent or a parameter of s32."""
        if kind == "e":
            return Operand(f"%extent.{self.source(name)}.{axis}", "i32")
        return Operand(f"%param.{self._param(name)}", "i32")

    def _param(self, name: str) -> int:
        return [param.name for param in self.program.params].index(name)

    def varies(self, value: Value) -> bool:
        """Whether the value is a vector here."""
        return self.writer.lanes > 1 and value in self.variance

    def shaped(self, value: Operand, like: Value) -> Operand:
        return self.writer.splat(value) if self.varies(like) else value

    def apply(self, node: Apply) -> Operand:
        op, _, number = node.op.partition(".")
        if op == LOOKUP:
            return self.lookups.look_up(f"%table.{number}", self.value(node.args[0]))
        if is_running(node):
            term, carried = self.value(node.args[0]), self.carried[node]
            found, self.carried[node] = emit_running_fold(self.ops, node, term, carried)
            return found
        args = tuple(self.value(arg) for arg in node.args)
        if node in self.networks and self.varies(node):
            return self._in_network(node, args)
        return self.ops.apply(node, args)

    def _in_network(self, node: Apply, args: tuple[Operand, ...]) -> Operand:
        """Emits a minimum or maximum of a network, and NaN where one of its inputs is."""
        found = self.ops.ranged(node.op, node.type, *self.writer.alike(*args))
        leaves = [self.value(leaf) for leaf in self.networks[node]]
        return self.ops.unless_nan(leaves, found, node.type) if leaves else found

    # -- branches --------------------------------------------------------------------------------

    def branch(self, node: If) -> list[Operand]:
        condition = self.value(node.condition)
        needs_jump = any(
            isinstance(item, (For, While, Reduce, *Effect))
            for block in (node.then, node.otherwise)
            for item in walk(block)
        )
        if condition.vector or not needs_jump:
            return self._selected(node, condition)
        then, otherwise, done = (self.writer.label(stem) for stem in ("then", "else", "join"))
        self.writer.branch(condition, then, otherwise)
        sides: list[tuple[list[Operand], str]] = []
        for label, block in ((then, node.then), (otherwise, node.otherwise)):
            self.writer.begin(label)
            with self.writer.scope():
                left = self.block(block)
                left = [
                    self.writer.splat(item) if self._result_varies(node, i) else item
                    for i, item in enumerate(left)
                ]
            sides.append((left, self.writer.block))
            self.writer.jump(done)
        self.writer.begin(done)
        (first, first_block), (second, second_block) = sides
        return [
            self.writer.emit(
                a.type,
                f"phi {a.type} [ {a.text}, %{first_block} ], [ {b.text}, %{second_block} ]",
                a.vector,
            )
            for a, b in zip(first, second, strict=True)
        ]

    def _result_varies(self, node: If | For | While, index: int) -> bool:
        return self.varies(Result(BOOL, node, index))

    def _selected(self, node: If, condition: Operand) -> list[Operand]:
        """Emits both branches and a select: nothing in them can fail, and lanes stay together."""
        outer = self.mask
        sides = []
        for block, holds in ((node.then, condition), (node.otherwise, None)):
            if condition.vector:
                active = holds or self.ops.unary("not", BOOL, condition)
                self.mask = active if outer is None else self.ops.binary("and", BOOL, active, outer)
            sides.append(self.block(block))
        self.mask = outer
        return [self.ops.select(condition, a, b) for a, b in zip(*sides, strict=True)]
