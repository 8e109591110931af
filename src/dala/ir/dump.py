"""Human-readable text of a program."""

from __future__ import annotations

from dala.ir.access import accesses
from dala.ir.nodes import (
    Apply,
    AtomicUpdate,
    Block,
    Const,
    Extent,
    For,
    If,
    Input,
    Load,
    Output,
    Param,
    Position,
    Program,
    Reduce,
    Report,
    Result,
    Statement,
    Store,
    Value,
    Variable,
    While,
)
from dala.ir.ops import OPS, SELECT


def dump(program: Program) -> str:
    """Returns the program's inputs, their access patterns and its statements, one per line."""
    reads = accesses(program)
    lines = [f"kernel {program.name}"]
    lines += [f"  in    {_describe(item)}, read at {reads[item.name]}" for item in program.inputs]
    lines += [f"  param {param.name}: {param.type}" for param in program.params]
    lines += [f"  out   {_describe(item)}" for item in program.outputs]
    for number, site in enumerate(program.sites):
        shown = [part if isinstance(part, str) else f"<{part}>" for part in site.parts]
        lines.append(f"  {site.kind} {number}: {''.join([site.text and f'{site.text}: ', *shown])}")
    lines.append(f"  over  {program.rank} ax{'i' if program.rank == 1 else 'e'}s")
    printer = _Printer()
    printer.block(program.body, "  ", "return")
    return "\n".join(lines + printer.lines)


def _describe(item: Input | Output) -> str:
    name = f"{item.name}: " if isinstance(item, Input) else ""
    kind = "" if item.channels is None else f", {item.channels} channel(s)"
    scattered = ""
    if isinstance(item, Output) and item.scattered:
        start = "what it holds" if item.accumulates else "zeros"
        scattered = f", written anywhere, from {start} on"
    return f"{name}{item.type}, rank {item.rank}{kind}{scattered}"


class _Printer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[object, str] = {}

    def name(self, value: Value) -> str:
        match value:
            case Const():
                return f"{value.value!r}"
            case Param():
                return value.name
            case Position():
                return f"position.{value.axis}"
            case Extent():
                return f"{value.source}.shape[{value.axis}]"
            case Result():
                return f"{self._names[value.node]}.{value.index}"
            case _:
                return self._names[value]

    def names(self, values: tuple[Value, ...]) -> str:
        return ", ".join(map(self.name, values))

    def fresh(self, node: object) -> str:
        label = f"{node.name}" if isinstance(node, Variable) else "%"
        self._names[node] = f"{label}{len(self._names)}"
        return self._names[node]

    def block(self, block: Block, indent: str, leave: str) -> None:
        for statement in block.statements:
            self.statement(statement, indent)
        if block.results:
            self.lines.append(f"{indent}{leave} {self.names(block.results)}")

    def carried(self, node: For | While) -> str:
        pairs = zip(node.carried, node.initial, strict=True)
        parts = [f"{self.fresh(variable)} = {self.name(first)}" for variable, first in pairs]
        return f" carrying {', '.join(parts)}" if parts else ""

    def statement(self, node: Statement, indent: str) -> None:
        inner = indent + "  "
        match node:
            case Apply() | Load():
                text = self.expression(node)
                self.lines.append(f"{indent}{self.fresh(node)}: {node.type} = {text}")
            case Reduce():
                bounds = self.names((node.start, node.stop))
                head = f"{node.op} over {self.fresh(node.counter)} in range({bounds})"
                self.lines.append(f"{indent}{self.fresh(node)}: {node.type} = {head}:")
                self.block(node.body, inner, "term")
            case If():
                self.lines.append(f"{indent}{self.fresh(node)} = if {self.name(node.condition)}:")
                self.block(node.then, inner, "leave")
                self.lines.append(f"{indent}else:")
                self.block(node.otherwise, inner, "leave")
            case For():
                bounds = f"{self.names((node.start, node.stop))}, {node.step}"
                head = f"for {self.fresh(node.counter)} in range({bounds}){self.carried(node)}"
                self.lines.append(f"{indent}{self.fresh(node)} = {head}:")
                self.block(node.body, inner, "next")
            case While():
                self.lines.append(f"{indent}{self.fresh(node)} = while{self.carried(node)}:")
                self.block(node.condition, inner, "as long as")
                self.lines.append(f"{indent}do:")
                self.block(node.body, inner, "next")
            case Store() | AtomicUpdate():
                op = "" if isinstance(node, Store) else node.op
                sign = {"": "=", "add": "+="}.get(op, f"{op}=")
                where = self.names(node.index)
                self.lines.append(f"{indent}out[{where}] {sign} {self.name(node.value)}")
            case Report():
                self.lines.append(f"{indent}say {node.site}: {self.names(node.values)}".rstrip())

    def expression(self, node: Apply | Load) -> str:
        if isinstance(node, Load):
            place = "" if node.index is None else f"[{self.names(node.index)}] {node.border}"
            channel = "" if node.channel is None else f".{node.channel}"
            return f"{node.source}{channel}{place}"
        if node.op == SELECT:
            condition, then, otherwise = map(self.name, node.args)
            return f"{then} if {condition} else {otherwise}"
        symbol = OPS[node.op].symbol if node.op in OPS else ""
        if symbol and len(node.args) == 2:
            return f"{self.name(node.args[0])} {symbol} {self.name(node.args[1])}"
        return f"{symbol or node.op + ' '}{self.names(node.args)}"
