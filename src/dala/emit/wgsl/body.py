"""Emits the statements of a program as WGSL: arithmetic, branches, loops and reductions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from dala.emit.statements import Statements
from dala.emit.wgsl.ops import Ops, literal
from dala.errors import LimitError
from dala.ir.nodes import (
    Apply,
    Const,
    Extent,
    For,
    If,
    Param,
    Position,
    Program,
    Reduce,
    Result,
    Value,
    Variable,
    While,
)
from dala.ir.ops import neutral_of
from dala.ir.types import BOOL, S64, U8, U32, Scalar
from dala.plan.watchdog import WHILE_COST

SUMMED_IN_ORDER = 512
"""The number of terms a float sum adds before they are accumulated."""
_MOST_ITERATIONS = 0xFFFF_FFFF
DEEPEST = 120
"""The deepest nesting of blocks; WGSL compilers accept 127 braces."""
SECOND_EXIT = "if (args.zero != 0u) { break; }"
"""Never taken; without it, a compiler may prove that the loop completed and drop the check."""


Loops = Literal["free", "counted", "checked"]
"""How loops are kept from running forever: not at all, where they cannot; by a watchdog that counts
iterations; or by the device, which stops them, so that their completion is checked."""


class Body(Statements[str]):
    """Emits statements for one position."""

    arguments = "args"
    """The struct with its sizes and parameters."""

    def __init__(self, program: Program, ops: Ops, loops: Loops) -> None:
        super().__init__(program)
        self.ops = ops
        self.loops = loops
        self.lines: list[str] = []
        self.read: list[dict[object, str]] = [{}]
        self._indent = 1
        self._names = 0

    # -- text ------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("  " * self._indent + text)

    def name(self, stem: str = "v") -> str:
        self._names += 1
        return f"{stem}{self._names}"

    def let(self, scalar: Scalar, text: str, stem: str = "v") -> str:
        """Emits a `let` for an expression and returns its name."""
        name = self.name(stem)
        self.line(f"let {name}: {scalar.wgsl} = {text};")
        return name

    def var(self, scalar: Scalar, text: str = "") -> str:
        """Emits a variable, initialized if a value is given, and returns its name."""
        name = self.name("c")
        first = f" = {text}" if text else ""
        self.line(f"var {name}: {scalar.wgsl}{first};")
        return name

    @contextmanager
    def inside(self, head: str) -> Iterator[None]:
        """Emits a block in braces; reads cached inside it are forgotten at its end."""
        if self._indent > DEEPEST:
            raise LimitError(
                f"{self.program.name} is nested more than {DEEPEST} deep, more than WGSL takes: "
                f"write chains of elif as loops, or in several kernels."
            )
        self.line(f"{head} {{")
        self._indent += 1
        self.read.append({})
        yield
        self.read.pop()
        self._indent -= 1
        self.line("}")

    # -- values ----------------------------------------------------------------------------------

    def value(self, value: Value) -> str:
        """Returns the WGSL expression of an IR value."""
        match value:
            case Const():
                return literal(value.type, value.value)
            case Param():
                names = [param.name for param in self.program.params]
                text = f"{self.arguments}.param_{names.index(value.name)}"
                return f"({text} != 0u)" if value.type == BOOL else text
            case Extent():
                return f"{self.arguments}.extent_{self.source(value.source)}_{value.axis}"
            case Position():
                return f"p{value.axis}"
            case Result():
                return self.values[(value.node, value.index)]
            case _:
                return self.values[value]

    def apply(self, node: Apply) -> str:
        args = [self.value(arg) for arg in node.args]
        return self.let(node.type, self.ops.apply(node, args))

    # -- branches and loops ----------------------------------------------------------------------

    def branch(self, node: If) -> list[str]:
        left = [self.var(value.type) for value in node.then.results]
        with self.inside(f"if ({self.value(node.condition)})"):
            self._assign(left, self.block(node.then))
        with self.inside("else"):
            self._assign(left, self.block(node.otherwise))
        return left

    def _assign(self, variables: list[str], values: list[str]) -> None:
        for variable, text in zip(variables, values, strict=True):
            self.line(f"{variable} = {text};")

    def _carry(self, carried: tuple[Variable, ...], initial: tuple[Value, ...]) -> list[str]:
        pairs = zip(carried, initial, strict=True)
        return [self.var(variable.type, self.value(first)) for variable, first in pairs]

    def _begin_iteration(self, carried: tuple[Variable, ...], variables: list[str]) -> None:
        """Names the carried values of this iteration, so that all of them change at once."""
        for variable, name in zip(carried, variables, strict=True):
            self.values[variable] = self.let(variable.type, name)

    def for_loop(self, node: For) -> list[str]:
        trips = self.trips(node, node.step)
        variables = self._carry(node.carried, node.initial)
        with self.iterations("0u", trips) as iteration:
            self.count(node, iteration, node.step)
            self._begin_iteration(node.carried, variables)
            self._assign(variables, self.block(node.body))
        return variables

    def while_loop(self, node: While) -> list[str]:
        variables = self._carry(node.carried, node.initial)
        ended = self.var(BOOL, "false")
        with self.inside("loop"):
            self._begin_iteration(node.carried, variables)
            (holds,) = self.block(node.condition)
            self.line(f"if (!({holds})) {{ {ended} = true; break; }}")
            if self.loops == "counted":
                self.line(f"if (spend({WHILE_COST}u) == 0u) {{ break; }}")
            if self.loops == "checked":
                self.line(SECOND_EXIT)
            self._assign(variables, self.block(node.body))
        if self.loops == "checked":
            self.line(f"if (!{ended}) {{ failed = true; }}")
        return variables

    @contextmanager
    def iterations(self, first: str, stop: str, stride: int = 1) -> Iterator[str]:
        """Emits a loop that counts from `first` up to `stop`."""
        iteration = self.name("n")
        self.line(f"var {iteration} = {first};")
        with self.inside(f"for (; {iteration} < {stop}; {iteration} += {stride}u)"):
            yield iteration
        if self.loops == "checked":
            self.line(f"if ({iteration} < {stop}) {{ failed = true; }}")

    def trips(self, node: For | Reduce, step: int) -> str:
        """Emits the trip count as u32; 0 if the watchdog's limit is exceeded."""
        low, high = (node.start, node.stop) if step > 0 else (node.stop, node.start)
        if isinstance(low, Const) and isinstance(high, Const):
            iterations = len(range(int(node.start.value), int(node.stop.value), step))  # type: ignore[attr-defined]
            some = f"{min(iterations, _MOST_ITERATIONS)}u"
            return self._paid(some)
        wide = S64 in (low.type, high.type)
        if wide:
            first, last = (
                self.ops.convert(self.value(item), item.type, S64) for item in (low, high)
            )
            by = f" / {abs(step)}lu" if abs(step) != 1 else ""
            apart = f"u32(min((u64({last} - {first}) - 1lu){by} + 1lu, {_MOST_ITERATIONS}lu))"
        else:
            first, last = self.value(low), self.value(high)
            apart = " - ".join(self._word(item) for item in (high, low))
        ahead = self.ops.compare("lt", S64 if wide else low.type, first, last)
        some = self.let(U32, f"select(0u, {apart}, {ahead})", "t")
        if abs(step) != 1 and not wide:
            some = self.let(
                U32, f"({some} / {abs(step)}u) + u32(({some} % {abs(step)}u) != 0u)", "t"
            )
        return self._paid(some)

    def _paid(self, iterations: str) -> str:
        return self.let(U32, f"spend({iterations})", "t") if self.loops == "counted" else iterations

    def _word(self, value: Value) -> str:
        """Returns the low 32 bits of an integer."""
        if isinstance(value, Const):
            return literal(U32, int(value.value) & _MOST_ITERATIONS)
        return f"u32({self.value(value)})"

    def count(self, node: For | Reduce, iteration: str, step: int) -> None:
        """Sets the counter of this iteration."""
        type = node.counter.type
        advance = iteration if type in (U32, U8) else f"{type.wgsl}({iteration})"
        if step != 1:
            advance = f"{advance} * {literal(type, step) if type.kind == 's' else f'{step}u'}"
        start = self.ops.convert(self.value(node.start), node.start.type, type)
        self.values[node.counter] = self.let(type, f"{start} + {advance}")
        if step == 1:
            self.bounds[node.counter] = (node.start, node.stop)

    # -- reductions ------------------------------------------------------------------------------

    def reduce(self, nodes: Sequence[Reduce]) -> list[str]:
        return self.reduce_strided(nodes, self.trips(nodes[0], 1))

    def reduce_strided(
        self, nodes: Sequence[Reduce], trips: str, first: str = "0u", stride: int = 1
    ) -> list[str]:
        """Reduces the terms of every iteration, or of every `stride`-th from `first` on."""
        if nodes[0].op == "add" and nodes[0].type.is_float:
            return self._float_sums(nodes, trips, first, stride)
        totals = [
            self.var(node.type, literal(node.type, neutral_of(node.op, node.type)))
            for node in nodes
        ]
        self._reduce_into(totals, nodes, trips, first, stride)
        return totals

    def _reduce_into(
        self, totals: list[str], nodes: Sequence[Reduce], stop: str, first: str, stride: int
    ) -> None:
        with self.iterations(first, stop, stride) as iteration:
            for total, node in zip(totals, nodes, strict=True):
                self.count(node, iteration, 1)
                (term,) = self.block(node.body)
                self.line(f"{total} = {self.combined(node, total, term)};")

    def combined(self, node: Reduce, a: str, b: str) -> str:
        """Returns the combination of two partial results."""
        if node.op != "add":
            return self.ops.extreme(node.op, node.type, a, b)
        return f"{a} + {b}" if node.type.is_float else self.ops.integer("add", node.type, a, b)

    def _float_sums(
        self, nodes: Sequence[Reduce], trips: str, first: str, stride: int
    ) -> list[str]:
        """Emits blocked float sums, whose error grows much more slowly."""
        size = SUMMED_IN_ORDER * stride
        totals = [self.var(node.type, literal(node.type, 0)) for node in nodes]
        with self.iterations(first, trips, size) as block:
            parts = [self.var(node.type, literal(node.type, 0)) for node in nodes]
            stop = self.let(U32, f"{block} + min({trips} - {block}, {size}u)", "t")
            self._reduce_into(parts, nodes, stop, block, stride)
            for total, part in zip(totals, parts, strict=True):
                self.line(f"{total} = {total} + {part};")
        return totals
