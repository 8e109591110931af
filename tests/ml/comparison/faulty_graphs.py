"""Small random networks, and faults that are put into one node of the executor."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
from ml.executor.graphs import graph_of, node, sample

from dala.base.record import changed
from dala.devices import current_device
from dala.ml.executor import graph_builder
from dala.ml.executor.epilogue import Epilogue
from dala.ml.executor.operators import OPERATORS

SHAPE = (1, 4, 6, 6)
WINDOW = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
CONSTANTS: dict[str, Any] = {
    "w": sample(4, 4, 3, 3) / 6,
    "deep": sample(4, 1, 3, 3) / 3,
    "point": sample(4, 4, 1, 1) / 2,
    "bias": sample(4, seed=3),
    "plane": sample(4, 1, 1, seed=4),
    "var": np.abs(sample(4, seed=5)) + 1,
    "square": sample(6, 6, seed=6) / 2,
    "low": np.float32(-2),
    "high": np.float32(2),
}

MOVES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "conv": ("Conv", "{0} w bias", WINDOW),
    "depthwise": ("Conv", "{0} deep bias", {**WINDOW, "group": 4}),
    "pointwise": ("Conv", "{0} point bias", {"kernel_shape": [1, 1]}),
    "relu": ("Relu", "{0}", {}),
    "sigmoid": ("Sigmoid", "{0}", {}),
    "tanh": ("Tanh", "{0}", {}),
    "leaky": ("LeakyRelu", "{0}", {"alpha": 0.1}),
    "clip": ("Clip", "{0} low high", {}),
    "scale": ("Mul", "{0} plane", {}),
    "skip": ("Add", "{0} {1}", {}),
    "norm": ("BatchNormalization", "{0} bias bias bias var", {}),
    "most": ("MaxPool", "{0}", {**WINDOW, "strides": [1, 1]}),
    "mean": ("AveragePool", "{0}", {**WINDOW, "strides": [1, 1]}),
    "turn": ("Transpose", "{0}", {"perm": [0, 1, 3, 2]}),
    "product": ("MatMul", "{0} square", {}),
    "share": ("Softmax", "{0}", {"axis": 3}),
}
"""Operators, their inputs and attributes; all of them keep the shape."""
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "Conv": {"pads": [0, 0, 2, 2]},
    "MaxPool": {"pads": [0, 0, 2, 2]},
    "AveragePool": {"count_include_pad": 1},
    "Transpose": {"perm": [0, 1, 2, 3]},
    "Softmax": {"axis": 2},
}
"""What an attribute is changed to."""


def network(draw: random.Random, length: int) -> tuple[bytes, list[str]]:
    """A model from x to y of so many nodes, and the moves that it is made of."""
    moves = [draw.choice(list(MOVES)) for _ in range(length)]
    return made_of(moves, draw), moves


def mobile(blocks: int) -> tuple[bytes, list[str]]:
    """A model as deep as MobileNet, of blocks that widen, filter and add."""
    block = ["pointwise", "clip", "depthwise", "clip", "pointwise", "norm", "skip"]
    moves = block * blocks
    return made_of(moves, random.Random(0)), moves


def made_of(moves: list[str], draw: random.Random) -> bytes:
    values, nodes = ["x"], []
    for i, move in enumerate(moves):
        op, inputs, attributes = MOVES[move]
        out = "y" if i == len(moves) - 1 else f"v{i}"
        other = values[-4] if len(values) > 4 and draw.random() < 0.7 else values[0]
        item = node(op, inputs.format(values[-1], other), out, **attributes)
        item.name = f"{i} {move}"
        nodes.append(item)
        values.append(out)
    return graph_of(nodes, {"x": sample(*SHAPE)}, CONSTANTS)


@contextmanager
def fault(kind: str, op: str, victim: str, device: str | None) -> Iterator[None]:
    """Inside, the executor computes the node of that name wrongly; on one device, or on all."""

    def strikes(name: str) -> bool:
        return name == victim and device in (None, current_device().id)

    if kind == "fused":
        with _fused_fault(strikes):
            yield
        return
    before = OPERATORS[op]
    OPERATORS[op] = _altered(before, kind, op, strikes)
    try:
        yield
    finally:
        OPERATORS[op] = before


def _altered(record: Any, kind: str, op: str, strikes: Callable[[str], bool]) -> Any:
    if record.write is not None:
        write = record.write
        return changed(
            record,
            write=lambda node, given: (
                f"({write(node, given)}) * 1.01 + 0.05"
                if strikes(node.name)
                else write(node, given)
            ),
        )
    expand = record.expand

    def expanded(context: Any) -> Any:
        given = context.node
        if not strikes(given.name):
            return expand(context)
        if kind == "attribute":
            return expand(
                changed(
                    context, node=changed(given, attributes={**given.attributes, **ATTRIBUTES[op]})
                )
            )
        wrong = f"{given.inputs[1]} wrong"
        context.builder.values[wrong] = context.builder.values[given.inputs[1]] * np.float32(1.05)
        inputs = (given.inputs[0], wrong, *given.inputs[2:])
        return expand(changed(context, node=changed(given, inputs=inputs)))

    return changed(record, expand=expanded)


@contextmanager
def _fused_fault(strikes: Callable[[str], bool]) -> Iterator[None]:
    """Inside, a kernel that computes the node together with others adds something to the end."""
    before = graph_builder.epilogue_of

    def altered(values: Any, region: Any, roots: Any) -> Any:
        epilogue, names = before(values, region, roots)
        if len(region) > 1 and any(strikes(values[item].node.name) for item in region):
            lines = (*epilogue.lines, f"wrong = {epilogue.result} + 0.05")
            return Epilogue(lines, "wrong"), names
        return epilogue, names

    graph_builder.epilogue_of = altered
    try:
        yield
    finally:
        graph_builder.epilogue_of = before


def _may_fuse(data: bytes, moves: list[str], at: int) -> bool:
    """Whether the node before is computed together with this one: nobody else uses its result."""
    nodes = onnx.load_model_from_string(data).graph.node
    uses = sum(nodes[at - 1].output[0] in item.input for item in nodes)
    operator = OPERATORS[nodes[at - 1].op_type]
    return uses == 1 and (operator.write is not None or nodes[at - 1].op_type == "Conv")


def faults(count: int, seed: int) -> Iterator[tuple[bytes, str, str, str, str | None]]:
    """Yields models with a kind of fault, the operator and node that has it, and the device."""
    draw = random.Random(seed)
    deep = mobile(6)
    while count:
        data, moves = deep if count % 10 == 0 else network(draw, draw.randint(3, 6))
        at = draw.randrange(len(moves))
        op = MOVES[moves[at]][0]
        kinds = []
        if OPERATORS[op].write is not None:
            kinds.append("kernel")
            if at and _may_fuse(data, moves, at):
                kinds.append("fused")
        elif op in ("Conv", "MatMul"):
            kinds.append("weight")
        if op in ATTRIBUTES and moves[at] != "pointwise":
            kinds.append("attribute")
        if not kinds:
            continue
        count -= 1
        yield (
            data,
            draw.choice(kinds),
            op,
            f"{at} {moves[at]}",
            draw.choice((None, "cpu", "webgpu")),
        )
