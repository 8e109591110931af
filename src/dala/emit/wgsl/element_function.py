"""Elementwise programs as WGSL functions, for shaders that are written by hand."""

from __future__ import annotations

from dala.emit.wgsl.body import Body
from dala.emit.wgsl.functions import FUNCTIONS
from dala.emit.wgsl.ops import Ops
from dala.errors import InternalError
from dala.ir.nodes import AtomicUpdate, Load, Program, Report, Store


def element_function(program: Program, name: str) -> str:
    """Returns WGSL functions; `name` maps the inputs' elements, in order, to the output's.

    The program reads at its own position only, and has no parameters. The shader around it has a
    uniform `args` whose member `zero` is 0.
    """
    ops = Ops()
    body = _Element(program, ops, "free")
    (result,) = body.block(program.body)
    given = ", ".join(f"e{i}: {item.type.wgsl}" for i, item in enumerate(program.inputs))
    head = f"fn {name}({given}) -> {program.output.type.wgsl} {{"
    functions = [FUNCTIONS[needed].text for needed in ops.functions]
    return "\n".join([*functions, head, *body.lines, f"  return {result};", "}"])


class _Element(Body):
    """Emits statements whose loads are arguments of a function."""

    def load(self, node: Load) -> str:
        if node.index is not None:
            raise InternalError(f"{self.program.name} reads beside its own position.")
        return f"e{self.source(node.source)}"

    def store(self, node: Store | AtomicUpdate) -> None:
        raise InternalError(f"{self.program.name} writes beside its own position.")

    def report(self, node: Report) -> None:
        raise InternalError(f"{self.program.name} checks or prints.")
