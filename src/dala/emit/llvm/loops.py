"""Emits loops and reductions as LLVM IR, masked where lanes exit at different iterations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from dala.emit.llvm.body import Body
from dala.emit.llvm.ir_writer import Operand, constant
from dala.emit.llvm.watchdog import REFUELLED
from dala.errors import InternalError
from dala.ir.nodes import For, Reduce, Value, While
from dala.ir.ops import neutral_of
from dala.ir.types import BOOL, F64, S64
from dala.plan.watchdog import SLICE, WHILE_COST

SUMMED_IN_ORDER, SUMMED_IN_LANES = 512, 4096
"""The number of terms a float sum adds before it is accumulated in f64.

If LLVM may spread the terms over vector lanes, each lane adds only a few of them.
"""

Iteration = Callable[[Operand, list[Operand]], list[Operand]]
Part = Callable[[Operand, Operand, list[Operand]], list[Operand]]
"""Emits `count` iterations, starting at the given one."""


class Loops(Body):
    """Adds loops to a body.

    `watched` loops spend fuel for their iterations: see `emit/llvm/watchdog.py`.
    """

    def loop(self, trips: Operand, initial: list[Operand], iteration: Iteration) -> list[Operand]:
        """Emits a loop of `trips` iterations; a watched one ends early when out of fuel."""
        if not self.watched:
            return self.counted(trips, initial, iteration)

        def part(first: Operand, count: Operand, carried: list[Operand]) -> list[Operand]:
            def again(number: Operand, values: list[Operand]) -> list[Operand]:
                return iteration(self.writer.emit("i64", f"add nsw {number}, {first.text}"), values)

            return self.counted(count, carried, again)

        return self.parts(trips, initial, SLICE, part)

    def parts(self, trips: Operand, initial: list[Operand], size: int, part: Part) -> list[Operand]:
        """Emits a loop over blocks of `size` iterations, whose fuel is spent block by block."""
        writer = self.writer
        head, pay, inside, done = (writer.label(stem) for stem in ("part", "pay", "go", "end"))
        before = writer.block
        writer.jump(head)
        writer.begin(head)
        first = Operand(writer.name("n"), "i64")
        carried = [Operand(writer.name("c"), item.type, item.vector) for item in initial]
        place = len(writer.lines)
        with writer.scope():
            rest = writer.emit("i64", f"sub nsw {trips}, {first.text}")
            more = writer.emit("i1", f"icmp sgt {rest}, 0")
            writer.branch(more, pay, done)
            writer.begin(pay)
            count = self.ops.extreme("min", S64, rest, Operand(str(size), "i64"))
            paid = self.spend(count)
            writer.branch(writer.emit("i1", f"icmp ne {paid}, 0"), inside, done)
            writer.begin(inside)
            left = part(first, count, carried)
            after = writer.emit("i64", f"add nsw {first}, {count.text}")
        latch = writer.block
        writer.jump(head)
        triples = zip(
            [first, *carried], [Operand("0", "i64"), *initial], [after, *left], strict=True
        )
        writer.lines[place:place] = [_phi(*three, before, latch) for three in triples]
        writer.begin(done)
        return carried

    def counted(
        self, trips: Operand, initial: list[Operand], iteration: Iteration
    ) -> list[Operand]:
        """Emits a loop of `trips` (i64) iterations; `iteration` maps its number to next values."""
        writer = self.writer
        head, inside, done = (writer.label(stem) for stem in ("loop", "turn", "done"))
        before = writer.block
        writer.jump(head)
        writer.begin(head)
        number = Operand(writer.name("n"), "i64")
        carried = [Operand(writer.name("c"), item.type, item.vector) for item in initial]
        place = len(writer.lines)
        test = writer.emit("i1", f"icmp slt {number}, {trips.text}")
        writer.branch(test, inside, done)
        writer.begin(inside)
        with writer.scope():
            following = iteration(number, carried)
            after = writer.emit("i64", f"add nsw {number}, 1")
        latch = writer.block
        writer.jump(head)
        triples = zip(
            [number, *carried], [Operand("0", "i64"), *initial], [after, *following], strict=True
        )
        writer.lines[place:place] = [_phi(*three, before, latch) for three in triples]
        writer.begin(done)
        return carried

    def for_loop(self, node: For) -> list[Operand]:
        trips, most = self._trips(node, node.step)
        initial = [
            self.shaped(self.value(v), c) for v, c in zip(node.initial, node.carried, strict=True)
        ]

        def iteration(number: Operand, carried: list[Operand]) -> list[Operand]:
            self._count(node, number, node.step)
            self.values.update(zip(node.carried, carried, strict=True))
            with self._active(trips, number):
                left = self.block(node.body)
                left = [self.shaped(item, c) for item, c in zip(left, node.carried, strict=True)]
                if trips.vector:
                    assert self.mask is not None
                    pairs = zip(left, carried, strict=True)
                    left = [self.ops.select(self.mask, new, old) for new, old in pairs]
            return left

        return self.loop(most, initial, iteration)

    def _trips(self, node: For | Reduce, step: int) -> tuple[Operand, Operand]:
        """Returns the i64 trip count of each lane, and the largest of them."""
        ops = self.ops
        start, stop = (self._wide(value) for value in (node.start, node.stop))
        start, stop = self.writer.alike(start, stop)
        # Saturating: two s64 values may be further apart than s64 can hold.
        apart = ops.intrinsic("ssub.sat", stop, start) if node.stop.type == S64 else None
        apart = apart or ops.binary("sub", S64, stop, start)
        if abs(step) != 1:
            apart = ops.binary(
                "add", S64, apart, ops.number(apart, S64, step - (1 if step > 0 else -1))
            )
            apart = ops.emit(
                apart, apart.type, f"sdiv {apart}, {ops.number(apart, S64, step).text}"
            )
        elif step == -1:
            apart = ops.unary("neg", S64, apart)
        trips = ops.extreme("max", S64, apart, ops.number(apart, S64, 0))
        most = trips
        if trips.vector:
            if self.mask is not None:
                trips = ops.select(self.mask, trips, ops.number(trips, S64, 0))
            function = f"llvm.vector.reduce.smax.{self.writer.suffix(trips)}"
            most = self.writer.call(function, "i64", trips)
            most = Operand(most.text, "i64")
        return trips, most

    def _count(self, node: For | Reduce, number: Operand, step: int) -> None:
        """Sets the counter of this iteration, also as the i64 used for indexing."""
        advance = number
        if step != 1:
            advance = self.writer.emit("i64", f"mul {number}, {step}")
        start, advance = self.writer.alike(self._wide(node.start), advance)
        wide = self.ops.binary("add", S64, start, advance)
        self.wide[node.counter] = wide
        self.values[node.counter] = self.ops.convert(wide, S64, node.counter.type)
        if step == 1:
            self.bounds[node.counter] = (node.start, node.stop)

    def _wide(self, value: Value) -> Operand:
        """Returns an integer value as i64."""
        return self.wide.get(value) or self.ops.convert(self.value(value), value.type, S64)

    @contextmanager
    def _active(self, trips: Operand, number: Operand) -> Iterator[None]:
        """Masks the lanes that are still iterating, for the code emitted inside."""
        outer = self.mask
        if trips.vector:
            here = self.ops.compare("lt", S64, self.writer.splat(number), trips)
            self.mask = here if outer is None else self.ops.binary("and", BOOL, here, outer)
        try:
            yield
        finally:
            self.mask = outer

    def while_loop(self, node: While) -> list[Operand]:
        if not self.watched:
            raise InternalError(f"{self.program.name}: a loop that may not end is not watched.")
        writer = self.writer
        masked = writer.lanes > 1 and self.variance.condition_varies(node)
        outer = self.mask
        initial = [
            self.shaped(self.value(v), c) for v, c in zip(node.initial, node.carried, strict=True)
        ]
        head, inside, done = (writer.label(stem) for stem in ("while", "do", "over"))
        before = writer.block
        writer.jump(head)
        writer.begin(head)
        carried = [Operand(writer.name("c"), item.type, item.vector) for item in initial]
        place = len(writer.lines)
        with writer.scope():
            self.values.update(zip(node.carried, carried, strict=True))
            (holds,) = self.block(node.condition)
            if masked:
                active = writer.splat(holds)
                if outer is not None:
                    active = self.ops.binary("and", BOOL, active, outer)
                self.mask = active
                function = f"llvm.vector.reduce.or.{writer.suffix(active)}"
                holds = Operand(writer.call(function, "i1", active).text, "i1")
            self._go_on(holds, inside, done)
            writer.begin(inside)
            left = self.block(node.body)
            left = [self.shaped(item, c) for item, c in zip(left, node.carried, strict=True)]
            if masked:
                assert self.mask is not None
                left = [
                    self.ops.select(self.mask, a, b) for a, b in zip(left, carried, strict=True)
                ]
        self.mask = outer
        latch = writer.block
        writer.jump(head)
        triples = zip(carried, initial, left, strict=True)
        writer.lines[place:place] = [_phi(*three, before, latch) for three in triples]
        writer.begin(done)
        return carried

    def _go_on(self, holds: Operand, inside: str, done: str) -> None:
        """Emits the jump into the body if the loop continues and has fuel, else out of line."""
        writer = self.writer
        aside, empty, paid = (writer.label(stem) for stem in ("aside", "empty", "paid"))
        fuel = writer.emit("i64", "load i64, ptr %fuel")
        left = writer.emit("i64", f"sub {fuel}, {WHILE_COST}")
        enough = writer.emit("i1", f"icmp sge {left}, 0")
        writer.branch(self.ops.binary("and", BOOL, holds, enough), paid, aside)
        writer.begin(aside)
        writer.branch(holds, empty, done)
        writer.begin(empty)
        granted = self.refuel(fuel, Operand(str(WHILE_COST), "i64"))
        writer.branch(writer.emit("i1", f"icmp ne {granted}, 0"), inside, done)
        writer.begin(paid)
        writer.line(f"store {left}, ptr %fuel")
        writer.jump(inside)

    def spend(self, iterations: Operand) -> Operand:
        """Returns the iterations if they could be paid for, else 0, and sets the status."""
        writer = self.writer
        out, paid = writer.label("out"), writer.label("paid")
        fuel = writer.emit("i64", "load i64, ptr %fuel")
        left = writer.emit("i64", f"sub {fuel}, {iterations.text}")
        writer.line(f"store {left}, ptr %fuel")
        before = writer.block
        writer.branch(writer.emit("i1", f"icmp slt {left}, 0"), out, paid)
        writer.begin(out)
        granted = self.refuel(fuel, iterations)
        writer.jump(paid)
        writer.begin(paid)
        ways = f"[ {iterations.text}, %{before} ], [ {granted.text}, %{out} ]"
        return writer.emit("i64", f"phi i64 {ways}")

    def refuel(self, fuel: Operand, iterations: Operand) -> Operand:
        """Returns the iterations if more fuel was granted for them, else 0."""
        writer = self.writer
        taken, mark = (writer.emit("i64", f"load i64, ptr %{name}") for name in ("taken", "mark"))
        given = f"ptr %control, {fuel}, {taken}, {mark}, {iterations}"
        found = writer.emit(REFUELLED, f"call {REFUELLED} @{self.watched}({given})")
        for place, name in enumerate(("fuel", "taken")):
            part = writer.emit("i64", f"extractvalue {found}, {place}")
            writer.line(f"store {part}, ptr %{name}")
        status = writer.emit("i32", f"extractvalue {found}, 2")
        known = writer.emit("i32", "load i32, ptr %status")
        both = writer.emit("i32", f"or {known}, {status.text}")
        writer.line(f"store {both}, ptr %status")
        allowed = writer.emit("i1", f"icmp eq {status}, 0")
        return writer.emit("i64", f"select {allowed}, {iterations}, i64 0")

    # -- reductions ------------------------------------------------------------------------------

    def reduce(self, nodes: Sequence[Reduce]) -> list[Operand]:
        trips, most = self._trips(nodes[0], 1)
        if nodes[0].op == "add" and nodes[0].type.is_float:
            return self._float_sums(nodes, trips, most)
        neutrals = [
            self.shaped(constant(node.type, neutral_of(node.op, node.type)), node) for node in nodes
        ]

        def iteration(number: Operand, carried: list[Operand]) -> list[Operand]:
            found = []
            for node, so_far in zip(nodes, carried, strict=True):
                term = self._term(node, trips, number)
                a, b = self.writer.alike(so_far, term)
                found.append(self.ops.binary(node.op, node.type, a, b))
            return found

        return self.loop(most, neutrals, iteration)

    def _term(self, node: Reduce, trips: Operand, number: Operand) -> Operand:
        self._count(node, number, 1)
        with self._active(trips, number):
            (term,) = self.block(node.body)
            if trips.vector:
                assert self.mask is not None
                neutral = constant(node.type, neutral_of(node.op, node.type))
                term = self.ops.select(self.mask, term, neutral)
        return self.shaped(term, node)

    def _float_sums(self, nodes: Sequence[Reduce], trips: Operand, most: Operand) -> list[Operand]:
        """Emits float sums: blocks of terms in their own types, their totals in f64."""
        writer, size = self.writer, SUMMED_IN_LANES if self.free_order else SUMMED_IN_ORDER
        flags = " reassoc" if self.free_order else ""
        zeros = [self.shaped(constant(node.type, 0.0), node) for node in nodes]
        none = [self.shaped(constant(F64, 0.0), node) for node in nodes]

        def block(first: Operand, count: Operand, totals: list[Operand]) -> list[Operand]:
            def iteration(number: Operand, carried: list[Operand]) -> list[Operand]:
                absolute = writer.emit("i64", f"add nsw {number}, {first.text}")
                found = []
                for node, so_far in zip(nodes, carried, strict=True):
                    term = self._term(node, trips, absolute)
                    text = f"fadd{flags} {so_far}, {term.text}"
                    found.append(self.ops.emit(term, term.type, text))
                return found

            parts = self.counted(count, zeros, iteration)
            found = []
            for node, part, total in zip(nodes, parts, totals, strict=True):
                widened = self.ops.convert(part, node.type, F64)
                found.append(self.ops.binary("add", F64, total, widened))
            return found

        def numbered(index: Operand, totals: list[Operand]) -> list[Operand]:
            first = writer.emit("i64", f"mul {index}, {size}")
            rest = writer.emit("i64", f"sub {most}, {first.text}")
            count = self.ops.extreme("min", S64, rest, Operand(str(size), "i64"))
            return block(first, count, totals)

        if self.watched:
            summed = self.parts(most, none, size, block)
        else:
            padded = writer.emit("i64", f"add {most}, {size - 1}")
            blocks = writer.emit("i64", f"udiv {padded}, {size}")
            summed = self.counted(blocks, none, numbered)
        pairs = zip(summed, nodes, strict=True)
        return [self.ops.convert(total, F64, node.type) for total, node in pairs]


def _phi(name: Operand, first: Operand, again: Operand, before: str, latch: str) -> str:
    """Returns the phi that is `first` on entry and `again` after each iteration."""
    sources = f"[ {first.text}, %{before} ], [ {again.text}, %{latch} ]"
    return f"  {name.text} = phi {name.type} {sources}"
