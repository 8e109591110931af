"""The records of operators that go element by element."""

from __future__ import annotations

import numpy as np

from dala.ml.executor import constant_folding as folds
from dala.ml.executor import operator_checks as checks
from dala.ml.executor import rewriting
from dala.ml.executor.operator_record import Operator, on_constants, pointwise
from dala.ml.executor.pointwise import CASTS, cast, clip, joined, nested, power, template

ELEMENTWISE: dict[str, Operator] = {
    "Abs": Operator(
        write=template("dala.abs({0})"), fold=folds.applied(np.abs), takes_integers=True
    ),
    "Add": Operator(write=joined("+"), fold=folds.applied(np.add), takes_integers=True),
    "And": on_constants(folds.applied(np.logical_and)),
    "Cast": Operator(
        write=cast,
        fold=folds.cast,
        takes_integers=True,
        gives=lambda node: CASTS.get(node.get("to")),
        check=checks.castable,
    ),
    "Ceil": pointwise("dala.ceil({0})", np.ceil),
    "Celu": pointwise(
        "max({0}, 0.0) + min({alpha} * (dala.exp(min({0}, 0.0) / {alpha}) - 1.0), 0.0)", alpha=1.0
    ),
    "Clip": Operator(write=clip),
    "Div": Operator(
        write=joined("/"),
        # ONNX cuts off, where the kernel language rounds down.
        write_integers=template("dala.abs({0}) // dala.abs({1}) * dala.sign({0}) * dala.sign({1})"),
        fold=folds.divided,
        takes_integers=True,
    ),
    "Elu": pointwise("max({0}, 0.0) + {alpha} * (dala.exp(min({0}, 0.0)) - 1.0)", alpha=1.0),
    "Equal": on_constants(folds.applied(np.equal)),
    "Erf": pointwise("dala.erf({0})"),
    "Exp": pointwise("dala.exp({0})", np.exp),
    "Floor": pointwise("dala.floor({0})", np.floor),
    "Greater": on_constants(folds.applied(np.greater)),
    "GreaterOrEqual": on_constants(folds.applied(np.greater_equal)),
    "HardSigmoid": pointwise("min(max({0} * {alpha} + {beta}, 0.0), 1.0)", alpha=0.2, beta=0.5),
    "HardSwish": pointwise("{0} * min(max({0} / 6.0 + 0.5, 0.0), 1.0)"),
    "LeakyRelu": pointwise("max({0}, 0.0) + {alpha} * min({0}, 0.0)", alpha=0.01),
    "Less": on_constants(folds.applied(np.less)),
    "LessOrEqual": on_constants(folds.applied(np.less_equal)),
    "Log": pointwise("dala.log({0})", np.log),
    "Max": Operator(
        write=nested("max"),
        rewrite=rewriting.pairwise,
        fold=folds.accumulated(np.maximum),
        takes_integers=True,
    ),
    "Min": Operator(
        write=nested("min"),
        rewrite=rewriting.pairwise,
        fold=folds.accumulated(np.minimum),
        takes_integers=True,
    ),
    "Mod": Operator(
        write=joined("%"),
        fold=folds.remainder,
        takes_integers=True,
        check=checks.without("fmod"),
    ),
    "Mul": Operator(write=joined("*"), fold=folds.applied(np.multiply), takes_integers=True),
    "Neg": Operator(write=template("-{0}"), fold=folds.applied(np.negative), takes_integers=True),
    "Not": on_constants(folds.applied(np.logical_not)),
    "Or": on_constants(folds.applied(np.logical_or)),
    "PRelu": pointwise("max({0}, 0.0) + {1} * min({0}, 0.0)"),
    "Pow": Operator(write=power, fold=folds.applied(np.power)),
    "Reciprocal": pointwise("1.0 / {0}", np.reciprocal),
    "Relu": pointwise("max({0}, 0.0)"),
    "Round": on_constants(folds.applied(np.round)),
    "Selu": pointwise(
        "{gamma} * (max({0}, 0.0) + {alpha} * (dala.exp(min({0}, 0.0)) - 1.0))",
        alpha=1.6732632,
        gamma=1.050701,
    ),
    "Sigmoid": pointwise("dala.sigmoid({0})"),
    "Softplus": pointwise("max({0}, 0.0) + dala.log(1.0 + dala.exp(-dala.abs({0})))"),
    "Softsign": pointwise("{0} / (1.0 + dala.abs({0}))"),
    "Sqrt": pointwise("dala.sqrt({0})", np.sqrt),
    "Sub": Operator(write=joined("-"), fold=folds.applied(np.subtract), takes_integers=True),
    "Sum": Operator(write=joined("+"), rewrite=rewriting.pairwise, takes_integers=True),
    "Tanh": pointwise("dala.tanh({0})"),
    "Where": on_constants(folds.applied(np.where)),
}
