"""The operators of ONNX: one record for each, with all that is known of it.

To add an operator, add its record here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from dala.base.record import record
from dala.ir.types import S32, Scalar
from dala.kernels.tensor.reductions import reduce_max, reduce_mean, reduce_min, reduce_sum
from dala.ml.executor import constant_folding as folds
from dala.ml.executor import convolutions, matmul, movement, reductions, rewriting, spatial
from dala.ml.executor import operator_checks as checks
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.pointwise import (
    CASTS,
    Write,
    cast,
    clip,
    joined,
    nested,
    power,
    template,
)
from dala.ml.onnx.contents import Node
from dala.runtime.pipelines.composite import Stage


def _as_given(_: Node) -> Scalar | None:
    return None


@record
class Operator:
    """An operator of ONNX: how it is computed, of what, and what of it cannot be."""

    expand: Callable[[NodeContext], Iterable[Stage]] | None = None
    """The stages of a node, for an operator that is more than an expression."""
    write: Write | None = None
    """The expression of a node, for an operator that goes element by element."""
    write_integers: Write | None = None
    """The same where the elements are integers, if it is another."""
    rewrite: Callable[[NodeContext], Iterable[Node]] = rewriting.unchanged
    """The nodes that an elementwise node is first written as."""
    fold: folds.Fold | None = None
    """What NumPy makes of a node whose inputs are all constants."""
    passes_on: bool = False
    """Whether the result is the first input."""
    is_known_from_shapes: bool = False
    """Whether the result is a constant once shapes are known, whatever the inputs are."""
    constants: tuple[int, ...] = ()
    """The numbers of inputs that have to be known before a model runs."""
    takes_integers: bool = False
    """Whether elements may be integers as well as floats."""
    gives: Callable[[Node], Scalar | None] = _as_given
    """The dtype of a node's result; None for that of its first input."""
    check: checks.Check = checks.nothing
    """Why kernels cannot compute a node; empty if they can."""

    @property
    def has_kernels(self) -> bool:
        """Whether inputs may be other than constants."""
        return self.passes_on or self.expand is not None or self.write is not None


def _pointwise(text: str, fold: Callable[..., object] | None = None, **defaults: float) -> Operator:
    """Returns an operator of floats, given as a text."""
    return Operator(
        write=template(text, **defaults), fold=None if fold is None else folds.applied(fold)
    )


def _on_constants(fold: folds.Fold) -> Operator:
    """Returns an operator that no kernel computes."""
    return Operator(fold=fold)


OPERATORS: dict[str, Operator] = {
    "Abs": Operator(
        write=template("dala.abs({0})"), fold=folds.applied(np.abs), takes_integers=True
    ),
    "Add": Operator(write=joined("+"), fold=folds.applied(np.add), takes_integers=True),
    "And": _on_constants(folds.applied(np.logical_and)),
    "ArgMax": Operator(
        expand=reductions.argmax,
        takes_integers=True,
        gives=lambda _: S32,
        check=checks.without("select_last_index", "the last of equals"),
    ),
    "AveragePool": Operator(expand=spatial.pool, check=checks.pool),
    "BatchNormalization": Operator(
        write=template("{0} * {1} + {2}"),
        rewrite=rewriting.affine,
        constants=(1, 2, 3, 4),
        check=checks.without("training_mode", "training"),
    ),
    "Cast": Operator(
        write=cast,
        fold=folds.cast,
        takes_integers=True,
        gives=lambda node: CASTS.get(node.get("to")),
        check=checks.castable,
    ),
    "Ceil": _pointwise("dala.ceil({0})", np.ceil),
    "Celu": _pointwise(
        "max({0}, 0.0) + min({alpha} * (dala.exp(min({0}, 0.0) / {alpha}) - 1.0), 0.0)", alpha=1.0
    ),
    "Clip": Operator(write=clip),
    "Concat": Operator(expand=movement.concat, fold=folds.concatenated, takes_integers=True),
    "Constant": _on_constants(folds.constant),
    "ConstantOfShape": _on_constants(folds.filled),
    "Conv": Operator(expand=convolutions.conv, constants=(1, 2), check=checks.spatial),
    "ConvTranspose": Operator(
        expand=convolutions.transposed_conv, constants=(1, 2), check=checks.spatial
    ),
    "DepthToSpace": Operator(expand=movement.depth_to_space),
    "Div": Operator(
        write=joined("/"),
        # ONNX cuts off, where the kernel language rounds down.
        write_integers=template("dala.abs({0}) // dala.abs({1}) * dala.sign({0}) * dala.sign({1})"),
        fold=folds.divided,
        takes_integers=True,
    ),
    "Dropout": Operator(passes_on=True, takes_integers=True),
    "Elu": _pointwise("max({0}, 0.0) + {alpha} * (dala.exp(min({0}, 0.0)) - 1.0)", alpha=1.0),
    "Equal": _on_constants(folds.applied(np.equal)),
    "Erf": _pointwise("dala.erf({0})"),
    "Exp": _pointwise("dala.exp({0})", np.exp),
    "Expand": Operator(
        expand=movement.expand, fold=folds.expanded, constants=(1,), takes_integers=True
    ),
    "Flatten": Operator(expand=movement.flatten, fold=folds.flattened, takes_integers=True),
    "Floor": _pointwise("dala.floor({0})", np.floor),
    "Gather": Operator(expand=movement.gather, fold=folds.gathered, takes_integers=True),
    "GatherND": Operator(
        expand=movement.gather_places, takes_integers=True, check=checks.without("batch_dims")
    ),
    "Gemm": Operator(expand=matmul.gemm, constants=(1, 2), check=checks.without("transA")),
    "GlobalAveragePool": Operator(expand=spatial.global_pool),
    "GlobalMaxPool": Operator(expand=spatial.global_pool),
    "Greater": _on_constants(folds.applied(np.greater)),
    "GreaterOrEqual": _on_constants(folds.applied(np.greater_equal)),
    "HardSigmoid": _pointwise("min(max({0} * {alpha} + {beta}, 0.0), 1.0)", alpha=0.2, beta=0.5),
    "HardSwish": _pointwise("{0} * min(max({0} / 6.0 + 0.5, 0.0), 1.0)"),
    "Identity": Operator(passes_on=True, fold=folds.applied(np.asarray), takes_integers=True),
    "LeakyRelu": _pointwise("max({0}, 0.0) + {alpha} * min({0}, 0.0)", alpha=0.01),
    "Less": _on_constants(folds.applied(np.less)),
    "LessOrEqual": _on_constants(folds.applied(np.less_equal)),
    "Log": _pointwise("dala.log({0})", np.log),
    "MatMul": Operator(expand=matmul.multiply),
    "Max": Operator(
        write=nested("max"),
        rewrite=rewriting.pairwise,
        fold=folds.accumulated(np.maximum),
        takes_integers=True,
    ),
    "MaxPool": Operator(expand=spatial.pool, check=checks.pool),
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
    "Not": _on_constants(folds.applied(np.logical_not)),
    "Or": _on_constants(folds.applied(np.logical_or)),
    "PRelu": _pointwise("max({0}, 0.0) + {1} * min({0}, 0.0)"),
    "Pad": Operator(
        expand=movement.pad,
        constants=(1, 2, 3),
        takes_integers=True,
        check=checks.one_of("mode", "constant", tuple(movement.BORDERS)),
    ),
    "Pow": Operator(write=power, fold=folds.applied(np.power)),
    "Range": _on_constants(folds.ranged),
    "Reciprocal": _pointwise("1.0 / {0}", np.reciprocal),
    "ReduceMax": Operator(
        expand=reductions.reduce_by(reduce_max), constants=(1,), takes_integers=True
    ),
    "ReduceMean": Operator(expand=reductions.reduce_by(reduce_mean), constants=(1,)),
    "ReduceMin": Operator(
        expand=reductions.reduce_by(reduce_min), constants=(1,), takes_integers=True
    ),
    "ReduceProd": _on_constants(folds.reduced(np.multiply)),
    "ReduceSum": Operator(
        expand=reductions.reduce_by(reduce_sum),
        fold=folds.reduced(np.add),
        constants=(1,),
        takes_integers=True,
    ),
    "Relu": _pointwise("max({0}, 0.0)"),
    "Reshape": Operator(
        expand=movement.reshape, fold=folds.reshaped, constants=(1,), takes_integers=True
    ),
    "Resize": Operator(expand=spatial.resize, constants=(1, 2, 3), check=checks.resize),
    "Round": _on_constants(folds.applied(np.round)),
    "Selu": _pointwise(
        "{gamma} * (max({0}, 0.0) + {alpha} * (dala.exp(min({0}, 0.0)) - 1.0))",
        alpha=1.6732632,
        gamma=1.050701,
    ),
    "Shape": Operator(expand=movement.shape_of, is_known_from_shapes=True),
    "Sigmoid": _pointwise("dala.sigmoid({0})"),
    "Slice": Operator(
        expand=movement.slice_, fold=folds.sliced, constants=(1, 2, 3, 4), takes_integers=True
    ),
    "Softmax": Operator(expand=reductions.softmax),
    "Softplus": _pointwise("max({0}, 0.0) + dala.log(1.0 + dala.exp(-dala.abs({0})))"),
    "Softsign": _pointwise("{0} / (1.0 + dala.abs({0}))"),
    "SpaceToDepth": Operator(expand=movement.space_to_depth),
    "Split": Operator(expand=movement.split, constants=(1,), takes_integers=True),
    "Sqrt": _pointwise("dala.sqrt({0})", np.sqrt),
    "Squeeze": Operator(
        expand=movement.squeeze, fold=folds.squeezed, constants=(1,), takes_integers=True
    ),
    "Sub": Operator(write=joined("-"), fold=folds.applied(np.subtract), takes_integers=True),
    "Sum": Operator(write=joined("+"), rewrite=rewriting.pairwise, takes_integers=True),
    "Tanh": _pointwise("dala.tanh({0})"),
    "Tile": Operator(expand=movement.tile, fold=folds.tiled, constants=(1,), takes_integers=True),
    "Transpose": Operator(expand=movement.transpose, fold=folds.transposed, takes_integers=True),
    "Unsqueeze": Operator(
        expand=movement.unsqueeze, fold=folds.unsqueezed, constants=(1,), takes_integers=True
    ),
    "Upsample": Operator(expand=spatial.resize, constants=(1,), check=checks.resize),
    "Where": _on_constants(folds.applied(np.where)),
}
"""Every operator that is computed, by its name."""
