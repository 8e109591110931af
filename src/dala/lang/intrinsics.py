"""The intrinsic functions of the kernel language: their arguments and their lowering."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dala.ir.nodes import Apply, Value
from dala.ir.ops import CONVERT
from dala.ir.types import BOOL, DTYPES, F32, N16, S32
from dala.lang import (
    algebraic,
    hyperbolic,
    math_f32,
    math_f64,
    matrices,
    random_numbers,
    trigonometry_f32,
    trigonometry_f64,
    vectors,
)
from dala.lang.arithmetic import Mismatch
from dala.lang.language_names import ScalarMarker
from dala.lang.values import (
    Componentwise,
    Literal,
    Local,
    LoweredValue,
    Number,
    Pixel,
    Static,
    Tuple,
    describe,
)

if TYPE_CHECKING:
    from dala.lang.expressions import Expressions

Handler = Callable[..., LoweredValue]

_WRITTEN = {
    **vars(math_f32),
    **vars(math_f64),
    **vars(trigonometry_f32),
    **vars(trigonometry_f64),
    **vars(hyperbolic),
    **vars(algebraic),
}


def call_intrinsic(lower: Expressions, name: str, args: list[LoweredValue]) -> LoweredValue:
    """Lowers a call of an intrinsic; raises Mismatch if its arguments do not fit."""
    handler, arities = _HANDLERS[name]
    if len(args) not in arities:
        takes = " or ".join(map(str, arities))
        if len(arities) > 3:
            most = "or more" if arities is _MANY else f"to {arities[-1]}"
            takes = f"{arities[0]} {most}"
        raise Mismatch(
            f"dala.{name} takes {takes} argument{'s' * (arities != (1,))}, not {len(args)}.",
            f"See help(dala.{name}).",
        )
    if name not in _PLAIN and any(isinstance(arg, Componentwise) for arg in args):
        return lower.arithmetic.by_component(lambda *parts: handler(lower, *parts), *args)
    return handler(lower, *args)


# -- places ----------------------------------------------------------------------------------------


def _count(lowered: LoweredValue, name: str) -> int:
    if isinstance(lowered, Literal) and type(lowered.value) is int and 1 <= lowered.value <= 8:
        return lowered.value
    raise Mismatch(
        f"dala.{name} takes the number of axes, 1 to 8, not {describe(lowered)}.",
        f"Write e.g. `y, x = dala.{name}(2)`.",
    )


def _position(lower: Expressions, count: LoweredValue) -> LoweredValue:
    rank = _count(count, "position")
    lower.require_rank(rank, "position")
    return Tuple(tuple(Number(lower.build.position(axis)) for axis in range(rank)))


def _shape(lower: Expressions, count: LoweredValue) -> LoweredValue:
    rank = _count(count, "shape")
    lower.require_rank(rank, "shape")
    return lower.extents(lower.domain.source, rank)


def _rgba(lower: Expressions, *given: LoweredValue) -> LoweredValue:
    channels = [part for item in given for part in vectors.components(item)]
    if len(channels) not in (3, 4):
        raise Mismatch(
            f"a pixel has three channels or four, not {len(channels)}.",
            "Write dala.rgba(r, g, b), or give a vector and an alpha.",
        )
    if len(channels) == 4 and all(lower.arithmetic.type_of(item) == N16 for item in channels):
        red, green, blue, alpha = map(lower.arithmetic.typed, channels)
        return Pixel((red, green, blue, alpha))
    numbers = [lower.arithmetic.convert(channel, F32) for channel in channels]
    if len(numbers) == 3:
        numbers.append(lower.arithmetic.convert(Literal(1.0), F32))
    return Pixel((numbers[0], numbers[1], numbers[2], numbers[3]))


def _local(lower: Expressions, count: LoweredValue, type: LoweredValue) -> LoweredValue:
    wanted = count.value if isinstance(count, Literal) else 0
    mark = type.object if isinstance(type, Static) else None
    if wanted not in range(1, MOST_LOCAL + 1) or not isinstance(mark, ScalarMarker):
        raise Mismatch(
            f"dala.local takes how many elements, 1 to {MOST_LOCAL}, and their type, not "
            f"{describe(count)} and {describe(type)}.",
            "Write e.g. dala.local(9, dala.f32).",
        )
    zero = Number(lower.build.const(mark.scalar.computed, 0))
    return Local((zero,) * int(wanted), mark.scalar)


def _luma(lower: Expressions, pixel: LoweredValue) -> LoweredValue:
    if not isinstance(pixel, Pixel):
        raise Mismatch(f"dala.luma takes a pixel, not {describe(pixel)}.", "Give `image.pixel`.")
    return lower.luma(pixel)


# -- numbers ---------------------------------------------------------------------------------------


def _unary(op: str) -> Handler:
    return lambda lower, x: lower.arithmetic.unary(op, x)


def _float_unary(op: str) -> Handler:
    """Handles a unary float operation; rounding leaves integers unchanged."""

    def handler(lower: Expressions, x: LoweredValue) -> LoweredValue:
        if op != "sqrt" and lower.arithmetic.typed(x).type.is_integer:
            return x
        return lower.arithmetic.unary(op, lower.arithmetic.floating(x))

    return handler


def _reduced(op: str) -> Handler:
    def handler(lower: Expressions, *items: LoweredValue) -> LoweredValue:
        if len(items) == 1:
            if not isinstance(items[0], Tuple) or not items[0].items:
                raise Mismatch(
                    f"{op} of one value needs a tuple or `… for k in range(…)`.",
                    f"Write {op}(a, b).",
                )
            items = items[0].items
        best = items[0]
        for item in items[1:]:
            best = lower.arithmetic.binary(op, best, item)
        return best

    return handler


def _clamp(
    lower: Expressions, x: LoweredValue, low: LoweredValue, high: LoweredValue
) -> LoweredValue:
    return lower.arithmetic.binary("min", lower.arithmetic.binary("max", x, low), high)


def _fma(lower: Expressions, a: LoweredValue, b: LoweredValue, c: LoweredValue) -> LoweredValue:
    return lower.arithmetic.multiply_add(a, b, c)


def _fract(lower: Expressions, x: LoweredValue) -> LoweredValue:
    number = lower.arithmetic.floating(x)
    return lower.arithmetic.binary("sub", number, lower.arithmetic.unary("floor", number))


def _sign(lower: Expressions, x: LoweredValue) -> LoweredValue:
    number = lower.arithmetic.typed(x)
    type = S32 if number.type == BOOL else number.type
    up = lower.arithmetic.convert(lower.arithmetic.binary("gt", number, Literal(0)), type)
    if type.kind == "u":
        return up
    down = lower.arithmetic.convert(lower.arithmetic.binary("lt", number, Literal(0)), type)
    return lower.arithmetic.binary("sub", up, down)


def _mix(lower: Expressions, a: LoweredValue, b: LoweredValue, t: LoweredValue) -> LoweredValue:
    a, b, t = lower.arithmetic.floats_alike(a, b, t)
    apart = lower.arithmetic.binary("sub", b, a)
    return lower.arithmetic.binary("add", a, lower.arithmetic.binary("mul", apart, t))


def _step(lower: Expressions, edge: LoweredValue, x: LoweredValue) -> LoweredValue:
    type = lower.arithmetic.floating(x).type
    return lower.arithmetic.convert(lower.arithmetic.binary("ge", x, edge), type)


def _smoothstep(
    lower: Expressions, low: LoweredValue, high: LoweredValue, x: LoweredValue
) -> LoweredValue:
    do = lower.arithmetic.binary
    x = lower.arithmetic.floating(x)
    t = _clamp(
        lower, do("div", do("sub", x, low), do("sub", high, low)), Literal(0.0), Literal(1.0)
    )
    return do("mul", do("mul", t, t), do("sub", Literal(3.0), do("mul", Literal(2.0), t)))


def _rsqrt(lower: Expressions, x: LoweredValue) -> LoweredValue:
    root = lower.arithmetic.unary("sqrt", lower.arithmetic.floating(x))
    return lower.arithmetic.binary("div", Literal(1.0), root)


def _isnan(lower: Expressions, x: LoweredValue) -> LoweredValue:
    number = lower.arithmetic.floating(x)
    return lower.arithmetic.binary("ne", number, number)


def _isinf(lower: Expressions, x: LoweredValue) -> LoweredValue:
    number = lower.arithmetic.floating(x)
    return lower.arithmetic.binary("eq", lower.arithmetic.unary("abs", number), Literal(math.inf))


def _bits(lower: Expressions, x: LoweredValue, to: LoweredValue) -> LoweredValue:
    number = lower.arithmetic.typed(x)
    scalar = (
        to.object.scalar if isinstance(to, Static) and isinstance(to.object, ScalarMarker) else None
    )
    value = number.value
    if scalar is not None and scalar.bits == 16 and _was_stored(value):
        value = value.args[0]  # type: ignore[attr-defined]
    if scalar is None or scalar.bits != value.type.bits or BOOL in (scalar, number.type):
        alike = [item for item in DTYPES.values() if item.bits == value.type.bits]
        raise Mismatch(
            f"dala.bits takes a value and a type of the same width, not {describe(to)}.",
            f"For {number.type} that is {' or '.join(f'dala.{item}' for item in alike)}.",
        )
    return Number(lower.build.convert(lower.build.bitcast(value, scalar), scalar.computed))


def _was_stored(value: Value) -> bool:
    """Whether an f32 is one that 16 bits stand for."""
    return isinstance(value, Apply) and value.op == CONVERT and value.args[0].type.is_storage


def _written(name: str) -> Handler:
    """Handles a function written in the language, in the version for its argument's type."""

    def handler(lower: Expressions, *args: LoweredValue) -> LoweredValue:
        if all(isinstance(arg, Literal) for arg in args):
            folded = _folded(name, [arg.value for arg in args if isinstance(arg, Literal)])
            if folded is not None:
                return Literal(folded)
        numbers = lower.arithmetic.floats_alike(*args)
        type = numbers[0].type
        return lower.inline_python(_WRITTEN[f"{name}_{type}"], list(numbers), contracts=True)

    return handler


def _ldexp(lower: Expressions, x: LoweredValue, n: LoweredValue) -> LoweredValue:
    number, power = lower.arithmetic.floating(x), lower.arithmetic.typed(n)
    if not power.type.is_integer:
        raise Mismatch(
            f"dala.ldexp takes a number and an integer, not {describe(x)} and {describe(n)}.",
            "For other powers, write x * dala.exp2(y).",
        )
    # Beyond these every number is 0 or infinite; within them every integer type fits s32.
    bounded = lower.arithmetic.binary("min", power, Literal(_LARGEST_POWER & power.type.highest))
    if power.type.kind == "s":
        least = max(-_LARGEST_POWER, power.type.lowest)
        bounded = lower.arithmetic.binary("max", bounded, Literal(least))
    written = _WRITTEN[f"ldexp_{number.type}"]
    return lower.inline_python(written, [number, lower.arithmetic.convert(bounded, S32)])


_LARGEST_POWER = 4095


def _folded(name: str, values: list[Any]) -> float | None:
    """Returns Python's value of a function of literals, or None if it has none."""
    own = getattr(math, name, None)
    try:
        return None if own is None else float(own(*values))
    except (ValueError, OverflowError, ZeroDivisionError):
        return None


MOST_LOCAL = 64
"""Elements of a local array: each is a value of its own, that every computed index compares."""
_ONE, _TWO, _THREE = (1,), (2,), (3,)
_MANY = tuple(range(1, 65))
_HANDLERS: dict[str, tuple[Handler, tuple[int, ...]]] = {
    "position": (_position, _ONE),
    "shape": (_shape, _ONE),
    "rgba": (_rgba, (1, 2, 3, 4)),
    "luma": (_luma, _ONE),
    "local": (_local, _TWO),
    "abs": (_unary("abs"), _ONE),
    "min": (_reduced("min"), _MANY),
    "max": (_reduced("max"), _MANY),
    "clamp": (_clamp, _THREE),
    "fma": (_fma, _THREE),
    "floor": (_float_unary("floor"), _ONE),
    "ceil": (_float_unary("ceil"), _ONE),
    "trunc": (_float_unary("trunc"), _ONE),
    "round": (_float_unary("round"), _ONE),
    "sqrt": (_float_unary("sqrt"), _ONE),
    "fract": (_fract, _ONE),
    "sign": (_sign, _ONE),
    "rsqrt": (_rsqrt, _ONE),
    "mix": (_mix, _THREE),
    "step": (_step, _TWO),
    "smoothstep": (_smoothstep, _THREE),
    "isnan": (_isnan, _ONE),
    "isinf": (_isinf, _ONE),
    "bits": (_bits, _TWO),
    "ldexp": (_ldexp, _TWO),
    **{name: (_unary(name), _ONE) for name in ("popcount", "clz", "reverse_bits")},
    **random_numbers.HANDLERS,
    **vectors.HANDLERS,
    **matrices.HANDLERS,
    **{name: (_written(name), _TWO) for name in ("pow", "atan2", "hypot", "fmod")},
    **{
        name: (_written(name), _ONE)
        for name in (
            *("exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan"),
            *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "half_exp"),
            *("sigmoid", "erf", "erfc", "cbrt"),
        )
    },
}
_PLAIN = {
    "local",
    "position",
    "shape",
    "rgba",
    "luma",
    "bits",
    *random_numbers.HANDLERS,
    *vectors.HANDLERS,
    *matrices.HANDLERS,
}

PYTHON_EQUALS: dict[Any, str] = {
    abs: "abs",
    min: "min",
    max: "max",
    round: "round",
    pow: "pow",
    **{
        getattr(math, name): name
        for name in (
            *("floor", "ceil", "trunc", "sqrt", "exp", "exp2", "log", "log2", "log10", "pow"),
            *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "erf", "erfc"),
            *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
            *("hypot", "cbrt", "fmod", "ldexp", "isnan", "isinf"),
        )
    },
    math.fabs: "abs",
}
"""Python functions that stand for an intrinsic when called in a kernel."""

PYTHON_TYPES = {int: S32, float: F32, bool: BOOL}
"""The scalar types that Python's types convert to when called in a kernel."""
