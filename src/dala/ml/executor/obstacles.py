"""What is in the way of computing a model by kernels, told before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dala.ir.types import F32
from dala.ml.executor.operator_record import Operator
from dala.ml.executor.operators import OPERATORS
from dala.ml.executor.pointwise import STORED
from dala.ml.onnx.contents import Contents, Node


def obstacles_in(contents: Contents) -> list[str]:
    """Returns the nodes that kernels cannot compute, each with the reason."""
    found = [
        f"input {item.name!r}: {item.numpy} is not held by every device"
        for item in contents.inputs
        if item.numpy not in STORED
    ]
    found += [
        f"constant {name!r}: {dtype} is not computed by kernels"
        for name, dtype in contents.unreadable.items()
    ]
    known = {*contents.constants, *contents.unreadable, ""}
    integers = {item.name for item in contents.inputs if item.numpy.kind != "f"}
    for node in contents.nodes:
        operator = OPERATORS.get(node.op, Operator())
        is_folded = operator.fold is not None and known.issuperset(node.inputs)
        if operator.is_known_from_shapes or is_folded:
            known.update(node.outputs)
            continue
        reason = _obstacle(node, operator, known, contents.constants)
        takes_integers = not integers.isdisjoint(node.inputs[:1])
        if not reason and takes_integers and not operator.takes_integers:
            reason = "it is computed of floats only"
        result = operator.gives(node)
        if takes_integers if result is None else result != F32:
            integers.update(node.outputs)
        if reason:
            found.append(f"{node}: {reason}")
    return found


def _obstacle(
    node: Node, operator: Operator, known: set[str], constants: Mapping[str, np.ndarray]
) -> str:
    """Why kernels cannot compute a node; empty if they can."""
    if not operator.has_kernels:
        return "no kernel computes it"
    for index in operator.constants:
        if node.has(index) and node.inputs[index] not in known:
            return f"its input {node.inputs[index]!r} is not known before the model runs"
    return operator.check(node, constants)
