"""Elementwise programs as LLVM functions of vectors, for modules that are written by hand."""

from __future__ import annotations

from collections.abc import Sequence

from dala.emit.llvm.body import Body
from dala.emit.llvm.ir_writer import Operand, Writer, llvm_type
from dala.emit.llvm.target import Target
from dala.emit.variance import Variance
from dala.errors import InternalError
from dala.ir.nodes import AtomicUpdate, For, Load, Program, Reduce, Report, Store, While


def element_function(
    program: Program, name: str, lanes: int, target: Target
) -> tuple[str, set[str]]:
    """Returns an LLVM function, and what it needs declared.

    It maps vectors of the inputs' elements, in order, to one of the output's. The program reads at
    its own position only, and has neither parameters nor loops.
    """
    writer = Writer(lanes, has_halves=target.has_halves, has_extremes=target.has_extremes)
    body = _Element(program, writer, Variance(program), free_order=False)
    (result,) = body.block(program.body)
    result = writer.splat(result)
    types = [llvm_type(item.type, lanes) for item in program.inputs]
    given = ", ".join(f"{type} %e{i}" for i, type in enumerate(types))
    made = llvm_type(program.output.type, lanes)
    head = f"define internal {made} @{name}({given}) #2 {{"
    lines = [head, "entry:", *writer.lines, f"  ret {result}", "}"]
    return "\n".join(lines), writer.declarations


class _Element(Body):
    """Emits statements whose loads are arguments of a function."""

    def load(self, node: Load) -> Operand:
        if node.index is not None:
            raise InternalError(f"{self.program.name} reads beside its own position.")
        number = int(self.source(node.source))
        lanes, scalar = self.writer.lanes, self.program.inputs[number].type
        return Operand(f"%e{number}", llvm_type(scalar, lanes), vector=lanes > 1)

    def for_loop(self, node: For) -> list[Operand]:
        raise InternalError(f"{self.program.name} has a loop.")

    def while_loop(self, node: While) -> list[Operand]:
        raise InternalError(f"{self.program.name} has a loop.")

    def reduce(self, nodes: Sequence[Reduce]) -> list[Operand]:
        raise InternalError(f"{self.program.name} has a loop.")

    def store(self, node: Store | AtomicUpdate) -> None:
        raise InternalError(f"{self.program.name} writes beside its own position.")

    def report(self, node: Report) -> None:
        raise InternalError(f"{self.program.name} checks or prints.")
