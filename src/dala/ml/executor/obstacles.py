"""What is in the way of computing a model by kernels, told before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dala.ir.types import dtype_of
from dala.ml.executor.operator_record import Operator
from dala.ml.executor.operators import OPERATORS
from dala.ml.executor.sizes import as_the_model_says
from dala.ml.onnx.contents import Contents, Node
from dala.ml.onnx.functions import has_function


def obstacles_in(contents: Contents) -> list[str]:
    """Returns the nodes that kernels cannot compute, each with the reason."""
    found = [
        f"constant {name!r}: {dtype} is not computed by kernels"
        for name, dtype in contents.unreadable.items()
    ]
    known = {*contents.constants, *contents.unreadable, ""}
    integers = {item.name for item in contents.inputs if not dtype_of(item.numpy).is_float}
    for node in contents.nodes:
        operator = OPERATORS.get(node.op, Operator())
        is_folded = operator.fold is not None and known.issuperset(node.inputs)
        if operator.is_known_from_shapes or is_folded:
            known.update(node.outputs)
            continue
        reason = _obstacle(node, operator, contents.constants)
        takes_integers = not integers.isdisjoint(node.inputs[operator.like : operator.like + 1])
        if not reason and takes_integers and operator.has_kernels and not operator.takes_integers:
            reason = "it is computed of floats only"
        with as_the_model_says(node):
            result = operator.gives(node)
        gives_integers = takes_integers if result is None else not result.is_float
        if gives_integers and operator.parts is None and not operator.on_host:
            integers.update(node.outputs if result is None else node.outputs[:1])
        if reason:
            found.append(f"{node}: {reason}")
    return found


def _obstacle(node: Node, operator: Operator, constants: Mapping[str, np.ndarray]) -> str:
    """Why kernels cannot compute a node; empty if they can."""
    if not operator.has_kernels and not has_function(node):
        return "no kernel computes it"
    with as_the_model_says(node):
        return operator.check(node, constants)
