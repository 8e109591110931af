"""Attributes of nodes that kernels do not compute, each with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dala.ml.executor.dtypes import CASTS
from dala.ml.onnx.contents import Node

Check = Callable[[Node, Mapping[str, np.ndarray]], str]
"""Why kernels cannot compute a node of a graph with these constants; empty if they can."""


def nothing(*_: Any) -> str:
    """No reason."""
    return ""


def without(attribute: str, reason: str = "") -> Check:
    """Refuses an attribute unless it is 0."""
    return lambda node, _: (reason or attribute) if node.get(attribute, 0) else ""


def one_of(attribute: str, default: str, known: Sequence[str]) -> Check:
    """Refuses other values of an attribute."""

    def check(node: Node, _: Mapping[str, np.ndarray]) -> str:
        given = node.get(attribute, default)
        return "" if given in known else f"{attribute} {given!r}"

    return check


def castable(node: Node, _: Mapping[str, np.ndarray]) -> str:
    return "" if node.get("to") in CASTS else f"to type {node.get('to')}"
