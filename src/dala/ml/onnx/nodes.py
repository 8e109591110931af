"""The nodes of a graph, and graphs inside of them, as plain records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dala.base.record import changed, record


@record
class Node:
    """One operation: names of values in and out, and its attributes as plain values."""

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    opset: int
    captures: tuple[str, ...] = ()
    """Values that graphs inside of it take from around it."""

    def __str__(self) -> str:
        return f"{self.op} ({self.name or self.outputs[0]})"

    @property
    def uses(self) -> tuple[str, ...]:
        """The values that it takes: its inputs, and what graphs inside of it take from outside."""
        return (*self.inputs, *self.captures)

    def has(self, index: int) -> bool:
        """Returns whether the input of that number is given; optional ones may be left out."""
        return index < len(self.inputs) and bool(self.inputs[index])

    def get(self, name: str, default: Any = None) -> Any:
        """Returns an attribute, or what stands for it where it is left out."""
        return self.attributes.get(name, default)


@record
class Body:
    """A graph inside of a node; what it takes from around it has no place among its inputs."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, np.ndarray]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def captures(self) -> tuple[str, ...]:
        """The values that it takes from around it."""
        own = {*self.constants, *self.inputs, *(name for it in self.nodes for name in it.outputs)}
        taken = [*(name for it in self.nodes for name in it.uses), *self.outputs]
        return tuple(dict.fromkeys(name for name in taken if name and name not in own))


def inlined(
    body: Body, prefix: str, given: Mapping[str, str], results: Sequence[str]
) -> Iterator[Node]:
    """Yields the nodes of a body; what it takes is named so around it, and so are its results.

    Names of its own get a prefix.
    """
    own = {name for node in body.nodes for name in node.outputs if name} | {*body.constants}
    names = {name: f"{prefix}{name}" for name in own} | dict(given)
    for name, array in body.constants.items():
        yield Node("Constant", "", (), (names[name],), {"value": array}, _opset(body))
    for node in body.nodes:
        yield renamed(node, names)
    for name, result in zip(body.outputs, results, strict=False):
        if result:
            yield Node("Identity", "", (names.get(name, name),), (result,), {}, _opset(body))


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """Returns a node with other names for what it takes and makes, bodies in it included."""

    def by(name: str) -> str:
        return names.get(name, name)

    attributes = {
        key: _renamed_body(item, names) if isinstance(item, Body) else item
        for key, item in node.attributes.items()
    }
    return changed(
        node,
        inputs=tuple(map(by, node.inputs)),
        outputs=tuple(map(by, node.outputs)),
        captures=tuple(map(by, node.captures)),
        attributes=attributes,
    )


def _renamed_body(body: Body, names: Mapping[str, str]) -> Body:
    """Returns a body that takes values by other names from around it."""
    own = {name for node in body.nodes for name in node.outputs} | {*body.constants, *body.inputs}
    outer = {name: new for name, new in names.items() if name not in own}
    return changed(
        body,
        nodes=tuple(renamed(node, outer) for node in body.nodes),
        outputs=tuple(outer.get(name, name) for name in body.outputs),
    )


def _opset(body: Body) -> int:
    return body.nodes[0].opset if body.nodes else 13
