"""Emits folds that rows carry on: in a vector by shifts, and from one vector to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dala.emit.llvm.ir_writer import Operand, Writer, constant
from dala.emit.llvm.ops import Ops
from dala.emit.running_folds import EXCLUSIVE
from dala.ir.nodes import Apply
from dala.ir.ops import neutral_of
from dala.ir.types import F64, Scalar

if TYPE_CHECKING:
    from dala.emit.llvm.body import Body


def carried_type(node: Apply) -> Scalar:
    """Returns the type that a fold is carried in: sums of floats in f64."""
    return F64 if node.type.is_float and node.op.endswith(".add") else node.type


def neutral(node: Apply) -> Operand:
    """Returns what a row begins with."""
    scalar = carried_type(node)
    return constant(scalar, neutral_of(node.op.rpartition(".")[2], scalar))


class Carried:
    """What the folds of a program have come to, kept in memory between the spans of a row."""

    def __init__(self, folds: list[Apply]) -> None:
        self._folds = folds
        self.arguments = ["ptr %carried"] * bool(folds)
        """The parameters of a span."""

    def allocate(self, writer: Writer) -> None:
        if self._folds:
            writer.line(f"%carried = alloca i64, i64 {len(self._folds)}")

    def begin_row(self, writer: Writer) -> None:
        for number, fold in enumerate(self._folds):
            writer.line(f"store {neutral(fold)}, {_place(writer, number)}")

    def begin_span(self, body: Body) -> list[Operand]:
        """Emits the loads of what is carried, and names it for the loop over positions."""
        body.carried = {
            fold: Operand(f"%carried.{number}", carried_type(fold).llvm)
            for number, fold in enumerate(self._folds)
        }
        return [
            body.writer.emit(item.type, f"load {item.type}, {_place(body.writer, number)}")
            for number, item in enumerate(body.carried.values())
        ]

    def phis(self, body: Body, first: list[Operand], latch: str) -> list[str]:
        """Returns the lines at the head of that loop."""
        return [
            f"  %carried.{number} = phi {one.type} [ {one.text}, %entry ], "
            f"[ {body.carried[fold].text}, %{latch} ]"
            for number, (fold, one) in enumerate(zip(self._folds, first, strict=True))
        ]

    def end_span(self, writer: Writer) -> None:
        for number, fold in enumerate(self._folds):
            value = Operand(f"%carried.{number}", carried_type(fold).llvm)
            writer.line(f"store {value}, {_place(writer, number)}")


def _place(writer: Writer, number: int) -> Operand:
    return writer.emit("ptr", f"getelementptr i64, ptr %carried, i64 {number}")


def emit_running_fold(
    ops: Ops, node: Apply, term: Operand, carried: Operand
) -> tuple[Operand, Operand]:
    """Emits a fold of all terms up to each lane, or before it, and what is carried on."""
    writer, scalar, wide = ops.writer, node.type, carried_type(node)
    kind, _, op = node.op.rpartition(".")
    term = writer.splat(term)
    distance = 1
    while distance < writer.lanes:
        term = ops.binary(op, scalar, _shifted(ops, node, term, distance), term)
        distance *= 2
    last = term
    if writer.lanes > 1:
        last = writer.emit(scalar.llvm, f"extractelement {term}, i64 {writer.lanes - 1}")
    own = term if kind != EXCLUSIVE else _shifted(ops, node, term, 1)
    before = ops.convert(carried, wide, scalar)
    found = ops.binary(op, scalar, *writer.alike(before, own))
    after = ops.binary(op, wide, carried, ops.convert(last, scalar, wide))
    return found, after


def _shifted(ops: Ops, node: Apply, vector: Operand, distance: int) -> Operand:
    """Returns the lanes moved up by a distance, neutral ones before them."""
    writer = ops.writer
    number = neutral_of(node.op.rpartition(".")[2], node.type)
    # Shuffles with zeros, LLVM makes expansions, which some CPUs take long for.
    none = constant(node.type, -0.0 if node.op.endswith(".add") and node.type.is_float else number)
    if writer.lanes == 1:
        return none
    lanes = range(writer.lanes)
    picks = ", ".join(f"i32 {i - distance if i >= distance else writer.lanes}" for i in lanes)
    text = f"shufflevector {vector}, {writer.splat(none)}, <{writer.lanes} x i32> <{picks}>"
    return writer.emit(vector.type, text, vector=True)
