"""Sums of products that are rounded once: `a * b + c` as one operation.

Only dala's own functions are lowered so; what users write is rounded as NumPy rounds it. Only what
is written as one expression is contracted: a product with a name of its own is meant to be rounded.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dala.lang.values import LoweredValue

if TYPE_CHECKING:
    from dala.lang.expressions import Expressions


def contracted(lower: Expressions, node: ast.BinOp, op: str) -> LoweredValue:
    """Returns a sum or a difference, of which a product is not rounded by itself."""
    do, sides = lower.arithmetic, (node.left, node.right)
    place = next((i for i, side in enumerate(sides) if _is_product(side)), None)
    if place is None:
        return do.binary(op, *map(lower.operand, sides))
    product = sides[place]
    assert isinstance(product, ast.BinOp)
    a, b = lower.operand(product.left), lower.operand(product.right)
    other = lower.operand(sides[1 - place])
    if any(do.typed(item).type.is_integer for item in (a, b, other)):
        both = do.binary("mul", a, b)
        return do.binary(op, *((both, other) if place == 0 else (other, both)))
    if op == "sub" and place == 0:
        other = do.unary("neg", other)
    elif op == "sub":
        a = do.unary("neg", a)
    return do.multiply_add(a, b, other)


def _is_product(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
