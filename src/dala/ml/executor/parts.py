"""Nodes written as nodes of other operators."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator

import numpy as np

from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.sizes import axis_in
from dala.ml.onnx.contents import Node

Parts = Callable[[NodeContext], Iterator[Node]]
_LINE = re.compile(r"(\w+) = (\w+)\((.*)\)(.*)")


def written_as(*lines: str) -> Parts:
    """Returns nodes by lines such as "a = ReduceMax(0, 1) keepdims=1".

    Numbers are inputs, y is the result, other names lie between. Each node has the attributes of
    the one that is written so, but for those that its line says.
    """

    def parts(context: NodeContext) -> Iterator[Node]:
        node = context.node

        def named(name: str) -> str:
            if name.isdigit():
                return node.inputs[int(name)] if node.has(int(name)) else ""
            return node.outputs[0] if name == "y" else between(node, name)

        for line in lines:
            found = _LINE.fullmatch(line)
            assert found is not None
            made, op, given, said = found.groups()
            more = {key: int(value) for key, value in (item.split("=") for item in said.split())}
            inputs = tuple(named(item) for item in given.split(", "))
            yield part_of(node, op, inputs, named(made), **more)

    return parts


def part_of(node: Node, op: str, inputs: tuple[str, ...], output: str, **more: object) -> Node:
    """Returns a node with the attributes of another, and some of its own."""
    return Node(op, str(node), inputs, (output,), {**node.attributes, **more}, node.opset)


def between(node: Node, name: str) -> str:
    """Returns a name for what lies between the nodes that another one is written as."""
    made = next(filter(None, node.outputs))
    return f"{made} {name}"


def constant_of(node: Node, name: str, value: np.ndarray) -> Node:
    """Returns a node that makes a constant, for others that a node is written as."""
    return Node("Constant", str(node), (), (name,), {"value": value}, node.opset)


def along_rows(parts: Callable[[Node, str, str, int, int], Iterator[Node]]) -> Parts:
    """Returns nodes along an axis; before opset 13, along all axes from one on, seen as one."""

    def coerced(context: NodeContext) -> Iterator[Node]:
        node, shape = context.node, context.shape()
        x, made = node.inputs[0], node.outputs[0]
        if node.opset >= 13:
            axis = axis_in(node, node.get("axis", -1), len(shape))
            yield from parts(node, x, made, axis, shape[axis])
            return
        axis = axis_in(node, node.get("axis", 1), len(shape))
        rows, flat, sizes = (between(node, name) for name in ("rows", "flat", "sizes"))
        yield part_of(node, "Flatten", (x,), flat, axis=axis)
        yield from parts(node, flat, rows, 1, math.prod(shape[axis:]))
        yield constant_of(node, sizes, np.asarray(shape, np.int64))
        yield part_of(node, "Reshape", (rows, sizes), made, allowzero=1)

    return coerced


def log_softmax(node: Node, x: str, made: str, axis: int, _: int) -> Iterator[Node]:
    """LogSoftmax along an axis, which loses nothing where shares are small."""
    most, less, power, total, log = (between(node, name) for name in ("m", "s", "e", "t", "l"))
    yield part_of(node, "ReduceMax", (x,), most, axes=[axis], keepdims=1)
    yield part_of(node, "Sub", (x, most), less)
    yield part_of(node, "Exp", (less,), power)
    yield part_of(node, "ReduceSum", (power,), total, axes=[axis], keepdims=1)
    yield part_of(node, "Log", (total,), log)
    yield part_of(node, "Sub", (less, log), made)


def hardmax(node: Node, x: str, made: str, axis: int, size: int) -> Iterator[Node]:
    """Hardmax along an axis: 1 where the first of the largest lies."""
    most, first, places, equal = (between(node, name) for name in ("m", "f", "p", "e"))
    yield part_of(node, "ArgMax", (x,), most, axis=axis, keepdims=0, select_last_index=0)
    yield constant_of(node, places, np.asarray([0, 1], np.float32))
    yield constant_of(node, first, np.asarray(size, np.int64))
    yield part_of(node, "OneHot", (most, first, places), equal, axis=axis)
    yield part_of(node, "CastLike", (equal, x), made)
