"""Random kernels: a seed gives a source that lowers, and everything to run it on."""

from random import Random

from reference.case import Case, run_reference
from reference.random_expressions import (
    FLOAT_OPERATORS,
    FLOATS,
    INTEGER_OPERATORS,
    INTEGERS,
    MOST_TURNS,
    PAIRS,
    STORED,
    TYPES,
    WIDE,
    Buffer,
    Expressions,
    Scope,
)
from reference.random_images import random_image_kernel
from reference.random_local_arrays import LocalArrays
from reference.random_structs import Structs
from reference.random_values import random_array, random_literal
from reference.random_vector_kernels import random_vector_kernel
from reference.random_vectors import Vectors

__all__ = ["Case", "random_kernel", "run_reference"]

BORDERS = ["clamp", "mirror", "reflect", "wrap", "zero"]
SIZES = [0, 1, 2, 3, 5, 17, 33, 65]
MOST_ELEMENTS = 2000


def random_kernel(seed: int) -> Case:
    """The case of this seed; the same one every time."""
    rng = Random(seed)
    kind = rng.random()
    if kind < 0.06:
        return random_vector_kernel(rng, f"k{seed}", rng.choice(BORDERS))
    if kind < 0.16:
        return random_image_kernel(rng, f"k{seed}", rng.choice(BORDERS))
    if kind < 0.32:
        return _Kernel(rng, f"k{seed}").scattered()
    chosen = Random(f"outputs of {seed}")
    count = chosen.choice([2, 2, 3, 4]) if chosen.random() < 0.3 else 1
    return _Kernel(rng, f"k{seed}").plain(count)


class _Kernel(Structs, LocalArrays, Vectors, Expressions):
    """Writes the statements of one kernel."""

    def __init__(self, rng: Random, name: str) -> None:
        super().__init__(rng, Scope())
        self.name = name
        self.border = rng.choice(BORDERS)
        self.shape = _random_shape(rng, rng.choice([1, 1, 2, 2, 3]))
        self.params: dict[str, bool | int | float] = {}
        self.consts: dict[str, int] = {}
        self.arguments: list[str] = []
        self.lines: list[str] = []
        self.indent = 1
        self.method = ""
        self.returned: tuple[str, ...] = ()
        self.scope.buffers = [self._buffer(i) for i in range(rng.randint(1, 3))]
        self.scope.positions = ["i", "j", "l"][: len(self.shape)]
        self._add_parameters()
        left = self.scope.positions
        self.say(f"{', '.join(left)}{',' * (len(left) == 1)} = position({len(left)})")

    def _buffer(self, i: int) -> Buffer:
        own = i == 0 or self.maybe(0.6)
        shape = self.shape if own else _random_shape(self.rng, self.rng.choice([1, 1, 2]))
        if i > 0 and own and self.maybe(0.3):
            shape = tuple(self.rng.choice([1, size]) for size in shape[self.rng.randrange(2) :])
            shape = shape or (1,)
        return Buffer("xyz"[i], self.rng.choice(STORED), shape, own)

    def _add_parameters(self) -> None:
        for i in range(self.rng.randint(0, 2)):
            kind = self.rng.choice(TYPES)
            self.params[f"a{i}"] = random_array(self.rng, kind, (1,)).item()
            self.arguments.append(f"a{i}: {kind}")
            self.scope.variables[f"a{i}"] = kind
        if self.maybe(0.4):
            kind, most = self.rng.choice(INTEGERS), self.rng.randint(0, 4)
            self.params["m"] = most
            self.arguments.append(f"m: {kind}")
            self.scope.bounds["m"] = (kind, most)
        if self.maybe(0.15):
            self.add_vector_parameter()
        if self.maybe(0.4):
            self.consts["c"] = self.rng.randint(0, 4)
            self.arguments.append("c: const = 1")
            self.scope.bounds["c"] = ("s32", self.consts["c"])

    # -- whole kernels ---------------------------------------------------------------------------

    def plain(self, count: int) -> Case:
        """A kernel that returns the elements of so many outputs."""
        hashed = self.maybe(0.6)
        first = "s64" if hashed else self.rng.choice(TYPES)
        self.returned = (first, *(self.rng.choice(TYPES) for _ in range(count - 1)))
        for _ in range(self.rng.randint(1, 2)):
            self.assign(0)
        for _ in range(self.rng.randint(0, 3)):
            self.statement(2)
            if self.maybe(0.1):
                self.say(f"if {self.condition(1)}:")
                self.say(f"    return {self._values(1)}")
        value = self._hash() if hashed else self.expression(first, 3)
        others = [self.expression(kind, 2) for kind in self.returned[1:]]
        self.say(f"return {', '.join([value, *others])}")
        dtype = self.rng.choice(["s64", "s64", "s32", "u32"] if hashed else STORED)
        return self._case(self.shape, dtype, tuple(self.rng.choice(STORED) for _ in others))

    def _values(self, depth: int) -> str:
        """What an early `return` gives: one value for each output."""
        return ", ".join(self.expression(kind, depth) for kind in self.returned)

    def _hash(self) -> str:
        """Every bit of every variable in one s64: nothing that was computed is in vain."""
        parts = []
        whole = self.scope.variables.items()
        for name, kind in [part for item in whole for part in self.parts_of(*item)]:
            if kind in FLOATS:
                width = "s64" if kind == "f64" else "s32"
                parts.append(f"s64(bits({name} if {name} == {name} else 0.5, {width}))")
            elif name not in self.params:
                parts.append(f"s64({name})")
        return " * 31 + ".join(parts or ["s64(0)"])

    def scattered(self) -> Case:
        """A kernel that writes where it likes, so that the order does not matter."""
        if self.maybe(0.4):
            return self._own_elements()
        for _ in range(self.rng.randint(0, 2)):
            self.statement(1)
        adds = self.maybe(0.5)
        dtype = self.rng.choice(INTEGERS if adds else STORED)
        rank = self.rng.choice([1, 2]) if adds else len(self.shape)
        shape = _random_shape(self.rng, rank)
        place = self._place()
        # Of one kind: the order of different ones would matter.
        self.method = self.rng.choice(["add", "add", "min", "max"])
        for _ in range(self.rng.randint(1, 2) if adds else 1):
            if self.maybe(0.4):
                self.say(f"if {self.condition(1)}:")
                self.indent += 1
            value = self.expression(self.rng.choice(TYPES), 2)
            self.say(self._addition(rank, value) if adds else f"out[{place}] = {value}")
            self.indent = 1
        self.arguments.insert(0, "out: Out")
        return self._case(shape, dtype)

    def _own_elements(self) -> Case:
        """A kernel each of whose positions writes several elements that no other writes."""
        for _ in range(self.rng.randint(0, 2)):
            self.statement(1)
        dtype, parts = self.rng.choice(TYPES), self.rng.randint(1, 3)
        names, width = self.scope.positions, self.shape[-1]
        *outer, last = names
        ways = {
            "{0}, {1}": (width, parts),
            "{1}, {0}": (parts, width),
            "9 - {0}, {1}": (width, parts),
            f"{{0}} * {parts} + {{1}}": (width * parts,),
        }
        way = self.rng.choice(list(ways))
        shape = (*self.shape[:-1], *ways[way])
        if len(ways[way]) == 1 and len(names) == 2 and self.maybe(0.5):
            outer, last = [], f"({names[0]} * x.shape[1] + {last})"
            shape = (self.shape[0] * shape[-1],)
        for part in self.rng.sample(range(parts), parts):
            if self.maybe(0.3):
                self.say(f"if {self.condition(1)}:")
                self.indent += 1
            elif self.maybe(0.2):
                self.say(f"for {self.fresh('n')} in range({self.rng.randint(0, 3)}):")
                self.indent += 1
            place = ", ".join([*outer, way.format(last, part)])
            value = self.expression(self.rng.choice(TYPES), 2)
            adds = self.maybe(0.3)
            method = self.rng.choice(["add", "min", "max"])
            self.say(f"out.{method}(({place},), {value})" if adds else f"out[{place}] = {value}")
            self.indent = 1
        self.arguments.insert(0, "out: Out")
        return self._case(shape, dtype)

    def _addition(self, rank: int, value: str) -> str:
        place = ", ".join(self.index(self.rng.choice(SIZES), 2) for _ in range(rank))
        method = self.method
        return f"out.{method}({place if rank == 1 else f'({place})'}, {value})"

    def _place(self) -> str:
        """An index that no two positions share."""
        ways = ["{0}", "{0} * 2 + 1", "16 - {0}", "{0} - 2", "{0} + 3", "~{0}"]
        return ", ".join(self.rng.choice(ways).format(name) for name in self.scope.positions)

    def _case(self, shape: tuple[int, ...], dtype: str, others: tuple[str, ...] = ()) -> Case:
        head = ", ".join([*(item.name for item in self.buffers), *self.arguments])
        source = f"def {self.name}({head}):\n" + "\n".join(self.lines) + "\n"
        source = self.definitions() + source
        arrays = tuple(random_array(self.rng, item.dtype, item.shape) for item in self.buffers)
        return Case(source, arrays, shape, dtype, self.params, self.consts, self.border, others)

    @property
    def buffers(self) -> list[Buffer]:
        return self.scope.buffers

    # -- statements ------------------------------------------------------------------------------

    def say(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def statement(self, depth: int) -> None:
        inside = self.indent > 1
        kinds = [self.assign] + [self.change] * (8 if inside else 3) + [self.assign_two]
        kinds += self.statements(inside)
        if depth > 0 and not (inside and self.maybe(0.6)):
            kinds += [self.branch] * 2 + [self.join, self.repeat, self.gather, self.gather]
            kinds += [self.count] * 3 + [self.go_through]
        self.rng.choice(kinds)(depth)

    def block(self, count: int, depth: int) -> None:
        """Statements one step further in; names that they make are gone afterwards."""
        self.indent += 1
        with self.scoped():
            for _ in range(count):
                self.statement(depth)
        self.indent -= 1

    def assign(self, depth: int) -> None:
        name, kind = self.fresh("v"), self.rng.choice([*TYPES, *TYPES, "bool"])
        self.say(f"{name} = {self.expression(kind, 2)}")
        self.scope.variables[name] = kind

    def assign_two(self, depth: int) -> None:
        names, kinds = [self.fresh("v"), self.fresh("v")], self.rng.choices(TYPES, k=2)
        values = [self.expression(kind, 1) for kind in kinds]
        self.say(f"{', '.join(names)} = {', '.join(values)}")
        self.scope.variables.update(zip(names, kinds, strict=True))

    def change(self, depth: int) -> None:
        """A variable gets another value of its type, in place or not."""
        own = [name for name, kind in self.scope.variables.items() if self._is_ours(name, kind)]
        if not own:
            return self.assign(depth)
        name = self.rng.choice(own)
        kind = self.scope.variables[name]
        if self.maybe(0.5):
            ops = INTEGER_OPERATORS if kind in INTEGERS else FLOAT_OPERATORS
            return self.say(f"{name} {self.rng.choice(ops)}= {self.operand(kind, 1)}")
        return self.say(f"{name} = {self.expression(kind, 2)}")

    def _is_ours(self, name: str, kind: str) -> bool:
        return name.startswith("v") and kind != "bool"

    def branch(self, depth: int) -> None:
        self.say(f"if {self.condition(1)}:")
        self.block(self.rng.randint(1, 2), depth - 1)
        if self.maybe(0.3):
            self.say(f"elif {self.condition(1)}:")
            self.block(1, depth - 1)
        if self.maybe(0.5):
            self.say("else:")
            self.block(1, depth - 1)

    def join(self, depth: int) -> None:
        """A name that both branches make, with types that meet after them."""
        name, kind = self.fresh("v"), self.rng.choice(TYPES)
        left, right = self.rng.choice(PAIRS[kind])
        self.say(f"if {self.open_condition()}:")
        self.say(f"    {name} = {self.expression(left, 1)}")
        self.say("else:")
        literal = left == kind and self.maybe(0.4)
        value = random_literal(self.rng, kind) if literal else self.expression(right, 1)
        self.say(f"    {name} = {value}")
        self.scope.variables[name] = kind

    # -- loops -----------------------------------------------------------------------------------

    def count(self, depth: int) -> None:
        """A for loop that changes what was there before it."""
        span, counting, turns = self.span()
        if self.turns * turns > MOST_TURNS:
            return self.assign(depth)
        counter = self.fresh("n")
        self.say(f"for {counter} in {span}:")
        with self.scoped():
            self.scope.variables[counter] = counting
            self._turn(turns, depth)
        return None

    def repeat(self, depth: int) -> None:
        """A while loop whose own counter ends it."""
        if self.turns * 8 > MOST_TURNS:
            return self.assign(depth)
        counter, most = self.fresh("n"), self.rng.randint(0, 8)
        self.say(f"{counter} = s32(0)")
        extra = f" and {self.condition(1)}" if self.maybe(0.6) else ""
        self.say(f"while {counter} < {most}{extra}:")
        self.say(f"    {counter} += 1")
        with self.scoped():
            self.scope.variables[counter] = "s32"
            self._turn(most, depth)
        self.scope.variables[counter] = "s32"
        return None

    def go_through(self, depth: int) -> None:
        """A loop over a tuple, alone or counted."""
        kind, turns = self.rng.choice(TYPES), self.rng.randint(1, 3)
        if self.turns * turns > MOST_TURNS:
            return self.assign(depth)
        items = ", ".join(self.expression(kind, 1) for _ in range(turns))
        # Not an `n…`: these are indices.
        name, counter = self.fresh("w"), self.fresh("m")
        if self.maybe(0.3):
            self.say(f"for {counter}, {name} in enumerate(({items},)):")
        else:
            self.say(f"for {name} in ({items},):")
        with self.scoped():
            self.scope.variables[name] = kind
            self._turn(turns, depth)
        return None

    def _turn(self, turns: int, depth: int) -> None:
        self.turns *= max(1, turns)
        if self.maybe(0.4):
            self.say(f"    if {self.condition(1)}:")
            leave = ["break", "continue"]
            if self.returned:
                leave.append(f"return {self._values(1)}")
            self.say(f"        {self.rng.choice(leave)}")
        self.block(self.rng.randint(1, 2), depth - 1)
        self.turns //= max(1, turns)

    def gather(self, depth: int) -> None:
        """A literal that a loop turns into a value of whatever type it adds."""
        span, counting, turns = self.span()
        if self.turns * turns > MOST_TURNS:
            return self.assign(depth)
        name, counter, kind = self.fresh("v"), self.fresh("n"), self.rng.choice(TYPES)
        first = self.rng.choice(["0", "1", "0.0"])
        self.say(f"{name} = {first}")
        self.say(f"for {counter} in {span}:")
        self.turns *= max(1, turns)
        with self.scoped():
            self.scope.variables[counter] = counting
            added = self.expression(kind, 1)
            numbers = [item for item in self.scope.buffers if item.kind != "bool"]
            if numbers and self.maybe(0.5):
                buffer = self.rng.choice(numbers)
                added, kind = self.read(buffer, 0), buffer.kind
        self.turns //= max(1, turns)
        op = self.rng.choice(["+", "-", "*"])
        self.say(f"    {name} {op}= {added}")
        if first == "0.0" and kind in INTEGERS:
            kind = "f64" if kind in WIDE else "f32"
        self.scope.variables[name] = kind
        return None


def _random_shape(rng: Random, rank: int) -> tuple[int, ...]:
    while True:
        shape = tuple(rng.choice(SIZES) for _ in range(rank))
        count = 1
        for size in shape:
            count *= size
        if count <= MOST_ELEMENTS and (count or rng.random() < 0.3):
            return shape
