"""Vectors of the kernel language: how they are made, their components, and their functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dala.lang.arithmetic import Mismatch, is_weak
from dala.lang.language_names import VectorMarker
from dala.lang.values import Literal, LoweredValue, Matrix, Number, Pixel, Tuple, Vector, describe

if TYPE_CHECKING:
    from dala.lang.expressions import Expressions

LETTERS = ("xyzw", "rgba")
"""The names of components; a swizzle takes all its letters from one of them."""


def vector(lower: Expressions, mark: VectorMarker, args: list[LoweredValue]) -> Vector:
    """Returns a vector of numbers and of the components of vectors; one number fills all of it."""
    parts = [part for arg in args for part in components(arg)]
    if len(args) == 1 and isinstance(args[0], Literal | Number):
        parts *= mark.size
    if len(parts) != mark.size:
        raise Mismatch(
            f"dala.{mark.name} takes {mark.size} components, not {len(parts)}.",
            f"Write e.g. dala.{mark.name}({', '.join('xyzw'[: mark.size])}), or give one number "
            f"for all of them.",
        )
    return Vector(tuple(floats_of(lower, parts)))


def floats_of(lower: Expressions, parts: list[LoweredValue]) -> list[Number]:
    """Returns components as floats of one type; literals among themselves stay weak."""
    weak = all(map(is_weak, parts))
    return [Number(item.value, weak) for item in lower.arithmetic.floats_alike(*parts)]


def components(lowered: LoweredValue) -> tuple[LoweredValue, ...]:
    """Returns the items of a value: components, channels or rows, or the value itself."""
    match lowered:
        case Vector() | Tuple():
            return lowered.items
        case Pixel():
            return lowered.channels
        case Matrix():
            return lowered.rows
    return (lowered,)


def swizzled(owner: Vector, name: str) -> LoweredValue | None:
    """Returns the components that the letters name, or None where they name none."""
    places = swizzle(len(owner.items), name)
    if places is None:
        return None
    found = tuple(owner.items[place] for place in places)
    return found[0] if len(found) == 1 else Vector(found)


def swizzle(size: int, name: str) -> list[int] | None:
    """Returns the places of the components that the letters name in a vector of that size."""
    for letters in LETTERS:
        known = letters[:size]
        if 1 <= len(name) <= 4 and all(letter in known for letter in name):
            return [known.index(letter) for letter in name]
    return None


def _require(name: str, count: int | None, *args: LoweredValue) -> list[Vector]:
    """Returns the arguments, which have to be vectors of one length."""
    found = [arg for arg in args if isinstance(arg, Vector)]
    sizes = {len(item.items) for item in found}
    if len(found) != len(args) or len(sizes) != 1 or count not in (None, *sizes):
        given = " and ".join(map(describe, args))
        kind = "vectors of one length" if count is None else f"vectors of {count} components"
        raise Mismatch(
            f"dala.{name} takes {kind if len(args) > 1 else 'a vector'}, not {given}.",
            "Make one with dala.vec3(x, y, z).",
        )
    return found


def dot(lower: Expressions, a: LoweredValue, b: LoweredValue) -> LoweredValue:
    """Returns the dot product of two vectors of one length."""
    first, second = _require("dot", None, a, b)
    total: LoweredValue | None = None
    for x, y in zip(first.items, second.items, strict=True):
        term = lower.arithmetic.binary("mul", x, y)
        total = term if total is None else lower.arithmetic.binary("add", total, term)
    assert total is not None
    return total


def _cross(lower: Expressions, a: LoweredValue, b: LoweredValue) -> LoweredValue:
    first, second = _require("cross", 3, a, b)
    do = lower.arithmetic.binary

    def component(i: int, j: int) -> Number:
        found = do(
            "sub",
            do("mul", first.items[i], second.items[j]),
            do("mul", first.items[j], second.items[i]),
        )
        return lower.arithmetic.typed(found)

    return Vector((component(1, 2), component(2, 0), component(0, 1)))


def _length(lower: Expressions, v: LoweredValue) -> LoweredValue:
    _require("length", None, v)
    return lower.arithmetic.unary("sqrt", lower.arithmetic.floating(dot(lower, v, v)))


def _distance(lower: Expressions, a: LoweredValue, b: LoweredValue) -> LoweredValue:
    _require("distance", None, a, b)
    return _length(lower, lower.arithmetic.binary("sub", a, b))


def _normalize(lower: Expressions, v: LoweredValue) -> LoweredValue:
    _require("normalize", None, v)
    return lower.arithmetic.binary("div", v, _length(lower, v))


def _reflect(lower: Expressions, v: LoweredValue, normal: LoweredValue) -> LoweredValue:
    _require("reflect", None, v, normal)
    do = lower.arithmetic.binary
    twice = do("mul", Literal(2.0), dot(lower, normal, v))
    return do("sub", v, do("mul", twice, normal))


HANDLERS: dict[str, tuple[Callable[..., LoweredValue], tuple[int, ...]]] = {
    "dot": (dot, (2,)),
    "cross": (_cross, (2,)),
    "length": (_length, (1,)),
    "distance": (_distance, (2,)),
    "normalize": (_normalize, (1,)),
    "reflect": (_reflect, (2,)),
}
