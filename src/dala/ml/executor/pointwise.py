"""Operators that go element by element, as expressions that kernels and WGSL texts both take.

An expression is written in the kernel language. It keeps to what reads the same in WGSL, but for
the prefix of functions: choices are made by min and max.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dala.ir.types import F32, S32, U8
from dala.ml.onnx.contents import Node

Write = Callable[[Node, Sequence[str]], str]
"""The expression of a node, given those of its inputs; "" stands for one that is left out."""

ONNX_F32, ONNX_S32, ONNX_S64 = 1, 6, 7
CASTS = {ONNX_F32: F32, ONNX_S32: S32, ONNX_S64: S32}
"""What a Cast can lead to; positions and counts fit 32 bits, which every device has."""
STORED = {np.dtype(np.float32): F32, np.dtype(np.uint8): U8, np.dtype(np.int32): S32}
"""Elements that values on a device have."""


def literal(value: Any) -> str:
    """Returns a number as it is written in both languages."""
    if isinstance(value, int | np.integer):
        return str(int(value))
    number = float(np.float32(value))
    bound = float(np.finfo(np.float32).max)
    # Neither language has a word for infinity; a bound that means "none" is as good at the last.
    return repr(min(max(number, -bound), bound))


def joined(operator: str) -> Write:
    """Inputs with an operator between them."""
    return lambda _, given: f" {operator} ".join(given)


def nested(function: str) -> Write:
    """Returns a function of two inputs, applied to any number of them."""

    def write(_: Node, given: Sequence[str]) -> str:
        found = given[0]
        for item in given[1:]:
            found = f"{function}({found}, {item})"
        return found

    return write


def template(text: str, **defaults: float) -> Write:
    """A text with the inputs by number, and with attributes by name, which have defaults."""

    def write(node: Node, given: Sequence[str]) -> str:
        numbers = {name: literal(float(node.get(name, it))) for name, it in defaults.items()}
        return text.format(*given, **numbers)

    return write


def clip(node: Node, given: Sequence[str]) -> str:
    """Clip, whose bounds are attributes before opset 11."""
    low, high = [*given[1:], "", ""][:2]
    if node.opset < 11:
        low, high = (
            literal(node.get(name, it)) for name, it in (("min", -math.inf), ("max", math.inf))
        )
    found = f"max({given[0]}, {low})" if low else given[0]
    return f"min({found}, {high})" if high else found


def power(node: Node, given: Sequence[str]) -> str:
    """Pow, by plain arithmetic for the exponents that are met most."""
    x, power = given
    plain = {"2.0": f"{x} * {x}", "0.5": f"dala.sqrt({x})", "1.0": x, "-1.0": f"1.0 / {x}"}
    return plain.get(power, f"dala.pow({x}, {power})")


def cast(node: Node, given: Sequence[str]) -> str:
    """Cast to one of CASTS."""
    # Floats are cut off on the way to integers, where a conversion would round.
    return f"dala.f32({given[0]})" if CASTS[node.get("to")] == F32 else f"int({given[0]})"
