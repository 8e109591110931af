"""The operators of ONNX: one record for each, with all that is known of it.

To add an operator, add its record here.
"""

from __future__ import annotations

import numpy as np

from dala.ir.types import S32
from dala.kernels.tensor.reductions import reduce_max, reduce_mean, reduce_min, reduce_sum
from dala.ml.executor import constant_folding as folds
from dala.ml.executor import movement, reductions, rewriting
from dala.ml.executor import operator_checks as checks
from dala.ml.executor.layer_records import LAYERS
from dala.ml.executor.operator_record import Operator, on_constants, pointwise
from dala.ml.executor.pointwise import (
    CASTS,
    cast,
    clip,
    joined,
    nested,
    power,
    template,
)

OPERATORS: dict[str, Operator] = {
    "Abs": Operator(
        write=template("dala.abs({0})"), fold=folds.applied(np.abs), takes_integers=True
    ),
    "Add": Operator(write=joined("+"), fold=folds.applied(np.add), takes_integers=True),
    "And": on_constants(folds.applied(np.logical_and)),
    "ArgMax": Operator(
        expand=reductions.argmax,
        takes_integers=True,
        gives=lambda _: S32,
        check=checks.without("select_last_index", "the last of equals"),
    ),
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
    "Concat": Operator(expand=movement.concat, fold=folds.concatenated, takes_integers=True),
    "Constant": on_constants(folds.constant),
    "ConstantOfShape": on_constants(folds.filled),
    "DepthToSpace": Operator(expand=movement.depth_to_space),
    "Div": Operator(
        write=joined("/"),
        # ONNX cuts off, where the kernel language rounds down.
        write_integers=template("dala.abs({0}) // dala.abs({1}) * dala.sign({0}) * dala.sign({1})"),
        fold=folds.divided,
        takes_integers=True,
    ),
    "Dropout": Operator(passes_on=True, takes_integers=True),
    "Elu": pointwise("max({0}, 0.0) + {alpha} * (dala.exp(min({0}, 0.0)) - 1.0)", alpha=1.0),
    "Equal": on_constants(folds.applied(np.equal)),
    "Erf": pointwise("dala.erf({0})"),
    "Exp": pointwise("dala.exp({0})", np.exp),
    "Expand": Operator(
        expand=movement.expand, fold=folds.expanded, constants=(1,), takes_integers=True
    ),
    "Flatten": Operator(expand=movement.flatten, fold=folds.flattened, takes_integers=True),
    "Floor": pointwise("dala.floor({0})", np.floor),
    "Gather": Operator(expand=movement.gather, fold=folds.gathered, takes_integers=True),
    "GatherND": Operator(
        expand=movement.gather_places, takes_integers=True, check=checks.without("batch_dims")
    ),
    "Greater": on_constants(folds.applied(np.greater)),
    "GreaterOrEqual": on_constants(folds.applied(np.greater_equal)),
    "HardSigmoid": pointwise("min(max({0} * {alpha} + {beta}, 0.0), 1.0)", alpha=0.2, beta=0.5),
    "HardSwish": pointwise("{0} * min(max({0} / 6.0 + 0.5, 0.0), 1.0)"),
    "Identity": Operator(passes_on=True, fold=folds.applied(np.asarray), takes_integers=True),
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
    "Pad": Operator(
        expand=movement.pad,
        constants=(1, 2, 3),
        takes_integers=True,
        check=checks.one_of("mode", "constant", tuple(movement.BORDERS)),
    ),
    "Pow": Operator(write=power, fold=folds.applied(np.power)),
    "Range": on_constants(folds.ranged),
    "Reciprocal": pointwise("1.0 / {0}", np.reciprocal),
    "ReduceMax": Operator(
        expand=reductions.reduce_by(reduce_max), constants=(1,), takes_integers=True
    ),
    "ReduceMean": Operator(expand=reductions.reduce_by(reduce_mean), constants=(1,)),
    "ReduceMin": Operator(
        expand=reductions.reduce_by(reduce_min), constants=(1,), takes_integers=True
    ),
    "ReduceProd": on_constants(folds.reduced(np.multiply)),
    "ReduceSum": Operator(
        expand=reductions.reduce_by(reduce_sum),
        fold=folds.reduced(np.add),
        constants=(1,),
        takes_integers=True,
    ),
    "Relu": pointwise("max({0}, 0.0)"),
    "Reshape": Operator(
        expand=movement.reshape, fold=folds.reshaped, constants=(1,), takes_integers=True
    ),
    "Round": on_constants(folds.applied(np.round)),
    "Selu": pointwise(
        "{gamma} * (max({0}, 0.0) + {alpha} * (dala.exp(min({0}, 0.0)) - 1.0))",
        alpha=1.6732632,
        gamma=1.050701,
    ),
    "Shape": Operator(expand=movement.shape_of, is_known_from_shapes=True),
    "Sigmoid": pointwise("dala.sigmoid({0})"),
    "Slice": Operator(
        expand=movement.slice_, fold=folds.sliced, constants=(1, 2, 3, 4), takes_integers=True
    ),
    "Softmax": Operator(expand=reductions.softmax),
    "Softplus": pointwise("max({0}, 0.0) + dala.log(1.0 + dala.exp(-dala.abs({0})))"),
    "Softsign": pointwise("{0} / (1.0 + dala.abs({0}))"),
    "SpaceToDepth": Operator(expand=movement.space_to_depth),
    "Split": Operator(expand=movement.split, constants=(1,), takes_integers=True),
    "Sqrt": pointwise("dala.sqrt({0})", np.sqrt),
    "Squeeze": Operator(
        expand=movement.squeeze, fold=folds.squeezed, constants=(1,), takes_integers=True
    ),
    "Sub": Operator(write=joined("-"), fold=folds.applied(np.subtract), takes_integers=True),
    "Sum": Operator(write=joined("+"), rewrite=rewriting.pairwise, takes_integers=True),
    "Tanh": pointwise("dala.tanh({0})"),
    "Tile": Operator(expand=movement.tile, fold=folds.tiled, constants=(1,), takes_integers=True),
    "Transpose": Operator(expand=movement.transpose, fold=folds.transposed, takes_integers=True),
    "Unsqueeze": Operator(
        expand=movement.unsqueeze, fold=folds.unsqueezed, constants=(1,), takes_integers=True
    ),
    "Where": on_constants(folds.applied(np.where)),
}
OPERATORS = dict(sorted({**OPERATORS, **LAYERS}.items()))
"""Every operator that is computed, by its name."""
