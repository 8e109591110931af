"""Random kernels over images: pixels as a whole, their channels, and their neighbours."""

from random import Random

from reference.case import Case
from reference.random_expressions import Expressions, Scope
from reference.random_values import random_array

SIZES = [(1, 1), (1, 17), (3, 5), (7, 33), (17, 1), (9, 65), (0, 4)]


def random_image_kernel(rng: Random, name: str, border: str) -> Case:
    """A case whose kernel reads an image or two and returns pixels."""
    return _ImageKernel(rng, name, border).case()


class _ImageKernel(Expressions):
    """Writes the statements of one kernel; scalars are f32, or s32 where they count."""

    def __init__(self, rng: Random, name: str, border: str) -> None:
        super().__init__(rng, Scope(positions=["y", "x"]))
        self.name, self.border = name, border
        self.size_ = rng.choice(SIZES)
        self.images = ["image", "other"][: rng.choice([1, 1, 2])]
        self.pixels = [f"{item}.pixel" for item in self.images]
        self.lines = ["    y, x = position(2)"]

    def case(self) -> Case:
        for _ in range(self.rng.randint(1, 4)):
            self.statement()
        self.lines.append(f"    return {self.pixel(2)}")
        head = ", ".join([*(f"{item}: Image" for item in self.images), "gain: f32 = 1.0"])
        source = f"def {self.name}({head}):\n" + "\n".join(self.lines) + "\n"
        arrays = tuple(random_array(self.rng, *self._stored()) for _ in self.images)
        dtype, shape = self._stored()
        params = {"gain": self.rng.choice([0.0, 0.5, 1.5, -2.0, 1e30])}
        return Case(source, arrays, shape, dtype, params, {}, self.border)

    def _stored(self) -> tuple[str, tuple[int, ...]]:
        channels = self.rng.choice([(), (3,), (4,)])
        return self.rng.choice(["u8", "f32", "u16", "f16"]), (*self.size_, *channels)

    # -- expressions -----------------------------------------------------------------------------

    def leaf(self, wanted: str) -> str:
        if wanted != "f32" or self.maybe(0.3):
            return super().leaf(wanted)
        if self.maybe(0.3):
            return self.rng.choice(["gain", f"luma({self.rng.choice(self.pixels)})"])
        return f"{self.rng.choice(self.pixels)}{self.rng.choice(['.r', '.g', '.b', '.a', '[1]'])}"

    def pixel(self, depth: int) -> str:
        if depth <= 0:
            return self.rng.choice(self.pixels)
        kinds = [self.neighbour, self.neighbour, self.combined, self.combined, self.scaled]
        kinds += [self.made, self.chosen, self.mapped]
        return self.rng.choice(kinds)(depth - 1)

    def neighbour(self, depth: int) -> str:
        down, right = self.rng.randint(-3, 3), self.rng.randint(-3, 3)
        if self.maybe(0.2):
            return f"{self.rng.choice(self.images)}[{self.index(5, 1)}, {self.index(9, 1)}]"
        return f"{self.rng.choice(self.images)}[y + {down}, x + {right}]"

    def combined(self, depth: int) -> str:
        left, right = self.pixel(depth), self.pixel(depth)
        if self.maybe(0.3):
            return f"{self.rng.choice(['min', 'max'])}({left}, {right})"
        return f"({left} {self.rng.choice('+-*/')} {right})"

    def scaled(self, depth: int) -> str:
        pair = [self.pixel(depth), self.operand("f32", 1)]
        self.rng.shuffle(pair)
        return f"({pair[0]} {self.rng.choice('+-*')} {pair[1]})"

    def made(self, depth: int) -> str:
        channels = [self.expression("f32", 1) for _ in range(self.rng.choice([3, 4]))]
        return f"rgba({', '.join(channels)})"

    def chosen(self, depth: int) -> str:
        return f"({self.pixel(depth)} if {self.condition(1)} else {self.pixel(depth)})"

    def mapped(self, depth: int) -> str:
        inner = self.pixel(depth)
        name = self.rng.choice(["abs", "sqrt", "floor", "clamp", "mix", "smoothstep", "exp"])
        if name == "clamp":
            return f"clamp({inner}, 0.0, {self.operand('f32', 0)})"
        if name == "mix":
            return f"mix({inner}, {self.pixel(depth)}, {self.operand('f32', 0)})"
        return f"smoothstep(0.1, 0.9, {inner})" if name == "smoothstep" else f"{name}({inner})"

    # -- statements ------------------------------------------------------------------------------

    def statement(self) -> None:
        name = self.fresh("p")
        chosen = self.rng.random()
        if chosen < 0.4:
            self.lines.append(f"    {name} = {self.pixel(2)}")
        elif chosen < 0.6:
            self.lines.append(f"    if {self.condition(1)}:")
            self.lines.append(f"        {name} = {self.pixel(1)}")
            self.lines.append(f"    else:\n        {name} = {self.pixel(1)}")
        elif chosen < 0.8:
            self.lines.append(f"    {name} = {self.pixel(1)}")
            self.lines.append("    for n in range(-1, 2):")
            self.lines.append(f"        {name} += {self.rng.choice(self.images)}[y, x + n] * 0.25")
        else:
            scalar = self.fresh("v")
            self.lines.append(f"    {scalar} = {self.expression('f32', 2)}")
            self.scope.variables[scalar] = "f32"
            return
        self.pixels.append(name)
