"""Random named tuples: made, read by field, changed, and passed through a function."""

from reference.random_expressions import FLOATS, TYPES, Expressions, Writer

CLASS, CHANGE = "Made", "changed_by"


class Structs(Expressions):
    """Writes one class of named tuples for each kernel; in a scope they are `struct`."""

    fields: dict[str, str] | None = None

    def kinds(self, wanted: str) -> list[Writer]:
        there = self.fields is not None and wanted in self.fields.values()
        there = there and bool(self.scope.named("struct"))
        return [*super().kinds(wanted), *[self.field] * (3 * there)]

    def statements(self, inside: bool) -> list:
        return [*super().statements(inside), *[self.change_struct] * (2 if inside else 1)]

    def parts_of(self, name: str, kind: str) -> list[tuple[str, str]]:
        if kind != "struct":
            return super().parts_of(name, kind)
        fields = (self.fields or {}).items()
        return [part for field, own in fields for part in self.parts_of(f"{name}.{field}", own)]

    def definitions(self) -> str:
        """The class of the kernel, and the function that changes one of its fields."""
        if self.fields is None:
            return ""
        lines = [f"class {CLASS}(NamedTuple):"]
        lines += [f"    {name}: {kind.split()[0]}" for name, kind in self.fields.items()]
        first = next(iter(self.fields))
        lines += ["", "@function", f"def {CHANGE}(given: {CLASS}, value):"]
        lines += [f"    return given._replace({first}=value)", "", ""]
        return "\n".join(lines)

    def field(self, wanted: str, depth: int) -> str:
        assert self.fields is not None
        names = [name for name, kind in self.fields.items() if kind == wanted]
        return f"{self.rng.choice(self.scope.named('struct'))}.{self.rng.choice(names)}"

    def _value(self, kind: str, depth: int) -> str:
        shape, _, scalar = kind.partition(" ")
        if scalar:
            return self.vector(int(shape[3]), scalar, depth)
        return self.expression(kind, depth)

    def change_struct(self, depth: int) -> None:
        """A named tuple is made, or one of its fields is another from now on."""
        if self.fields is None:
            kinds = [*TYPES, "bool", *[f"vec{n} {kind}" for n in (2, 3) for kind in FLOATS]]
            count = self.rng.randint(1, 4)
            self.fields = {f"f{i}": self.rng.choice(kinds) for i in range(count)}
        own = self.scope.named("struct")
        if not own or self.maybe(0.3):
            name = self.fresh("r")
            values = [f"{field}={self._value(kind, 1)}" for field, kind in self.fields.items()]
            self.rng.shuffle(values)
            self.say(f"{name} = {CLASS}({', '.join(values)})")
            self.scope.variables[name] = "struct"
            return
        name, field = self.rng.choice(own), self.rng.choice(list(self.fields))
        value = self._value(self.fields[field], 2)
        if field == "f0" and self.maybe(0.5):
            self.say(f"{name} = {CHANGE}({name}, {value})")
        else:
            self.say(f"{name} = {name}._replace({field}={value})")
