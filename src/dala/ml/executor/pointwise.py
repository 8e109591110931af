"""Operators that go element by element, as expressions of the kernel language."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dala.devices import current_device
from dala.errors import ModelError
from dala.ir.types import BOOL, F32, Scalar, dtype_of
from dala.ml.executor.dtypes import CASTS, on_device
from dala.ml.onnx.contents import Node

Write = Callable[[Node, Sequence[str]], str]
"""The expression of a node, given those of its inputs; "" stands for one that is left out."""

LARGEST = float(np.finfo(np.float32).max)
INFINITY = "1e999"
"""The language reads a number that is too large for any float as Python does."""


def literal(value: Any) -> str:
    """Returns a number as it is written in the kernel language."""
    if isinstance(value, int | np.integer | np.bool_):
        return str(value)
    number = float(value) if isinstance(value, np.float64) else float(np.float32(value))
    if math.isnan(number):
        return f"({INFINITY} - {INFINITY})"
    return repr(number).replace("inf", INFINITY)


def constant(array: np.ndarray) -> str:
    """Returns the only element of an array, in the type that it has on the device."""
    number = literal(array.reshape(-1)[0])
    scalar = on_device(dtype_of(array.dtype))
    # Alone these types are what a number is taken for; floats of 16 bits are computed as f32.
    return number if scalar.computed in (F32, BOOL) else f"dala.{scalar.name}({number})"


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


def chosen(attribute: str, default: Any, writes: dict[Any, Write]) -> Write:
    """Returns what the value of an attribute chooses."""

    def write(node: Node, given: Sequence[str]) -> str:
        value = node.get(attribute, default)
        if value not in writes:
            known = " or ".join(repr(item) for item in writes)
            raise ModelError(f"{node}: {attribute} is {value!r}, but has to be {known}.")
        return writes[value](node, given)

    return write


def clip(node: Node, given: Sequence[str]) -> str:
    """Clip, whose bounds are attributes before opset 11."""
    low, high = [*given[1:], "", ""][:2]
    if node.opset < 11:
        low, high = (
            literal(node.get(name, it)) for name, it in (("min", -LARGEST), ("max", LARGEST))
        )
    found = f"max({given[0]}, {low})" if low else given[0]
    return f"min({found}, {high})" if high else found


def power(node: Node, given: Sequence[str]) -> str:
    """Pow, by plain arithmetic for the exponents that are met most."""
    x, by = given
    plain = {"2.0": f"{x} * {x}", "0.5": f"dala.sqrt({x})", "1.0": x, "-1.0": f"1.0 / {x}"}
    return plain.get(by, f"dala.pow({x}, {by})")


def integer_power(node: Node, given: Sequence[str]) -> str:
    """Pow of integers: in f64, which is exact to 53 bits, unless it is a few products."""
    x, by = given
    number = by.split("(")[-1].rstrip(")")
    if number.removesuffix(".0") in ("1", "2", "3"):
        return " * ".join([x] * int(number.removesuffix(".0")))
    wide = "f64" if current_device().supports("f64") else "f32"
    return f"dala.round(dala.pow(dala.{wide}({x}), dala.{wide}({by})))"


def shifted(node: Node, given: Sequence[str]) -> str:
    """BitShift, by any count: one that is too large leaves nothing but the sign."""
    x, by = given
    bits, right = node.get("bits", 32), node.get("direction") == "RIGHT"
    fits = f"{by} >= 0 and {by} < {bits}"
    beyond = f"{x} >> {bits - 1}" if right else "0"
    return f"({x} {'>>' if right else '<<'} {by} if {fits} else {beyond})"


def averaged(node: Node, given: Sequence[str]) -> str:
    """Mean: the sum, divided where it is whole."""
    count = node.get("whole", len(given) if len(given) < 3 else 0)
    total = " + ".join(given)
    return f"({total}) / {float(count)}" if count > 1 else total


def is_infinite(node: Node, given: Sequence[str]) -> str:
    """IsInf, of the signs that attributes name."""
    signs = [
        f"{given[0]} == {sign}{INFINITY}"
        for name, sign in (("detect_negative", "-"), ("detect_positive", ""))
        if node.get(name, 1)
    ]
    return " or ".join(signs) or f"{given[0]} < -{INFINITY}"


def conversion(scalar: Scalar, given: str, of: Scalar | None = None) -> str:
    """Returns a value in another type: floats are cut off on the way to integers."""
    if scalar == BOOL:
        return f"({given} != 0)" if of != BOOL else given
    if scalar.is_float or (of is not None and not of.is_float):
        return f"dala.{scalar.name}({given})"
    return f"dala.{scalar.name}(dala.trunc({given}))"


def cast(node: Node, given: Sequence[str]) -> str:
    """Cast of floats to one of CASTS."""
    return conversion(on_device(CASTS[node.get("to")]), given[0])


def cast_integers(node: Node, given: Sequence[str]) -> str:
    """Cast of integers to one of CASTS."""
    scalar = on_device(CASTS[node.get("to")])
    return f"({given[0]} != 0)" if scalar == BOOL else f"dala.{scalar.name}({given[0]})"
