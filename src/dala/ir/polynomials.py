"""Integer values as polynomials of positions, extents and parameters, as indices are written."""

from __future__ import annotations

from collections.abc import Mapping

from dala.ir.nodes import Apply, Const, Extent, Param, Position, Value
from dala.ir.types import S32

Leaf = tuple[str, str, int]
"""A position (`"p"`, and its axis), an extent (`"e"`, its source and axis) or a parameter."""
Polynomial = Mapping[tuple[Leaf, ...], int]
"""The factor of each product of leaves; that of the empty product is the constant."""

MOST_TERMS = 16


def polynomial(value: Value) -> Polynomial | None:
    """Returns the polynomial that an s32 value computes, modulo 2**32; None if it is none."""
    if value.type != S32:
        return None
    match value:
        case Const():
            return _some({(): int(value.value)})
        case Position():
            return {(("p", "", value.axis),): 1}
        case Extent():
            return {(("e", value.source, value.axis),): 1}
        case Param():
            return {(("a", value.name, 0),): 1}
        case Apply(op="add" | "sub" | "mul"):
            a, b = map(polynomial, value.args)
            if a is None or b is None or len(a) * len(b) > MOST_TERMS:
                return None
            return (
                _product(a, b) if value.op == "mul" else _sum(a, b, -1 if value.op == "sub" else 1)
            )
        case Apply(op="neg" | "not"):
            a = polynomial(value.args[0])
            return None if a is None else _sum({(): -1} if value.op == "not" else {}, a, -1)
        case Apply(op="shl") if isinstance(value.args[1], Const):
            a = polynomial(value.args[0])
            return None if a is None else _product(a, {(): 1 << (int(value.args[1].value) & 31)})
    return None


def position_of(axis: int) -> Leaf:
    return ("p", "", axis)


def uses_position(product: tuple[Leaf, ...]) -> bool:
    return any(kind == "p" for kind, _, _ in product)


def _sum(a: Polynomial, b: Polynomial, sign: int) -> Polynomial:
    total = dict(a)
    for product, factor in b.items():
        total[product] = total.get(product, 0) + sign * factor
    return _some(total)


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    total: dict[tuple[Leaf, ...], int] = {}
    for left, x in a.items():
        for right, y in b.items():
            product = tuple(sorted((*left, *right)))
            total[product] = total.get(product, 0) + x * y
    return _some(total)


def _some(factors: Mapping[tuple[Leaf, ...], int]) -> Polynomial:
    return {product: factor for product, factor in factors.items() if factor}
