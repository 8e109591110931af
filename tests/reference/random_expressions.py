"""Random expressions of a wanted type: they keep the books on types as the language does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from dala.ir.types import DTYPES, promote
from reference.random_values import random_literal

TYPES = ["f32", "f64", "s32", "s64", "u32", "u8", "s8", "s16", "u16", "u64"]
FLOATS, INTEGERS = TYPES[:2], TYPES[2:]
NARROW = [name for name in INTEGERS if DTYPES[name].bits < 64]
WIDE = ["s64", "u64"]
STORED = [*TYPES, "f16", "bool"]
"""What buffers hold; f16 is computed with as f32."""
PAIRS = {
    wanted: [
        (a, b)
        for a in TYPES
        for b in TYPES
        if (met := promote(DTYPES[a], DTYPES[b])) is not None and met.name == wanted
    ]
    for wanted in TYPES
}
"""The types that meet in each type."""
FLOAT_OPERATORS = ["+", "-", "*", "/", "//", "%"]
INTEGER_OPERATORS = ["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"]
COMPARISONS = ["<", "<=", ">", ">=", "==", "!="]
SAME_WIDTH = {"f32": ["s32", "u32"], "s32": ["f32", "u32"], "u32": ["f32", "s32"]}
SAME_WIDTH |= {"f64": WIDE, "s64": ["f64", "u64"], "u64": ["f64", "s64"]}
SAME_WIDTH |= {"u8": ["s8"], "s8": ["u8"], "u16": ["s16"], "s16": ["u16"]}
ROUNDINGS = ["floor", "ceil", "trunc", "round"]
LIGHT = ["exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "tanh"]
LIGHT += ["sigmoid", "sinh", "cosh", "cbrt", "hypot"]
HEAVY = ["erf", "erfc", "pow", "atan2", "asinh", "acosh", "atanh", "fmod", "ldexp"]
BITWISE = ["popcount", "clz", "reverse_bits"]
SUMMED = {"s32": ["s32", "bool", "s8", "s16"], "u32": ["u32", "u8", "u16"]}
SUMMED |= {"s64": ["s64"], "u64": ["u64"]}
"""What may be added up to give each type."""
MOST_TURNS = 300
Writer = Callable[[str, int], str]


@dataclass(frozen=True)
class Buffer:
    """An input: `own` says whether it has the domain's shape and may be read without an index."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    own: bool

    @property
    def kind(self) -> str:
        """The type of its elements in a kernel."""
        return "f32" if self.dtype == "f16" else self.dtype


@dataclass
class Scope:
    """What the next expression may name."""

    variables: dict[str, str] = field(default_factory=dict)
    buffers: list[Buffer] = field(default_factory=list)
    positions: list[str] = field(default_factory=list)
    bounds: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Names of small integers, with their type and their largest value."""

    def named(self, wanted: str) -> list[str]:
        own = [item.name for item in self.buffers if item.own and item.kind == wanted]
        places = self.positions if wanted == "s32" else []
        made = [name for name, kind in self.variables.items() if kind == wanted]
        return [*reversed(made), *own, *places]


class Expressions:
    """Writes expressions; each has exactly the type that is asked for, unless it is a literal."""

    def __init__(self, rng: Random, scope: Scope) -> None:
        self.rng = rng
        self.scope = scope
        self.maths_left = 2
        self.turns = 1
        self.counters = 0

    def maybe(self, chance: float) -> bool:
        return self.rng.random() < chance

    def fresh(self, prefix: str) -> str:
        self.counters += 1
        return f"{prefix}{self.counters}"

    @contextmanager
    def scoped(self) -> Iterator[None]:
        """Names made inside are forgotten afterwards."""
        before = dict(self.scope.variables)
        yield
        self.scope.variables = before

    # -- leaves ----------------------------------------------------------------------------------

    def leaf(self, wanted: str) -> str:
        names = self.scope.named(wanted)
        if wanted == "bool":
            return self.rng.choice(names) if names else self.compare(0)
        readable = [item for item in self.scope.buffers if item.kind == wanted]
        if readable and self.turns > 1 and self.maybe(0.5):
            return self.read(self.rng.choice(readable), 0)
        if names and self.maybe(0.7):
            return self.rng.choice(names[: self.rng.randint(1, len(names))])
        if readable and self.maybe(0.7):
            return self.read(self.rng.choice(readable), 0)
        others = [kind for kind in TYPES if kind != wanted and self.scope.named(kind)]
        if others and self.maybe(0.8):
            return f"{wanted}({self.rng.choice(self.scope.named(self.rng.choice(others)))})"
        return f"{wanted}({random_literal(self.rng, wanted)})"

    def read(self, buffer: Buffer, depth: int) -> str:
        return f"{buffer.name}[{', '.join(self.index(axis, depth) for axis in buffer.shape)}]"

    def index(self, size: int, depth: int) -> str:
        places = self.scope.positions
        counters = [name for name in self.scope.variables if name.startswith("n")]
        chosen = self.rng.random()
        if counters and chosen < 0.5:
            counter = self.rng.choice(counters)
            near = [f"{place} + {counter}" for place in places]
            return self.rng.choice([counter, counter, f"{counter} - 1", *near])
        if places and chosen < 0.6:
            offsets = ["", "", " + 1", " - 1", " + 2", " - 3", f" - {size}", " + 40"]
            return f"{self.rng.choice(places)}{self.rng.choice(offsets)}"
        if chosen < 0.7:
            return str(self.rng.choice([0, 1, size - 1, size, 1000]))
        return self.expression(self.rng.choice(INTEGERS), depth - 1)

    def size(self) -> str:
        buffer = self.rng.choice(self.scope.buffers)
        axis = self.rng.randrange(len(buffer.shape))
        return (
            f"len({buffer.name})"
            if axis == 0 and self.maybe(0.2)
            else f"{buffer.name}.shape[{axis}]"
        )

    # -- expressions -----------------------------------------------------------------------------

    def expression(self, wanted: str, depth: int) -> str:
        """An expression of the wanted type: one of `TYPES`, or bool."""
        if wanted == "bool":
            return self.condition(depth)
        if depth <= 0:
            return self.leaf(wanted)
        return self.rng.choice(self.kinds(wanted))(wanted, depth - 1)

    def kinds(self, wanted: str) -> list[Writer]:
        """What an expression of the wanted type may be made by; more often what is there twice."""
        kinds = [self.arithmetic] * 8 + [self.choice] * 2 + [self.conversion] * 2 + [self.unary] * 2
        kinds += [self.extremum, self.leaf_below, self.reinterpreted, self.reduction, self.picked]
        kinds += [self.drawn]
        if wanted in FLOATS:
            kinds += [self.rounding, self.quotient, self.blended, *[self.maths] * 5, self.power]
        else:
            kinds += [self.truncated]
        return kinds

    def leaf_below(self, wanted: str, depth: int) -> str:
        if wanted == "s32" and self.scope.buffers and self.maybe(0.3):
            return self.size()
        readable = [item for item in self.scope.buffers if item.kind == wanted]
        return self.read(self.rng.choice(readable), depth) if readable else self.leaf(wanted)

    def operand(self, wanted: str, depth: int) -> str:
        """What may stand beside a value of the wanted type without changing it."""
        if self.maybe(0.25):
            return random_literal(self.rng, wanted)
        if self.maybe(0.06):
            low = self.rng.randint(0, 9)
            return f"({low} if {self.condition(depth)} else {self.rng.randint(0, 99)})"
        return self.expression(wanted, depth)

    def arithmetic(self, wanted: str, depth: int) -> str:
        op = self.rng.choice(FLOAT_OPERATORS if wanted in FLOATS else INTEGER_OPERATORS)
        if self.maybe(0.3):
            left, right = self.rng.choice(PAIRS[wanted])
            return f"({self.expression(left, depth)} {op} {self.expression(right, depth)})"
        pair = [self.expression(wanted, depth), self.operand(wanted, depth)]
        if self.maybe(0.3):
            pair.reverse()
        return f"({pair[0]} {op} {pair[1]})"

    def quotient(self, wanted: str, depth: int) -> str:
        """Integers divided with `/`, or beside a literal that is a float."""
        wholes = WIDE if wanted == "f64" else NARROW
        kind = self.rng.choice(wholes)
        if self.maybe(0.4):
            op = self.rng.choice(FLOAT_OPERATORS)
            return (
                f"({self.expression(kind, depth)} {op} {self.rng.choice(['0.5', '3.0', '1e10'])})"
            )
        return f"({self.expression(kind, depth)} / {self.operand(kind, depth)})"

    def drawn(self, wanted: str, depth: int) -> str:
        """A random number: whatever the seed and the counters, the same one everywhere."""
        seed = self.expression(self.rng.choice(INTEGERS), depth - 1)
        counters = [self.leaf(self.rng.choice(NARROW))]
        counters += ["0", "7"][: self.rng.randint(0, 2)]
        given = ", ".join([seed, *counters])
        if wanted == "f32":
            return f"random({given})"
        if wanted in NARROW:
            low, high = self.expression(wanted, depth - 1), self.leaf(wanted)
            return f"random_int({low}, {high}, {given})"
        return f"{wanted}(random_bits({given})[{self.rng.randint(0, 3)}])"

    def unary(self, wanted: str, depth: int) -> str:
        signs = ["-", "+", "abs", "sign"] + ([] if wanted in FLOATS else ["~", *BITWISE])
        sign = self.rng.choice(signs)
        inner = self.expression(wanted, depth)
        return f"{sign}({inner})" if len(sign) > 1 else f"({sign}{inner})"

    def choice(self, wanted: str, depth: int) -> str:
        """A conditional expression; where folding might decide it, both sides have the type."""
        if self.scope.buffers and self.maybe(0.4):
            sides = [self.expression(wanted, depth), self.operand(wanted, depth)]
            self.rng.shuffle(sides)
            return f"({sides[0]} if {self.open_condition()} else {sides[1]})"
        then, otherwise = self.expression(wanted, depth), self.expression(wanted, depth)
        return f"({then} if {self.condition(depth)} else {otherwise})"

    def picked(self, wanted: str, depth: int) -> str:
        """An item of a tuple, by an index that may be outside of it."""
        items = ", ".join(self.expression(wanted, depth - 1) for _ in range(3))
        at = str(self.rng.randint(-3, 2)) if self.maybe(0.3) else self.expression("s32", depth - 1)
        return f"({items})[{at}]"

    def conversion(self, wanted: str, depth: int) -> str:
        if wanted == "f32" and self.maybe(0.2):
            return f"float({self.expression(self.rng.choice(INTEGERS), depth)})"
        return f"{wanted}({self.expression(self.rng.choice([*TYPES, *FLOATS, 'bool']), depth)})"

    def truncated(self, wanted: str, depth: int) -> str:
        converted = (
            f"{self.rng.choice(ROUNDINGS)}({self.expression(self.rng.choice(FLOATS), depth)})"
        )
        if wanted == "s32" and self.maybe(0.5):
            return f"int({self.expression(self.rng.choice(FLOATS), depth)})"
        return f"{wanted}({converted})"

    def extremum(self, wanted: str, depth: int) -> str:
        inner = self.expression(wanted, depth)
        if self.maybe(0.4):
            return f"clamp({inner}, {self.operand(wanted, depth)}, {self.operand(wanted, depth)})"
        more = [self.operand(wanted, depth) for _ in range(self.rng.randint(1, 2))]
        return f"{self.rng.choice(['min', 'max'])}({', '.join([inner, *more])})"

    def reinterpreted(self, wanted: str, depth: int) -> str:
        """The same bits as another type; the bits of a NaN are nobody's promise."""
        if wanted not in SAME_WIDTH:
            return self.leaf(wanted)
        kind = self.rng.choice(SAME_WIDTH[wanted])
        if kind in FLOATS:
            name = self.leaf(kind)
            return f"bits({name} if {name} == {name} else 0.0, {wanted})"
        return f"bits({self.expression(kind, depth)}, {wanted})"

    def rounding(self, wanted: str, depth: int) -> str:
        name = self.rng.choice([*ROUNDINGS, "fract", "sqrt", "rsqrt"])
        return f"{name}({self.expression(wanted, depth)})"

    def blended(self, wanted: str, depth: int) -> str:
        name = self.rng.choice(["mix", "smoothstep", "step"])
        parts = [self.operand(wanted, depth) for _ in range(1 if name == "step" else 2)]
        return f"{name}({', '.join([*parts, self.expression(wanted, depth)])})"

    def maths(self, wanted: str, depth: int) -> str:
        if self.maths_left <= 0 or self.turns > 40:
            return self.arithmetic(wanted, depth)
        name = self.rng.choice([*LIGHT, *HEAVY, *HEAVY])
        self.maths_left -= 2 if name in HEAVY else 1
        wholes = WIDE if wanted == "f64" else NARROW
        kind = self.rng.choice(wholes) if self.maybe(0.15) else wanted
        inner = self.expression(kind, depth)
        if name == "ldexp":
            inner += f", {self.expression(self.rng.choice(INTEGERS), depth - 1)}"
        if name in ("pow", "atan2", "hypot", "fmod"):
            inner += f", {self.operand(wanted, depth) if kind == wanted else self.leaf(wanted)}"
        return f"{name}({inner})"

    def power(self, wanted: str, depth: int) -> str:
        return f"({self.expression(wanted, depth)} ** {self.rng.randint(1, 6)})"

    # -- conditions ------------------------------------------------------------------------------

    def condition(self, depth: int) -> str:
        if depth > 0 and self.maybe(0.3):
            joined = [self.condition(depth - 1) for _ in range(self.rng.randint(2, 3))]
            word = self.rng.choice([" and ", " or "])
            return f"({word.join(joined)})"
        if depth > 0 and self.maybe(0.15):
            return f"(not {self.condition(depth - 1)})"
        if depth > 0 and self.maybe(0.1):
            return self.quantified()
        if self.maybe(0.1):
            test = self.rng.choice(["isnan", "isinf"])
            return f"{test}({self.expression(self.rng.choice(FLOATS), depth - 1)})"
        flags = self.scope.named("bool")
        return self.rng.choice(flags) if flags and self.maybe(0.3) else self.compare(depth)

    def quantified(self) -> str:
        """`any` or `all`, over a range or a tuple."""
        name, counter = self.rng.choice(["any", "all"]), self.fresh("q")
        kind = self.rng.choice(TYPES)
        over, held, turns = f"({self.leaf(kind)}, {self.leaf(kind)})", kind, 2
        if self.maybe(0.5):
            over, held, turns = "range(3)", "s32", 3
        if self.turns * turns > MOST_TURNS:
            return self.compare(0)
        with self.scoped():
            self.scope.variables[counter] = held
            return f"{name}({self.compare(0)} for {counter} in {over})"

    def open_condition(self) -> str:
        """A condition that only a run can decide: which types meet depends on it."""
        buffer = self.rng.choice(self.scope.buffers)
        if buffer.kind == "bool":
            return self.read(buffer, 0)
        limit = random_literal(self.rng, buffer.kind)
        return f"({self.read(buffer, 0)} {self.rng.choice(COMPARISONS)} {limit})"

    def compare(self, depth: int) -> str:
        kind = self.rng.choice(TYPES)
        if self.maybe(0.15):
            parts = [self.expression(kind, depth - 1), self.expression(kind, 0), self.leaf(kind)]
            ops = [self.rng.choice(COMPARISONS) for _ in range(2)]
            return f"({parts[0]} {ops[0]} {parts[1]} {ops[1]} {parts[2]})"
        if self.maybe(0.3):
            left, right = self.rng.choice(PAIRS[kind])
            pair = [self.expression(left, depth - 1), self.expression(right, depth - 1)]
        else:
            pair = [self.expression(kind, depth - 1), self.operand(kind, depth - 1)]
        return f"({pair[0]} {self.rng.choice(COMPARISONS)} {pair[1]})"

    # -- counting --------------------------------------------------------------------------------

    def span(self) -> tuple[str, str, int]:
        """A range as text, the type of its counter, and how many turns it takes at most."""
        named = self.rng.choice([*self.scope.bounds, None, None, None])
        if named is not None:
            kind, most = self.scope.bounds[named]
            counter = "s64" if kind in ("u32", *WIDE) else "s32"
            start = self.rng.choice(["", "1, ", "-1, "])
            return f"range({start}{named})", counter, most + 1
        chosen = self.rng.random()
        if chosen < 0.25 and self.scope.buffers:
            buffer = self.rng.choice(self.scope.buffers)
            axis = self.rng.randrange(len(buffer.shape))
            return f"range({buffer.name}.shape[{axis}])", "s32", buffer.shape[axis]
        if chosen < 0.6:
            varying = [*self.scope.named("s32"), f"s32({self.leaf(self.rng.choice(TYPES))})"]
            bounded = f"clamp({self.rng.choice(varying)}, {self.rng.randint(-1, 1)}, 4)"
            return f"range({bounded})", "s32", 4
        start, turns, step = (
            self.rng.randint(-3, 3),
            self.rng.randint(0, 5),
            self.rng.choice([1, 2, -1]),
        )
        return f"range({start}, {start + turns * step}, {step})", "s32", turns

    def reduction(self, wanted: str, depth: int) -> str:
        op = self.rng.choice(["min", "max", "sum"])
        if op == "sum" and wanted not in SUMMED:
            op = "min"
        kind = self.rng.choice(SUMMED[wanted]) if op == "sum" else wanted
        span, counting, turns = self.span()
        while span.endswith((", 2)", ", -1)")):
            span, counting, turns = self.span()
        if self.turns * turns > MOST_TURNS:
            return self.leaf(wanted)
        counter = self.fresh("n")
        self.turns *= max(1, turns)
        with self.scoped():
            self.scope.variables[counter] = counting
            test = f" if {self.condition(0)}" if self.maybe(0.2) else ""
            readable = [item for item in self.scope.buffers if item.kind == kind]
            if readable and self.maybe(0.5):
                term = self.read(self.rng.choice(readable), 0)
            else:
                term = self.expression(kind, min(depth, 1))
        self.turns //= max(1, turns)
        return f"{op}({term} for {counter} in {span}{test})"
