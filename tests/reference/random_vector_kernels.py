"""Random kernels over buffers of vectors, which return vectors."""

from random import Random

from reference.case import Case
from reference.random_expressions import Scope
from reference.random_values import random_array
from reference.random_vectors import Vectors

SIZES = [(1,), (5,), (17,), (66,), (3, 5), (7, 33), (0, 4), (2, 3, 9)]


def random_vector_kernel(rng: Random, name: str, border: str) -> Case:
    """A case whose kernel reads vectors of floats at and around its position."""
    return _VectorKernel(rng, name, border).case()


class _VectorKernel(Vectors):
    """Writes the statements of one kernel, all of whose floats are of one type."""

    def __init__(self, rng: Random, name: str, border: str) -> None:
        domain = rng.choice(SIZES)
        super().__init__(rng, Scope(positions=["i", "j", "k"][: len(domain)]))
        self.name, self.border, self.domain = name, border, domain
        self.kind = rng.choice(["f32", "f32", "f64"])
        self.params, self.arguments, self.lines = {}, [], []
        self.buffers = {item: rng.randint(2, 4) for item in "xyz"[: rng.randint(1, 3)]}

    def say(self, line: str) -> None:
        self.lines.append(f"    {line}")

    def vector(self, size: int, kind: str, depth: int) -> str:
        fitting = [name for name, own in self.buffers.items() if own == size and kind == self.kind]
        if fitting and self.maybe(0.5):
            return self._read(self.rng.choice(fitting))
        return super().vector(size, kind, depth)

    def _read(self, name: str) -> str:
        if self.maybe(0.5):
            return name
        offsets = [self.rng.choice(["", " + 1", " - 2", " + 40"]) for _ in self.domain]
        if self.maybe(0.2):
            return f"{name}[{', '.join(self.index(5, 1) for _ in self.domain)}]"
        pairs = zip(self.scope.positions, offsets, strict=True)
        return f"{name}[{', '.join(place + offset for place, offset in pairs)}]"

    def case(self) -> Case:
        places = ", ".join(self.scope.positions)
        self.say(f"({places},) = position({len(self.domain)})")
        for _ in range(self.rng.randint(0, 3)):
            self.rng.choice([self.assign_own, self.loop, self.branch])()
        size = self.rng.randint(2, 4)
        if self.maybe(0.3):
            self.say(f"for n in range({self.rng.randint(1, 3)}):")
            self.say(f"    if {self.condition(0)}:")
            self.say(f"        return {self.vector(size, self.kind, 1)}")
        self.say(f"return {self.vector(size, self.kind, 3)}")
        head = ", ".join(f"{name}: Array[vec{own}]" for name, own in self.buffers.items())
        body = "\n".join(self.lines)
        source = f"def {self.name}({head}) -> vec{size}:\n{body}\n"
        arrays = [self._array(i, own) for i, own in enumerate(self.buffers.values())]
        dtype = self.rng.choice([self.kind, self.kind, "s32", "u8"])
        return Case(source, tuple(arrays), (*self.domain, size), dtype, border=self.border)

    def _array(self, i: int, size: int):
        shape = self.domain
        if i > 0 and self.maybe(0.3):
            shape = tuple(self.rng.choice([1, extent]) for extent in shape)
        return random_array(self.rng, self.kind, (*shape, size))

    def assign_own(self) -> None:
        name, size = self.fresh("e"), self.rng.randint(2, 4)
        self.say(f"{name} = {self.vector(size, self.kind, 2)}")
        self.scope.variables[name] = f"vec{size} {self.kind}"

    def branch(self) -> None:
        name, size = self.fresh("e"), self.rng.randint(2, 4)
        self.say(f"if {self.condition(1)}:")
        self.say(f"    {name} = {self.vector(size, self.kind, 1)}")
        self.say("else:")
        self.say(f"    {name} = {self.vector(size, self.kind, 1)}")
        self.scope.variables[name] = f"vec{size} {self.kind}"

    def loop(self) -> None:
        self.assign_own()
        name = list(self.scope.variables)[-1]
        size = int(self.scope.variables[name][3])
        self.say(f"for n in range({self.rng.randint(1, 4)}):")
        self.say(f"    {name} {self.rng.choice('+-*')}= {self.vector(size, self.kind, 1)}")
