"""Operators that go element by element, as expressions that kernels and WGSL texts both take.

An expression is written in the kernel language. It keeps to what reads the same in WGSL, but for
the prefix of functions: choices are made by min and max.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dala.ir.types import F32, S32, U8, Scalar
from dala.ml.onnx.contents import Node

Write = Callable[[Node, Sequence[str]], str]
"""The expression of a node, given those of its inputs; "" stands for one that is left out."""

ONNX_F32, ONNX_S32, ONNX_S64 = 1, 6, 7
CASTS = {ONNX_F32: F32, ONNX_S32: S32, ONNX_S64: S32}
"""What a Cast can lead to; positions and counts fit 32 bits, which every device has."""
STORED = {np.dtype(np.float32): F32, np.dtype(np.uint8): U8, np.dtype(np.int32): S32}
"""Elements that values on a device have."""
WHOLE = ("Abs", "Add", "Cast", "Div", "Max", "Min", "Mod", "Mul", "Neg", "Sub", "Sum")
"""Operators that whole numbers are given to; only Div is written otherwise for them."""
DIV_WHOLE = "Div of whole numbers"

VARIADIC = ("Max", "Min", "Sum")


def literal(value: Any) -> str:
    """A number as it is written in both languages."""
    if isinstance(value, int | np.integer):
        return str(int(value))
    number = float(np.float32(value))
    bound = float(np.finfo(np.float32).max)
    # Neither language has a word for infinity; a bound that means "none" is as good at the last.
    return repr(min(max(number, -bound), bound))


def _joined(operator: str) -> Write:
    return lambda _, given: f" {operator} ".join(given)


def _nested(function: str) -> Write:
    def write(_: Node, given: Sequence[str]) -> str:
        found = given[0]
        for item in given[1:]:
            found = f"{function}({found}, {item})"
        return found

    return write


def _template(text: str, **defaults: float) -> Write:
    def write(node: Node, given: Sequence[str]) -> str:
        numbers = {name: literal(float(node.get(name, it))) for name, it in defaults.items()}
        return text.format(*given, **numbers)

    return write


def _clip(node: Node, given: Sequence[str]) -> str:
    low, high = [*given[1:], "", ""][:2]
    if node.opset < 11:
        low, high = (
            literal(node.get(name, it)) for name, it in (("min", -math.inf), ("max", math.inf))
        )
    found = f"max({given[0]}, {low})" if low else given[0]
    return f"min({found}, {high})" if high else found


def _pow(node: Node, given: Sequence[str]) -> str:
    x, power = given
    plain = {"2.0": f"{x} * {x}", "0.5": f"dala.sqrt({x})", "1.0": x, "-1.0": f"1.0 / {x}"}
    return plain.get(power, f"dala.pow({x}, {power})")


def _cast(node: Node, given: Sequence[str]) -> str:
    # Floats are cut off on the way to whole numbers, where a conversion would round.
    return f"dala.f32({given[0]})" if CASTS[node.get("to")] == F32 else f"int({given[0]})"


POINTWISE: dict[str, Write] = {
    "Abs": _template("dala.abs({0})"),
    "Add": _joined("+"),
    "BatchNormalization": _template("{0} * {1} + {2}"),
    "Cast": _cast,
    "Ceil": _template("dala.ceil({0})"),
    "Clip": _clip,
    "Div": _joined("/"),
    DIV_WHOLE: _template("dala.abs({0}) // dala.abs({1}) * dala.sign({0}) * dala.sign({1})"),
    "Elu": _template("max({0}, 0.0) + {alpha} * (dala.exp(min({0}, 0.0)) - 1.0)", alpha=1.0),
    "Erf": _template("dala.erf({0})"),
    "Exp": _template("dala.exp({0})"),
    "Floor": _template("dala.floor({0})"),
    "HardSigmoid": _template("min(max({0} * {alpha} + {beta}, 0.0), 1.0)", alpha=0.2, beta=0.5),
    "HardSwish": _template("{0} * min(max({0} / 6.0 + 0.5, 0.0), 1.0)"),
    "LeakyRelu": _template("max({0}, 0.0) + {alpha} * min({0}, 0.0)", alpha=0.01),
    "Log": _template("dala.log({0})"),
    "Max": _nested("max"),
    "Min": _nested("min"),
    "Mod": _joined("%"),
    "Mul": _joined("*"),
    "Neg": _template("-{0}"),
    "PRelu": _template("max({0}, 0.0) + {1} * min({0}, 0.0)"),
    "Pow": _pow,
    "Reciprocal": _template("1.0 / {0}"),
    "Relu": _template("max({0}, 0.0)"),
    "Selu": _template(
        "{gamma} * (max({0}, 0.0) + {alpha} * (dala.exp(min({0}, 0.0)) - 1.0))",
        alpha=1.6732632,
        gamma=1.050701,
    ),
    "Sigmoid": _template("dala.sigmoid({0})"),
    "Softplus": _template("max({0}, 0.0) + dala.log(1.0 + dala.exp(-dala.abs({0})))"),
    "Softsign": _template("{0} / (1.0 + dala.abs({0}))"),
    "Sqrt": _template("dala.sqrt({0})"),
    "Sub": _joined("-"),
    "Sum": _joined("+"),
    "Tanh": _template("dala.tanh({0})"),
}
"""How each operator is written."""


def result_of(node: Node, operands: Sequence[Scalar]) -> Scalar:
    """The type that a node leaves."""
    if node.op == "Cast":
        return CASTS[node.get("to")]
    return operands[0]
