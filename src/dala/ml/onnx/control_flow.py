"""What loops and branches are told by constants, checked: ONNX Runtime reads them unseen."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dala.errors import ModelError
from dala.ml.onnx.graph import graphs_of, label_of
from dala.ml.onnx.protobuf import Message

_NUMBERS = {"Loop": (0, 1), "If": (0,)}
"""Which inputs of an operator are one number each: how often, and whether at all."""


def check_control_flow(what: str, graph: Message, outer: Mapping[str, int] | None = None) -> None:
    """Refuses loops and branches whose trip count or condition is a constant of another size."""
    counts = dict(outer or {})
    for tensor in graph.get("initializer", []):
        counts[tensor.get("name", "")] = math.prod(tensor.get("dims", []))
    for node in graph.get("node", []):
        for attribute in node.get("attribute", []):
            if node.get("op_type") == "Constant" and "t" in attribute:
                made = math.prod(attribute["t"].get("dims", []))
                counts.update(dict.fromkeys(node.get("output", []), made))
    for node in graph.get("node", []):
        names = node.get("input", [])
        for index in _NUMBERS.get(node.get("op_type", ""), ()):
            count = counts.get(names[index], 1) if index < len(names) else 1
            if count != 1:
                raise ModelError(
                    f"{what}: {label_of(node)} is told by {names[index]!r} whether to go on, which "
                    f"has {count:,} elements: it has to be one."
                )
        for _, inner in graphs_of(node):
            check_control_flow(what, inner, counts)
