"""Lowers expressions of the kernel language, from Python's AST to typed values."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np

from dala.base.record import record
from dala.errors import KernelError, KernelSyntaxError, KernelTypeError
from dala.ir.builder import Builder
from dala.ir.nodes import Border, Site, Value
from dala.ir.types import BOOL, Scalar
from dala.lang.arithmetic import Arithmetic, Mismatch, decided
from dala.lang.contraction import contracted
from dala.lang.findings import Findings
from dala.lang.hints import instead_of_name
from dala.lang.language_names import Marker
from dala.lang.matrices import matmul
from dala.lang.powers import power
from dala.lang.source import MISSING, UNBOUND, Source
from dala.lang.structs import is_struct, made, struct_of
from dala.lang.values import (
    InputRef,
    Literal,
    LoweredValue,
    Matrix,
    Number,
    Pixel,
    Static,
    Tuple,
    Unset,
    Vector,
)

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
_ADVICE: dict[type[ast.expr], str] = {
    ast.Lambda: "Write a function decorated with @dala.function and call it.",
    ast.ListComp: "Write a for loop, or sum(… for k in range(…)).",
    ast.SetComp: "Write a for loop, or sum(… for k in range(…)).",
    ast.DictComp: "Write a for loop, or sum(… for k in range(…)).",
    ast.GeneratorExp: "It may stand only inside sum(…), min(…), max(…), any(…) or all(…).",
    ast.Dict: "Pass the values as parameters.",
    ast.Set: "Use a tuple.",
    ast.JoinedStr: "Kernels have no text but in dala.print('x is', x) and dala.check(…).",
    ast.Await: "Kernels run to their end; await the command that runs them.",
    ast.Yield: "A kernel returns one element.",
    ast.YieldFrom: "A kernel returns one element.",
    ast.NamedExpr: "Assign in a statement of its own.",
    ast.Starred: "Name each value.",
    ast.Slice: "Index one element, e.g. x[i + 1].",
}
LARGEST_TABLE = 256


@record
class Domain:
    """The domain of a kernel: its rank, and the buffer that gives its size.

    `broadcast` has the inputs that are smaller, and for each of their axes whether it is stretched.
    """

    rank: int
    source: str
    broadcast: Mapping[str, tuple[bool, ...]] = MappingProxyType({})


@dataclass(eq=False)
class Frame:
    """A function being lowered: its source, its variables, and its call site."""

    source: Source
    variables: dict[str, LoweredValue] = field(default_factory=dict)
    call: ast.AST | None = None
    contracts: bool = False
    """Whether a sum of a product is rounded once, where it is written as one expression."""
    assigned: frozenset[str] = frozenset()


class Expressions(ABC):
    """Lowers expressions of the innermost frame into the builder's open block."""

    def __init__(
        self, build: Builder, source: Source, border: Border, domain: Domain, floats: Scalar
    ) -> None:
        self.build = build
        self.arithmetic = Arithmetic(build, floats)
        self.border = border
        self.domain = domain
        self.frames = [Frame(source)]
        self.findings = Findings()
        self.checks = False
        """Whether `dala.check` checks anything."""
        self.sites: dict[Site, int] = {}
        self.white = 255
        """The level of white of pixels of integers."""

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    # -- errors ----------------------------------------------------------------------------------

    def error(
        self, node: ast.AST, what: str, instead: str, kind: type[KernelError] = KernelSyntaxError
    ) -> KernelError:
        """Returns an error that points at the node and shows the chain of calls."""
        chain = "".join(
            f"{outer.source.point_at(inner.call)}\n"
            for outer, inner in zip(self.frames, self.frames[1:], strict=False)
            if inner.call is not None
        )
        return self.frame.source.error(kind, node, what, instead, chain)

    def require_rank(self, rank: int, name: str) -> None:
        """Raises unless the kernel asks for the rank of its domain."""
        own = self.domain.rank
        self.findings.asked_rank = rank
        if rank != own:
            raise Mismatch(
                f"dala.{name}({rank}) asks for {rank} axes, but this kernel runs over {own}.",
                f"Write dala.{name}({own}), or give buffers of {rank} axes.",
            )

    def extents(self, source: str, rank: int) -> Tuple:
        """Returns the size of a buffer along each of its axes."""
        return Tuple(tuple(Number(self.build.extent(source, axis)) for axis in range(rank)))

    # -- expressions -----------------------------------------------------------------------------

    def value(self, node: ast.expr) -> LoweredValue:
        """Returns the value of an expression; raises an error that points at it."""
        try:
            return self._value(node)
        except Mismatch as mismatch:
            raise self.error(node, mismatch.what, mismatch.instead, KernelTypeError) from None

    def operand(self, node: ast.expr) -> LoweredValue:
        """Returns the expression's value; an input stands for its element at this position."""
        return self.element(self.value(node))

    def element(self, lowered: LoweredValue) -> LoweredValue:
        """Returns an input's element at this position; any other value unchanged."""
        if isinstance(lowered, InputRef):
            return self.load(lowered, None)
        return lowered

    def _value(self, node: ast.expr) -> LoweredValue:
        match node:
            case ast.Constant():
                return self._constant(node)
            case ast.Name():
                return self._name(node)
            case ast.BinOp(op=ast.Pow()):
                return power(self, self.operand(node.left), self.operand(node.right))
            case ast.BinOp(op=ast.MatMult()):
                return matmul(self, self.operand(node.left), self.operand(node.right))
            case ast.BinOp(op=ast.Add() | ast.Sub()) if self.frame.contracts:
                return contracted(self, node, _BINARY[type(node.op)])
            case ast.BinOp() if type(node.op) in _BINARY:
                left, right = self.operand(node.left), self.operand(node.right)
                return self.arithmetic.binary(_BINARY[type(node.op)], left, right)
            case ast.UnaryOp():
                return self._unary(node)
            case ast.BoolOp():
                parts = [self.arithmetic.condition(self.operand(item)) for item in node.values]
                op = "and" if isinstance(node.op, ast.And) else "or"
                return self._joined(op, parts)
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp():
                condition = self.arithmetic.condition(self.operand(node.test))
                then, otherwise = self.operand(node.body), self.operand(node.orelse)
                return self.arithmetic.choose(condition, then, otherwise)
            case ast.Tuple() | ast.List():
                return Tuple(tuple(self.operand(item) for item in node.elts))
            case ast.Attribute():
                return self.attribute(node)
            case ast.Subscript():
                return self.subscript(node)
            case ast.Call():
                return self.call(node)
        what = type(node).__name__
        written = ast.unparse(node)
        shown = written if len(written) <= 40 else written[:37] + "…"
        raise self.error(
            node,
            f"`{shown}` ({what}) is not part of the kernel language.",
            _ADVICE.get(type(node), "Use arithmetic, comparisons, calls and indexing."),
        )

    @abstractmethod
    def call(self, node: ast.Call) -> LoweredValue:
        """Returns the value of a call."""

    @abstractmethod
    def attribute(self, node: ast.Attribute) -> LoweredValue:
        """Returns the value of `owner.name`."""

    @abstractmethod
    def subscript(self, node: ast.Subscript) -> LoweredValue:
        """Returns the value of `owner[index]`."""

    @abstractmethod
    def load(self, source: InputRef, index: tuple[Value, ...] | None) -> LoweredValue:
        """Returns an element of an input, at this position or at an index."""

    @abstractmethod
    def luma(self, pixel: Pixel) -> Number:
        """Returns the luma of a pixel."""

    def _constant(self, node: ast.Constant) -> LoweredValue:
        if isinstance(node.value, bool | int | float):
            return Literal(node.value)
        raise self.error(
            node,
            f"{node.value!r} is not a number: kernels compute with numbers only.",
            "Pass what it stands for as a parameter.",
        )

    def _name(self, node: ast.Name) -> LoweredValue:
        if node.id in self.frame.variables:
            lowered = self.frame.variables[node.id]
            if isinstance(lowered, Unset):
                raise self.error(
                    node,
                    f"`{node.id}` may have no value here: {lowered.why}.",
                    f"Give `{node.id}` a value before that.",
                )
            return lowered
        if node.id in self.frame.assigned:
            raise self.error(
                node,
                f"`{node.id}` is used before it has a value.",
                f"Assign `{node.id}` first.",
            )
        found = self.frame.source.resolve(node.id)
        if (found is MISSING or found is UNBOUND) and node.id == self.frame.source.name:
            raise self.error(
                node, f"`{node.id}` calls itself: kernels have no recursion.", "Write a loop."
            )
        if found is MISSING:
            known = [*self.frame.variables, *self.frame.source.names()]
            hint = instead_of_name(node.id, known)
            raise self.error(node, f"nothing here is called `{node.id}`.", hint)
        return self.static(found, node)

    def static(self, found: Any, node: ast.AST) -> LoweredValue:
        """Returns the value of a Python object: numbers and small tables become constants."""
        if isinstance(found, np.generic):
            found = found.item()
        if isinstance(found, bool | int | float):
            return Literal(found)
        if is_struct(type(found)):
            struct = struct_of(type(found), self.frame.source.resolve)
            return made(self, struct, [self.static(item, node) for item in found], {})
        if isinstance(found, tuple | list | np.ndarray):
            count = found.size if isinstance(found, np.ndarray) else len(found)
            if count > LARGEST_TABLE:
                raise self.error(
                    node,
                    f"a table of {count} elements is too large for a constant "
                    f"(at most {LARGEST_TABLE}).",
                    "Pass it as an input.",
                )
            items = found.tolist() if isinstance(found, np.ndarray) else found
            if not isinstance(items, tuple | list):
                return self.static(items, node)
            return Tuple(tuple(self.static(item, node) for item in items))
        if found is UNBOUND:
            raise self.error(
                node,
                f"`{ast.unparse(node)}` has no value yet when the kernel is made.",
                "Assign it before the kernel's def.",
            )
        if isinstance(found, ModuleType | Marker) or callable(found):
            return Static(found)
        raise self.error(
            node,
            f"a {type(found).__name__} from outside cannot be used in a kernel.",
            "Numbers and tuples of numbers are taken as constants; pass anything else as an input "
            "or a parameter.",
        )

    def _unary(self, node: ast.UnaryOp) -> LoweredValue:
        operand = self.operand(node.operand)
        if isinstance(node.op, ast.Not):
            if isinstance(operand, Literal):
                return Literal(not operand.value)
            return Number(self.build.apply("not", self.arithmetic.condition(operand).value))
        if isinstance(node.op, ast.UAdd):
            return operand
        if isinstance(node.op, ast.USub):
            if isinstance(operand, Literal):
                return Literal(-operand.value)
            return self.arithmetic.unary("neg", operand)
        if isinstance(operand, Literal) and isinstance(operand.value, int):
            known = operand.value
            return Literal(not known if isinstance(known, bool) else ~known)
        return self.arithmetic.unary("not", operand)

    def _joined(self, op: str, parts: list[Number]) -> Number:
        known = [decided(part) for part in parts]
        if None not in known:
            both = all(known) if op == "and" else any(known)
            return Number(self.build.const(BOOL, both), weak=True)
        joined = parts[0].value
        for part in parts[1:]:
            joined = self.build.apply(op, joined, part.value)
        return Number(joined)

    def _compare(self, node: ast.Compare) -> LoweredValue:
        operands = [self.operand(item) for item in (node.left, *node.comparators)]
        found: list[LoweredValue] = []
        for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
            if type(op) not in _COMPARE:
                raise self.error(
                    node,
                    f"`{ast.unparse(node)}`: kernels compare with == != < <= > >= only.",
                    "Compare numbers.",
                )
            _refuse_whole(left, right)
            found.append(self.arithmetic.binary(_COMPARE[type(op)], left, right))
        if len(found) == 1:
            return found[0]
        return self._joined("and", [self.arithmetic.condition(item) for item in found])

    @abstractmethod
    def intrinsic(self, name: str, args: list[LoweredValue]) -> LoweredValue:
        """Returns the result of an intrinsic."""

    @abstractmethod
    def inline_python(
        self, function: Any, args: list[LoweredValue], *, contracts: bool = False
    ) -> LoweredValue:
        """Inlines one of our own functions of the language and returns its result."""


def _refuse_whole(*compared: LoweredValue) -> None:
    """Raises Mismatch for what is compared component by component only."""
    for kind, name, instead in (
        (Pixel, "pixels", "p.r, p.g, p.b, p.a."),
        (Vector, "vectors", "v.x, v.y, …"),
        (Matrix, "matrices", "their elements, m[i, j]."),
    ):
        if any(isinstance(item, kind) for item in compared):
            raise Mismatch(f"{name} are not compared as a whole.", f"Compare {instead}")
