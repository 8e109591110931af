"""Lowers what loops and reductions go over: ranges, which are counted, and tuples, unrolled."""

from __future__ import annotations

import ast
from abc import abstractmethod
from typing import Any

from dala.errors import KernelTypeError
from dala.ir.types import Scalar
from dala.lang.expressions import LARGEST_TABLE
from dala.lang.reads import Reads
from dala.lang.values import (
    InputRef,
    Literal,
    Local,
    LoweredValue,
    Matrix,
    Number,
    OutRef,
    Pixel,
    Static,
    Tuple,
    Vector,
    describe,
)

MOST_UNROLLED = 1024
"""Iterations over tuples, with those of the loops around them: each is lowered by itself."""


class Iteration(Reads):
    """Lowers the iterables of `for`."""

    unrolled = 1
    """How often the statement at hand is lowered because of the tuples around it."""

    @abstractmethod
    def assign(self, target: ast.expr, value: LoweredValue) -> None:
        """Assigns a value to a name, to several names, or to an element of the output."""

    def target_of(self, node: ast.Call) -> Any:
        """Returns the Python object that is called."""
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value)
            if isinstance(owner, OutRef):
                raise self.error(
                    node,
                    f"`{ast.unparse(node)}` is a statement of its own.",
                    "Write `out.add(i, value)` on a line by itself.",
                )
        lowered = self.value(node.func)
        if isinstance(lowered, Static):
            return lowered.object
        raise self.error(node, f"{describe(lowered)} cannot be called.", "Call a function.")

    def is_range(self, node: ast.expr) -> bool:
        """Whether an iterable is a call of `range`."""
        return isinstance(node, ast.Call) and self.target_of(node) is range

    def bounds(self, node: ast.expr) -> tuple[Number, Number, int, Scalar]:
        """Returns the start, stop and step of a range, and the type of its counter."""
        assert isinstance(node, ast.Call)
        if not 1 <= len(node.args) <= 3:
            raise self.error(
                node,
                f"range takes 1 to 3 arguments, not {len(node.args)}.",
                "Write range(n), range(start, stop) or range(start, stop, step).",
            )
        parts = [self.operand(arg) for arg in node.args]
        start, stop = (Literal(0), parts[0]) if len(parts) == 1 else (parts[0], parts[1])
        step = parts[2] if len(parts) == 3 else Literal(1)
        if not isinstance(step, Literal) or type(step.value) is not int or step.value == 0:
            raise self.error(
                node, "a range's step is a constant integer, not 0.", "Write it as a number."
            )
        numbers = []
        for part in (start, stop):
            number = self.arithmetic.typed(part)
            if not number.type.is_integer:
                raise self.error(
                    node,
                    f"a range goes between integers, not {describe(part)}.",
                    "Convert it: dala.s32(…).",
                    KernelTypeError,
                )
            numbers.append(self.counting(number))
        counting = self.arithmetic.common_type(numbers[0].type, numbers[1].type)
        first, last = (self.arithmetic.convert(number, counting) for number in numbers)
        return first, last, step.value, counting

    def items(self, node: ast.expr) -> list[LoweredValue]:
        """Returns what a loop over a tuple, `enumerate` or `zip` goes over, in order."""
        called = self.target_of(node) if isinstance(node, ast.Call) else None
        if called is enumerate and isinstance(node, ast.Call):
            return self._enumerated(node)
        if called is zip and isinstance(node, ast.Call):
            return self._zipped(node)
        if called is range and isinstance(node, ast.Call):
            return self._counted(node)
        found = self.value(node)
        if isinstance(found, Pixel):
            return list(found.channels)
        if isinstance(found, Tuple | Vector | Local):
            return list(found.items)
        if isinstance(found, Matrix):
            return list(found.rows)
        instead = "Write `for k in range(n):` and index with k."
        if isinstance(found, InputRef):
            name = found.input.name
            instead = f"Write `for k in range(len({name})):` and read {name}[k, …]."
        raise self.error(
            node,
            f"`{ast.unparse(node)}`: loops go over range(…), tuples, enumerate(…) and zip(…), not "
            f"{describe(found)}.",
            instead,
        )

    def _enumerated(self, node: ast.Call) -> list[LoweredValue]:
        keywords = {item.arg: item.value for item in node.keywords}
        if not 1 <= len(node.args) + len(keywords) <= 2 or not set(keywords) <= {"start"}:
            raise self.error(
                node,
                "enumerate takes a tuple, and where counting starts.",
                "Write `for k, v in enumerate(t):` or `enumerate(t, 1)`.",
            )
        given = node.args[1] if len(node.args) == 2 else keywords.get("start")
        first = Literal(0) if given is None else self.value(given)
        if not isinstance(first, Literal) or type(first.value) is not int:
            raise self.error(
                node,
                f"enumerate starts at a constant integer, not {describe(first)}.",
                "Start at 0, and add it to the counter.",
                KernelTypeError,
            )
        pairs = enumerate(self.items(node.args[0]), first.value)
        return [Tuple((Literal(number), self.element(item))) for number, item in pairs]

    def _zipped(self, node: ast.Call) -> list[LoweredValue]:
        if any(item.arg != "strict" for item in node.keywords):
            raise self.error(node, "zip takes tuples only.", "Write zip(a, b).")
        rows = [self.items(arg) for arg in node.args]
        lengths = sorted({len(row) for row in rows})
        if len(lengths) > 1:
            raise self.error(
                node,
                f"zip goes over tuples of one length, not of {lengths[0]} and {lengths[-1]}.",
                "Make them as long as each other.",
                KernelTypeError,
            )
        columns = zip(*rows, strict=True)
        return [Tuple(tuple(self.element(item) for item in column)) for column in columns]

    def _counted(self, node: ast.Call) -> list[LoweredValue]:
        """Returns the numbers of a constant range beside tuples that are unrolled."""
        parts = [self.operand(arg) for arg in node.args]
        known = [part.value for part in parts if isinstance(part, Literal)]
        ends = [part for part in known if isinstance(part, int)]
        if len(ends) != len(parts):
            raise self.error(
                node,
                f"`{ast.unparse(node)}` has no length that is known when compiling.",
                "Beside a tuple, a range is constant: take a dala.const, or index with a counter.",
            )
        self.bounds(node)
        counted = range(*ends)
        if len(counted) > LARGEST_TABLE:
            raise self.error(
                node,
                f"a range of {len(counted)} beside a tuple is too long (at most {LARGEST_TABLE}).",
                "Write `for k in range(…):` and index with k.",
            )
        return [Literal(number) for number in counted]
