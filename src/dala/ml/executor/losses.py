"""Losses: how far shares of classes are from those that were expected."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

from dala.errors import ModelError
from dala.kernels.base.builtin import written
from dala.kernels.tensor.reductions import reduce_max, reduce_sum
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.sizes import require
from dala.ml.executor.steps import Steps
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage


def _logarithms(steps: Steps, x: Buffer, axis: int, *, into: Buffer | None = None) -> Buffer:
    largest = steps.reduce(reduce_max, x, [axis])
    total = steps.reduce(reduce_sum, steps.elementwise("dala.exp(x0 - x1)", x, largest), [axis])
    return steps.elementwise("x0 - x1 - dala.log(x2)", x, largest, total, into=into)


def cross_entropy(context: NodeContext) -> Iterable[Stage]:
    """SoftmaxCrossEntropyLoss, and the logarithms as a second output."""
    node, x, steps = context.node, context.input(), Steps()
    require(node, len(x.shape) > 1, f"there are no classes in {x.shape}")
    wanted = len(node.outputs) > 1 and bool(node.outputs[1])
    into = context.output(x.shape, x.scalar, 1) if wanted else None
    _loss(context, steps, _logarithms(steps, x, 1, into=into))
    return steps


def likelihood(context: NodeContext) -> Iterable[Stage]:
    """NegativeLogLikelihoodLoss."""
    steps, x = Steps(), context.input()
    require(context.node, len(x.shape) > 1, f"there are no classes in {x.shape}")
    _loss(context, steps, x)
    return steps


def _loss(context: NodeContext, steps: Steps, x: Buffer) -> None:
    """The weighted terms of each place, or their sum or mean."""
    node, classes = context.node, context.input(1)
    n, c, *rest = x.shape
    fits = classes.shape == (n, *rest)
    require(node, fits, f"classes of {classes.shape} are not one for each place of {x.shape}")
    how = node.get("reduction", "mean")
    if how not in ("none", "sum", "mean"):
        raise ModelError(f"{node}: reduction is {how!r}, not 'none', 'sum' or 'mean'.")
    inner = math.prod(rest)
    weighted = node.has(2)
    ignored = node.get("ignore_index")
    given = [reshaped(x, (n, c, inner)), reshaped(classes, (n, inner))]
    given += [context.input(2)] if weighted else []
    if weighted:
        require(node, given[2].shape == (c,), f"weights are {given[2].shape}, not ({c},)")
    terms, weights = (
        steps.run(_picking_kernel(weighted, ignored, part), given, (n, inner), scalar=x.scalar)
        for part in ("terms", "weights")
    )
    if how == "none":
        out = context.output((n, *rest), x.scalar)
        steps.elementwise("x0", reshaped(terms, out.shape), into=out)
        return
    out = context.output((), x.scalar)
    flat = (1, n * inner)
    if how == "sum":
        steps.reduce(reduce_sum, reshaped(terms, flat), [1], into=out)
        return
    total, whole = (steps.reduce(reduce_sum, reshaped(it, flat), [1]) for it in (terms, weights))
    steps.elementwise("x0 / x1", reshaped(total, ()), reshaped(whole, ()), into=out)


@cache
def _picking_kernel(weighted: bool, ignored: int | None, part: str) -> Kernel:
    """A kernel for the weight of each place's class, or for minus its weighted logarithm."""
    lines = ["i, j = dala.position(2)", "k = classes[i, j]"]
    lines.append("share = weight[k]" if weighted else "share = 1.0")
    if ignored is not None:
        lines.append(f"share = 0.0 if k == {ignored} else share")
    lines.append("return -x[i, k, j] * share" if part == "terms" else "return share")
    given = "x, classes, weight" if weighted else "x, classes"
    return written("pick", f"def pick({given}):\n    " + "\n    ".join(lines))
