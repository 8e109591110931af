"""Random expressions of vectors and matrices, and statements that keep them in variables."""

from reference.random_expressions import FLOATS, Expressions, Writer
from reference.random_values import random_array

LETTERS = "xyzw"
OPERATORS = ["+", "-", "*", "*", "/", "%"]


class Vectors(Expressions):
    """Writes vectors and matrices of floats; in a scope they are `vec3 f32` and `mat2 f64`."""

    def kinds(self, wanted: str) -> list[Writer]:
        more = [self.component, self.component, self.of_matrix] if wanted in FLOATS else []
        return [*super().kinds(wanted), *more]

    def statements(self, inside: bool) -> list:
        """What a statement may be, besides those of scalars."""
        return [self.assign_vector, *[self.change_vector] * (2 if inside else 1)]

    def parts_of(self, name: str, kind: str) -> list[tuple[str, str]]:
        """The scalars of a variable as expressions, each with its type."""
        shape, _, scalar = kind.partition(" ")
        if shape.startswith("vec"):
            return [(f"{name}.{letter}", scalar) for letter in LETTERS[: int(shape[3])]]
        if shape.startswith("mat"):
            size = range(int(shape[3]))
            return [(f"{name}[{i}, {j}]", scalar) for i in size for j in size]
        return [(name, kind)]

    # -- scalars ---------------------------------------------------------------------------------

    def component(self, wanted: str, depth: int) -> str:
        """A number that a vector is asked for."""
        size = self.rng.randint(2, 4)
        vector = self.vector(size, wanted, depth)
        chosen = self.rng.random()
        if chosen < 0.4:
            return f"({vector}).{self.rng.choice(LETTERS[:size])}"
        if chosen < 0.6:
            return f"(+{vector})[{self.place(size, depth)}]"  # bare, it might be an input
        if chosen < 0.7:
            return f"length({vector})"
        other = self.vector(size, wanted, depth - 1)
        way = self.rng.choice(["dot({}, {})", "({} @ {})", "distance({}, {})"])
        return way.format(vector, other)

    def of_matrix(self, wanted: str, depth: int) -> str:
        size = self.rng.choice([2, 2, 3, 4])
        matrix = self.matrix(size, wanted, depth)
        if self.maybe(0.2):
            return f"determinant({matrix})"
        if self.maybe(0.3):
            return f"({matrix})[{self.place(size, depth)}].{self.rng.choice(LETTERS[:size])}"
        return f"({matrix})[{self.place(size, depth)}, {self.place(size, depth)}]"

    def place(self, size: int, depth: int) -> str:
        """An index, constant or computed, which may be outside."""
        if self.maybe(0.5):
            return str(self.rng.randrange(-size, size))
        return self.expression("s32", depth - 1)

    # -- vectors ---------------------------------------------------------------------------------

    def vector(self, size: int, kind: str, depth: int) -> str:
        named = self.scope.named(f"vec{size} {kind}")
        if named and self.maybe(0.5):
            return self.rng.choice(named)
        if depth <= 0:
            return self.made_vector(size, kind, 0)
        ways = [self.made_vector, self.made_vector, self.combined, self.combined, self.scaled]
        ways += [self.mapped, self.chosen, self.swizzled, self.multiplied]
        return self.rng.choice(ways)(size, kind, depth - 1)

    def made_vector(self, size: int, kind: str, depth: int) -> str:
        if self.maybe(0.15):
            return f"vec{size}({self.expression(kind, depth)})"
        if size > 2 and self.maybe(0.15):
            return f"vec{size}({self.vector(size - 1, kind, depth)}, {self.operand(kind, depth)})"
        rest = [self.operand(kind, 0) for _ in range(size - 1)]
        return f"vec{size}({', '.join([self.expression(kind, depth), *rest])})"

    def combined(self, size: int, kind: str, depth: int) -> str:
        pair = self.vector(size, kind, depth), self.vector(size, kind, depth)
        name = self.rng.choice(["min", "max", "reflect", "cross"])
        if self.maybe(0.25) and (size == 3 or name != "cross"):
            return f"{name}({', '.join(pair)})"
        return f"({pair[0]} {self.rng.choice(OPERATORS)} {pair[1]})"

    def scaled(self, size: int, kind: str, depth: int) -> str:
        pair = [self.vector(size, kind, depth), self.operand(kind, depth)]
        self.rng.shuffle(pair)
        return f"({pair[0]} {self.rng.choice(OPERATORS)} {pair[1]})"

    def mapped(self, size: int, kind: str, depth: int) -> str:
        inner = self.vector(size, kind, depth)
        name = self.rng.choice(["abs", "-", "floor", "sqrt", "normalize", "clamp", "mix", "**"])
        if name == "mix":
            return f"mix({inner}, {self.vector(size, kind, depth)}, {self.operand(kind, 0)})"
        if name == "clamp":
            return f"clamp({inner}, {self.operand(kind, 0)}, {self.operand(kind, 0)})"
        return f"({inner} ** 3)" if name == "**" else f"({name}({inner}))"

    def chosen(self, size: int, kind: str, depth: int) -> str:
        sides = self.vector(size, kind, depth), self.vector(size, kind, depth)
        return f"({sides[0]} if {self.condition(0)} else {sides[1]})"

    def swizzled(self, size: int, kind: str, depth: int) -> str:
        whole = self.rng.randint(2, 4)
        letters = self.rng.choice([LETTERS, "rgba"])
        taken = "".join(self.rng.choice(letters[:whole]) for _ in range(size))
        return f"({self.vector(whole, kind, depth)}).{taken}"

    def multiplied(self, size: int, kind: str, depth: int) -> str:
        pair = [self.matrix(size, kind, depth), self.vector(size, kind, depth)]
        self.rng.shuffle(pair)
        return f"({pair[0]} @ {pair[1]})"

    # -- matrices --------------------------------------------------------------------------------

    def matrix(self, size: int, kind: str, depth: int) -> str:
        named = self.scope.named(f"mat{size} {kind}")
        if named and self.maybe(0.7):
            return self.rng.choice(named)
        rows = ", ".join(self.vector(size, kind, min(depth, 0)) for _ in range(size))
        made = f"mat{size}({rows})"
        if depth <= 0:
            return made
        other = self.matrix(size, kind, depth - 1)
        ways = [f"({made} @ {other})", f"({made} + {other})", f"transpose({other})"]
        ways += [f"({other}).T", f"({other} * {self.operand(kind, 0)})"]
        ways += [f"({made} - identity({size}) * {self.expression(kind, 0)})"]
        if size < 4:
            ways.append(f"inverse({other})")
        return self.rng.choice(ways)

    # -- statements ------------------------------------------------------------------------------

    def assign_vector(self, depth: int) -> None:
        kind, size = self.rng.choice(FLOATS), self.rng.randint(2, 4)
        name = self.fresh("e")
        if size < 4 and self.maybe(0.3):
            self.say(f"{name} = {self.matrix(size, kind, 1)}")
            self.scope.variables[name] = f"mat{size} {kind}"
            return
        self.say(f"{name} = {self.vector(size, kind, 2)}")
        self.scope.variables[name] = f"vec{size} {kind}"

    def change_vector(self, depth: int) -> None:
        known = [name for name, kind in self.scope.variables.items() if kind[:3] in ("vec", "mat")]
        own = [name for name in known if name.startswith("e")]
        if not own:
            self.assign_vector(depth)
            return
        name = self.rng.choice(own)
        shape, kind = self.scope.variables[name].split()
        made = self.matrix if shape.startswith("mat") else self.vector
        op = self.rng.choice(["=", "=", "+=", "-=", "*="])
        self.say(f"{name} {op} {made(int(shape[3]), kind, 1)}")

    def add_vector_parameter(self) -> None:
        size = self.rng.randint(2, 4)
        if size < 4 and self.maybe(0.5):
            shape, mark = (size, size), f"mat{size}"
        else:
            shape, mark = (size,), f"vec{size}"
        self.params["p"] = random_array(self.rng, "f32", shape)
        self.arguments.append(f"p: {mark}")
        self.scope.variables["p"] = f"{mark} f32"
