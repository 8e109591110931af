"""What is known of an operator of ONNX, as one record."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dala.base.record import record
from dala.ir.types import Scalar
from dala.ml.executor import constant_folding as folds
from dala.ml.executor import operator_checks as checks
from dala.ml.executor import rewriting
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.pointwise import (
    Write,
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


def pointwise(text: str, fold: Callable[..., object] | None = None, **defaults: float) -> Operator:
    """Returns an operator of floats, given as a text."""
    return Operator(
        write=template(text, **defaults), fold=None if fold is None else folds.applied(fold)
    )


def on_constants(fold: folds.Fold) -> Operator:
    """Returns an operator that no kernel computes."""
    return Operator(fold=fold)
