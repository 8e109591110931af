"""The graph of a TensorFlow.js model as its JSON has it, checked before anything is made of it."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from dala.base.record import record
from dala.errors import ModelError

# By name and by number, as both are written. Graphs that count in 64 bits keep doing so.
DTYPES: dict[str | int, str] = {
    **{"DT_FLOAT": "float32", "DT_INT32": "int32", "DT_UINT8": "uint8"},
    **{"DT_INT64": "int64", "DT_BOOL": "bool"},
    **{1: "float32", 3: "int32", 4: "uint8", 9: "int64", 10: "bool"},
}
Ref = tuple[str, int]


@record
class Node:
    """An operation: its name, its operator, whose results it takes, and its attributes."""

    name: str
    op: str
    inputs: tuple[Ref, ...]
    attrs: Mapping[str, Any]

    def whole(self, name: str, default: int) -> int:
        """Returns the attribute as an integer."""
        return _whole(self._attr(name, "i", default), name)

    def wholes(self, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Returns the attribute as integers."""
        return tuple(_whole(item, name) for item in self._list(name, "i", default))

    def number(self, name: str, default: float) -> float:
        """Returns the attribute as a number."""
        given = self._attr(name, "f", default)
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise ModelError(f"its attribute {name} is {given!r}, but a number was expected.")
        return float(given)

    def flag(self, name: str, default: bool = False) -> bool:
        """Returns the attribute as True or False."""
        return bool(self._attr(name, "b", default))

    def text(self, name: str, default: str) -> str:
        """Returns the attribute as text."""
        return _text(self._attr(name, "s", default), name, default)

    def texts(self, name: str) -> tuple[str, ...]:
        """Returns the attribute as several texts."""
        return tuple(_text(item, name, None) for item in self._list(name, "s", ()))

    def dtype(self, name: str, default: str) -> str:
        """Returns the dtype that the attribute names, as NumPy calls it."""
        return dtype_of(self._attr(name, "type", default), f"its attribute {name}")

    def _attr(self, name: str, kind: str, default: Any) -> Any:
        given = self.attrs.get(name)
        return given.get(kind, default) if isinstance(given, Mapping) else default

    def _list(self, name: str, kind: str, default: tuple[Any, ...]) -> Iterable[Any]:
        given = self._attr(name, "list", None)
        items = given.get(kind, default) if isinstance(given, Mapping) else default
        return items if isinstance(items, list | tuple) else default


@record
class Port:
    """An input or output of the model: its public name, whose result it is, its shape if said."""

    name: str
    ref: Ref
    shape: tuple[int, ...] | None


@record
class Topology:
    """The nodes in an order in which they can be computed, and what goes in and out."""

    nodes: tuple[Node, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    weights: Any


def read_topology(
    given: Mapping[str, Any] | bytes, known: Collection[str], chosen: Mapping[str, str]
) -> Topology:
    """Returns the graph in the JSON, with operators that are all known, and every input there.

    Where outputs are chosen, by name and node, they take the place of those that it names itself.
    """
    document = given if isinstance(given, Mapping) else _parsed(given)
    body = document.get("modelTopology")
    if not isinstance(body, Mapping) or not isinstance(body.get("node"), list):
        raise ModelError(
            f"it has no list modelTopology.node (its format is {document.get('format')!r}): only "
            f"graph models of TensorFlow.js are read, not layers models; convert it with "
            f"tensorflowjs_converter --output_format=tfjs_graph_model."
        )
    nodes = [_node(item, place) for place, item in enumerate(body["node"])]
    by_name = {node.name: node for node in nodes}
    if len(by_name) != len(nodes):
        twice = next(node.name for node in nodes if by_name[node.name] is not node)
        raise ModelError(f"two of its nodes are called {twice!r}.")
    _check_operators(nodes, known)
    _check_inputs(nodes, by_name)
    ordered = _ordered(nodes, by_name)
    metadata = document.get("userDefinedMetadata")
    signature = document.get("signature") or (
        metadata.get("signature") if isinstance(metadata, Mapping) else None
    )
    named = {"outputs": dict(chosen)} if chosen else signature
    outputs = _ports(named, "outputs", by_name) or _unused(nodes)
    return Topology(
        ordered,
        _with_placeholders(_ports(signature, "inputs", by_name), ordered),
        outputs,
        document.get("weightsManifest"),
    )


def dtype_of(given: Any, what: str) -> str:
    """Returns the dtype, as NumPy calls it."""
    if isinstance(given, str | int) and given in DTYPES:
        return DTYPES[given]
    if isinstance(given, str) and given in DTYPES.values():
        return given
    names = ", ".join(name for name in DTYPES if isinstance(name, str))
    raise ModelError(f"{what} is {given!r}, but the dtypes that are known are {names}.")


def shape_of(given: Any) -> tuple[int, ...] | None:
    """Returns the sizes that a shape names, −1 where open; None where it names none."""
    dims = given.get("dim") if isinstance(given, Mapping) else None
    if not isinstance(dims, list):
        return None
    sizes = [dim.get("size", -1) if isinstance(dim, Mapping) else dim for dim in dims]
    try:
        return tuple(int(size) for size in sizes)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"the sizes of a shape are integers, not {sizes}.") from None


def _parsed(data: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"its topology is not JSON: {error}.") from error
    if not isinstance(document, Mapping):
        raise ModelError(f"its topology is a JSON {type(document).__name__}, not an object.")
    return document


def _node(item: Any, place: int) -> Node:
    where = f"modelTopology.node[{place}]"
    if not isinstance(item, Mapping):
        raise ModelError(f"{where} is a {type(item).__name__}, not an object.")
    name, op, inputs, attrs = (
        item.get(key, empty)
        for key, empty in (("name", ""), ("op", ""), ("input", []), ("attr", {}))
    )
    if not (isinstance(name, str) and name and isinstance(op, str) and op):
        raise ModelError(f"{where} needs a name and an op; it has {name!r} and {op!r}.")
    if not isinstance(inputs, list) or not all(isinstance(each, str) for each in inputs):
        raise ModelError(f"{where}: the inputs of {name!r} are a list of names, not {inputs!r}.")
    if not isinstance(attrs, Mapping):
        raise ModelError(f"{where}: the attributes of {name!r} are an object, not {attrs!r}.")
    # What starts with ^ only says when to run, not with what.
    refs = tuple(_ref(each) for each in inputs if not each.startswith("^"))
    return Node(name, op, refs, attrs)


def _ref(text: str) -> Ref:
    name, _, index = text.rpartition(":")
    return (name, int(index)) if name and index.isdecimal() and len(index) < 10 else (text, 0)


def _check_operators(nodes: list[Node], known: Collection[str]) -> None:
    unknown: dict[str, list[str]] = {}
    for node in nodes:
        if node.op not in known:
            unknown.setdefault(node.op, []).append(node.name)
    if unknown:
        listed = ", ".join(
            f"{op} (node {names[0]!r}{f' and {len(names) - 1} more' if names[1:] else ''})"
            for op, names in sorted(unknown.items())
        )
        raise ModelError(f"it uses operators that the importer does not know: {listed}.")


def _check_inputs(nodes: list[Node], by_name: Mapping[str, Node]) -> None:
    for node in nodes:
        for source, _ in node.inputs:
            if source not in by_name:
                raise ModelError(
                    f"node {node.name!r} ({node.op}) takes the result of {source!r}, which is not "
                    f"in the graph."
                )


def _ordered(nodes: list[Node], by_name: Mapping[str, Node]) -> tuple[Node, ...]:
    """Returns each node after those that it takes from; otherwise as they were given."""
    ordered: list[Node] = []
    state: dict[str, bool] = {}  # False while what it takes is being placed, True once it is placed
    for first in nodes:
        stack = [first]
        while stack:
            node = stack[-1]
            waiting = [by_name[name] for name, _ in node.inputs if not state.get(name)]
            if state.get(node.name):
                stack.pop()
            elif not waiting:
                state[node.name] = True
                ordered.append(stack.pop())
            else:
                state[node.name] = False
                for source in waiting:
                    if source.name in state:
                        raise ModelError(
                            f"node {source.name!r} ({source.op}) takes its own result: it is part "
                            f"of a cycle through {node.name!r}."
                        )
                stack.append(waiting[-1])
    return tuple(ordered)


def _ports(signature: Any, side: str, by_name: Mapping[str, Node]) -> tuple[Port, ...]:
    entries = signature.get(side) if isinstance(signature, Mapping) else None
    if not isinstance(entries, Mapping):
        return ()
    ports = []
    for key, entry in entries.items():
        tensor = entry.get("name") if isinstance(entry, Mapping) else entry
        ref = _ref(tensor if isinstance(tensor, str) else key)
        if ref[0] not in by_name:
            raise ModelError(f"its {side} name {ref[0]!r}, which is not a node of the graph.")
        shape = shape_of(entry.get("tensorShape")) if isinstance(entry, Mapping) else None
        ports.append(Port(key, ref, shape))
    return tuple(ports)


def _with_placeholders(named: tuple[Port, ...], nodes: tuple[Node, ...]) -> tuple[Port, ...]:
    placeholders = {node.name: node for node in nodes if node.op == "Placeholder"}
    for port in named:
        if port.ref[0] not in placeholders:
            raise ModelError(f"its input {port.name!r} is not a Placeholder of the graph.")
    found = {port.ref[0] for port in named}
    rest = (Port(f"{name}:0", (name, 0), None) for name in placeholders if name not in found)
    return (*named, *rest)


def _unused(nodes: list[Node]) -> tuple[Port, ...]:
    """Returns what nobody takes is what the graph is for."""
    taken = {name for node in nodes for name, _ in node.inputs}
    ports = tuple(
        Port(f"{node.name}:0", (node.name, 0), None) for node in nodes if node.name not in taken
    )
    if not ports:
        raise ModelError("it has no outputs: it names none, and every node's result is taken.")
    return ports


def _whole(given: Any, name: str) -> int:
    try:
        return int(given)  # 64-bit numbers are written as text
    except (TypeError, ValueError, OverflowError):
        raise ModelError(
            f"its attribute {name} is {given!r}, but integers were expected."
        ) from None


def _text(given: Any, name: str, default: str | None) -> str:
    if given is default:
        return str(default)
    try:
        return base64.b64decode(given, validate=True).decode()
    except (TypeError, ValueError, binascii.Error):
        raise ModelError(f"its attribute {name} is {given!r}, but text was expected.") from None
