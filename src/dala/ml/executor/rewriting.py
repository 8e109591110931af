"""Nodes rewritten as others before they are laid out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dala.base.record import changed
from dala.ml.executor.dtypes import NUMBERS
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.pointwise import literal
from dala.ml.executor.sizes import require
from dala.ml.executor.steps import Steps
from dala.ml.onnx.contents import Node
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped


def unchanged(context: NodeContext) -> Iterator[Node]:
    """Yields the node itself."""
    yield context.node


def pairwise(context: NodeContext) -> Iterator[Node]:
    """Yields a node of any number of inputs as nodes of two, so that kernels may share them out."""
    node = context.node
    if len(node.inputs) <= 2:
        yield node
        return
    before, *others, last = node.inputs
    for number, name in enumerate(others):
        made = context.builder.split_off(node, number)
        part = {**node.attributes, "whole": 0}
        yield changed(node, inputs=(before, name), outputs=(made,), attributes=part)
        before = made
    whole = {**node.attributes, "whole": len(node.inputs)}
    yield changed(node, inputs=(before, last), attributes=whole)


def with_bits(context: NodeContext) -> Iterator[Node]:
    """Yields the node with the width of its elements beside its attributes."""
    bits = {"bits": context.dtype().bits}
    yield changed(context.node, attributes={**context.node.attributes, **bits})


def cast_like(context: NodeContext) -> Iterator[Node]:
    """Yields a Cast to the type of the second input."""
    node = context.node
    to = NUMBERS[context.dtype(1).name]
    yield changed(node, inputs=node.inputs[:1], attributes={**node.attributes, "to": to})


def affine(context: NodeContext) -> Iterator[Node]:
    """Yields a normalization by given numbers, as a product and a sum for each channel."""
    node = context.node
    channels = (*context.shape(), 1, 1)[1]
    for i in range(1, 5):
        fits = context.shape(i) == (channels,)
        require(node, fits, f"{context.shape(i)} are none for each of {channels} channels")
    shape = (channels, *(1,) * (len(context.shape()) - 2))
    names = [f"{node.outputs[0]} {part}" for part in ("factor", "offset")]
    if all(context.is_constant(i) for i in range(1, 5)):
        found = _affine_arrays(context)
        context.builder.values.update(
            {name: it.reshape(shape) for name, it in zip(names, found, strict=True)}
        )
    else:
        computed = _affine_buffers(context)
        context.builder.values.update(
            {name: reshaped(it, shape) for name, it in zip(names, computed, strict=True)}
        )
    yield changed(node, inputs=(node.inputs[0], *names))


def _affine_arrays(context: NodeContext) -> tuple[np.ndarray, np.ndarray]:
    scale, bias, mean, variance = (np.asarray(context.array(i), np.float64) for i in range(1, 5))
    factor = scale / np.sqrt(variance + context.node.get("epsilon", 1e-5))
    dtype = context.dtype().numpy
    return factor.astype(dtype), (bias - mean * factor).astype(dtype)


def _affine_buffers(context: NodeContext) -> tuple[Buffer, Buffer]:
    scale, bias, mean, variance = (context.input(i) for i in range(1, 5))
    steps, epsilon = Steps(), literal(context.node.get("epsilon", 1e-5))
    factor = steps.elementwise(f"x0 / dala.sqrt(x1 + {epsilon})", scale, variance)
    offset = steps.elementwise("x0 - x1 * x2", bias, mean, factor)
    context.builder.stages.extend(steps)
    return factor, offset
