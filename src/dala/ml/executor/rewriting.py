"""Nodes rewritten as others before they are laid out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dala.base.record import changed
from dala.ml.executor.dtypes import NUMBERS
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.sizes import require
from dala.ml.onnx.contents import Node


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
    """Yields a normalization by numbers that are known, as a product and a sum for each channel."""
    node = context.node
    scale, bias, mean, variance = (np.asarray(context.array(i), np.float64) for i in range(1, 5))
    channels = (*context.shape(), 1, 1)[1]
    for item in (scale, bias, mean, variance):
        fits = item.shape == (channels,)
        require(node, fits, f"{item.shape} are none for each of {channels} channels")
    factor = scale / np.sqrt(variance + node.get("epsilon", 1e-5))
    shape = (-1, *(1,) * (len(context.shape()) - 2))
    names = [f"{node.outputs[0]} {part}" for part in ("factor", "offset")]
    for name, array in zip(names, (factor, bias - mean * factor), strict=True):
        context.builder.values[name] = array.astype(np.float32).reshape(shape)
    yield changed(node, inputs=(node.inputs[0], *names))
