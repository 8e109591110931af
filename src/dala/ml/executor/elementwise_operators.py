"""The records of operators that go element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dala.ir.types import BOOL, Scalar
from dala.ml.executor import constant_folding as folds
from dala.ml.executor import operator_checks as checks
from dala.ml.executor import rewriting
from dala.ml.executor.dtypes import CASTS, on_device
from dala.ml.executor.operator_record import Operator, pointwise
from dala.ml.executor.pointwise import (
    averaged,
    cast,
    cast_integers,
    chosen,
    clip,
    integer_power,
    is_infinite,
    joined,
    nested,
    power,
    shifted,
    template,
)
from dala.ml.onnx.contents import Node


def _arithmetic(text: str, fold: Callable[..., Any], *, integers: str = "") -> Operator:
    """Returns an operator of numbers of any type, all of one."""
    return Operator(
        write=template(text),
        write_integers=template(integers) if integers else None,
        fold=folds.applied(fold),
        takes_integers=True,
    )


def _question(text: str, fold: Callable[..., Any]) -> Operator:
    """Returns an operator that answers with bool."""
    return Operator(
        write=template(text), fold=folds.applied(fold), takes_integers=True, gives=lambda _: BOOL
    )


def _cast_to(node: Node) -> Scalar | None:
    """Returns what a Cast leads to; None for what none can, which its check names."""
    wanted = CASTS.get(node.get("to", 1))
    return None if wanted is None else on_device(wanted)


# ONNX cuts quotients off, and gives remainders the sign of the one that is divided; the language
# rounds down.
_QUOTIENT = "dala.abs({0}) // dala.abs({1}) * dala.sign({0}) * dala.sign({1})"
_REST = "dala.sign({0}) * (dala.abs({0}) % dala.abs({1}))"
_FMOD = "dala.fmod({0}, {1})"
_MOD = f"({_FMOD} + {{1}} if {_FMOD} != 0.0 and ({_FMOD} < 0.0) != ({{1}} < 0.0) else {_FMOD})"
_SOFTPLUS = "(max({0}, 0.0) + dala.log(1.0 + dala.exp(-dala.abs({0}))))"
_GELU = "0.5 * {0} * (1.0 + dala.erf({0} * 0.7071067811865476))"
_GELU_BY_TANH = (
    "0.5 * {0} * (1.0 + dala.tanh(0.7978845608028654 * ({0} + 0.044715 * {0} * {0} * {0})))"
)

ELEMENTWISE: dict[str, Operator] = {
    "Abs": _arithmetic("dala.abs({0})", np.abs),
    "Acos": pointwise("dala.acos({0})", np.arccos),
    "Acosh": pointwise("dala.acosh({0})", np.arccosh),
    "Add": Operator(write=joined("+"), fold=folds.applied(np.add), takes_integers=True),
    "And": _question("{0} and {1}", np.logical_and),
    "Asin": pointwise("dala.asin({0})", np.arcsin),
    "Asinh": pointwise("dala.asinh({0})", np.arcsinh),
    "Atan": pointwise("dala.atan({0})", np.arctan),
    "Atanh": pointwise("dala.atanh({0})", np.arctanh),
    "BitShift": Operator(
        write=shifted,
        rewrite=rewriting.with_bits,
        fold=folds.shifted,
        takes_integers=True,
    ),
    "BitwiseAnd": _arithmetic("{0} & {1}", np.bitwise_and),
    "BitwiseNot": _arithmetic("~{0}", np.invert),
    "BitwiseOr": _arithmetic("{0} | {1}", np.bitwise_or),
    "BitwiseXor": _arithmetic("{0} ^ {1}", np.bitwise_xor),
    "Cast": Operator(
        write=cast,
        write_integers=cast_integers,
        fold=folds.cast,
        takes_integers=True,
        gives=_cast_to,
        check=checks.castable,
    ),
    "CastLike": Operator(
        write=cast,
        write_integers=cast_integers,
        rewrite=rewriting.cast_like,
        fold=folds.cast_like,
        takes_integers=True,
        gives=_cast_to,
    ),
    "Ceil": pointwise("dala.ceil({0})", np.ceil),
    "Celu": pointwise(
        "max({0}, 0.0) + min({alpha} * (dala.exp(min({0}, 0.0) / {alpha}) - 1.0), 0.0)", alpha=1.0
    ),
    "Clip": Operator(write=clip, fold=folds.clipped, takes_integers=True),
    "Cos": pointwise("dala.cos({0})", np.cos),
    "Cosh": pointwise("dala.cosh({0})", np.cosh),
    "Div": Operator(
        write=joined("/"),
        write_integers=template(_QUOTIENT),
        fold=folds.divided,
        takes_integers=True,
    ),
    "Elu": pointwise("max({0}, 0.0) + {alpha} * (dala.exp(min({0}, 0.0)) - 1.0)", alpha=1.0),
    "Equal": _question("{0} == {1}", np.equal),
    "Erf": pointwise("dala.erf({0})"),
    "Exp": pointwise("dala.exp({0})", np.exp),
    "Floor": pointwise("dala.floor({0})", np.floor),
    "Gelu": Operator(
        write=chosen(
            "approximate", "none", {"none": template(_GELU), "tanh": template(_GELU_BY_TANH)}
        )
    ),
    "Greater": _question("{0} > {1}", np.greater),
    "GreaterOrEqual": _question("{0} >= {1}", np.greater_equal),
    "HardSigmoid": pointwise("min(max({0} * {alpha} + {beta}, 0.0), 1.0)", alpha=0.2, beta=0.5),
    "HardSwish": pointwise("{0} * min(max({0} / 6.0 + 0.5, 0.0), 1.0)"),
    "IsInf": Operator(write=is_infinite, gives=lambda _: BOOL),
    "IsNaN": Operator(
        write=template("dala.isnan({0})"), fold=folds.applied(np.isnan), gives=lambda _: BOOL
    ),
    "LeakyRelu": pointwise("max({0}, 0.0) + {alpha} * min({0}, 0.0)", alpha=0.01),
    "Less": _question("{0} < {1}", np.less),
    "LessOrEqual": _question("{0} <= {1}", np.less_equal),
    "Log": pointwise("dala.log({0})", np.log),
    "Max": Operator(
        write=nested("max"),
        rewrite=rewriting.pairwise,
        fold=folds.accumulated(np.maximum),
        takes_integers=True,
    ),
    "Mean": Operator(write=averaged, rewrite=rewriting.pairwise),
    "Min": Operator(
        write=nested("min"),
        rewrite=rewriting.pairwise,
        fold=folds.accumulated(np.minimum),
        takes_integers=True,
    ),
    "Mish": pointwise(f"{{0}} * dala.tanh({_SOFTPLUS})"),
    "Mod": Operator(
        write=chosen("fmod", 0, {0: template(_MOD), 1: template(_FMOD)}),
        write_integers=chosen("fmod", 0, {0: joined("%"), 1: template(_REST)}),
        fold=folds.remainder,
        takes_integers=True,
    ),
    "Mul": Operator(write=joined("*"), fold=folds.applied(np.multiply), takes_integers=True),
    "Neg": _arithmetic("-{0}", np.negative),
    "Not": _question("not {0}", np.logical_not),
    "Or": _question("{0} or {1}", np.logical_or),
    "PRelu": Operator(
        write=template("max({0}, 0.0) + {1} * min({0}, 0.0)"),
        write_integers=template("{0} if {0} > 0 else {0} * {1}"),
        takes_integers=True,
    ),
    "Pow": Operator(
        write=power,
        write_integers=integer_power,
        fold=folds.raised,
        takes_integers=True,
        mixed=True,
    ),
    "Reciprocal": pointwise("1.0 / {0}", np.reciprocal),
    "Relu": Operator(
        write=template("max({0}, 0.0)"),
        write_integers=template("max({0}, 0)"),
        takes_integers=True,
    ),
    "Round": pointwise("dala.round({0})", np.round),
    "Selu": pointwise(
        "{gamma} * (max({0}, 0.0) + {alpha} * (dala.exp(min({0}, 0.0)) - 1.0))",
        alpha=1.6732632,
        gamma=1.050701,
    ),
    "Shrink": pointwise(
        "({0} + {bias} if {0} < -{lambd} else ({0} - {bias} if {0} > {lambd} else 0.0))",
        lambd=0.5,
        bias=0.0,
    ),
    "Sigmoid": pointwise("dala.sigmoid({0})"),
    "Sign": _arithmetic("dala.sign({0})", np.sign),
    "Sin": pointwise("dala.sin({0})", np.sin),
    "Sinh": pointwise("dala.sinh({0})", np.sinh),
    "Softplus": pointwise(_SOFTPLUS),
    "Softsign": pointwise("{0} / (1.0 + dala.abs({0}))"),
    "Sqrt": pointwise("dala.sqrt({0})", np.sqrt),
    "Sub": Operator(write=joined("-"), fold=folds.applied(np.subtract), takes_integers=True),
    "Sum": Operator(
        write=joined("+"),
        rewrite=rewriting.pairwise,
        fold=folds.accumulated(np.add),
        takes_integers=True,
    ),
    "Swish": pointwise("{0} * dala.sigmoid({alpha} * {0})", alpha=1.0),
    "Tan": pointwise("dala.tan({0})", np.tan),
    "Tanh": pointwise("dala.tanh({0})", np.tanh),
    "ThresholdedRelu": pointwise("({0} if {0} > {alpha} else 0.0)", alpha=1.0),
    "Where": Operator(
        write=template("({1} if {0} else {2})"),
        fold=folds.applied(np.where),
        takes_integers=True,
        like=1,
    ),
    "Xor": _question("{0} != {1}", np.logical_xor),
}
