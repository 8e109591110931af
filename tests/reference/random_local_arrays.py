"""Random local arrays: written and read at constant and computed places."""

from reference.random_expressions import TYPES, Expressions, Writer


class LocalArrays(Expressions):
    """Writes arrays of a position's own; in a scope they are `local3 s32`."""

    def kinds(self, wanted: str) -> list[Writer]:
        there = any(self._is_local(kind, wanted) for kind in self.scope.variables.values())
        return [*super().kinds(wanted), *[self.element] * (3 * there)]

    def statements(self, inside: bool) -> list:
        return [*super().statements(inside), *[self.write_element] * (2 if inside else 1)]

    def parts_of(self, name: str, kind: str) -> list[tuple[str, str]]:
        if not kind.startswith("local"):
            return super().parts_of(name, kind)
        count, scalar = kind.removeprefix("local").split()
        return [(f"{name}[{i}]", scalar) for i in range(int(count))]

    def _is_local(self, kind: str, wanted: str) -> bool:
        return kind.startswith("local") and kind.endswith(f" {wanted}")

    def element(self, wanted: str, depth: int) -> str:
        variables = self.scope.variables.items()
        names = [name for name, kind in variables if self._is_local(kind, wanted)]
        name = self.rng.choice(names)
        return f"{name}[{self.place_in(self.scope.variables[name], depth)}]"

    def place_in(self, kind: str, depth: int) -> str:
        count = int(kind.removeprefix("local").split()[0])
        if self.maybe(0.4):
            return str(self.rng.randrange(-count, count))
        return self.expression(self.rng.choice(["s32", "s64", "u32", "u8"]), depth - 1)

    def write_element(self, depth: int) -> None:
        """An element gets another value; where there is no array, one is made."""
        own = [name for name, kind in self.scope.variables.items() if kind.startswith("local")]
        if not own or self.maybe(0.2):
            kind, count = self.rng.choice([*TYPES, "bool"]), self.rng.randint(1, 5)
            name = self.fresh("h")
            self.say(f"{name} = local({count}, {kind})")
            self.scope.variables[name] = f"local{count} {kind}"
        else:
            name = self.rng.choice(own)
        kind = self.scope.variables[name].split()[1]
        value = self.expression(kind, 1)
        self.say(f"{name}[{self.place_in(self.scope.variables[name], 1)}] = {value}")
