"""The graph of an ONNX file, checked: its operators are known, and each value has one maker.

ONNX Runtime checks much of this too, after it has read the whole file, and in words about itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from dala.base.record import record
from dala.errors import LimitError, ModelError
from dala.ml.onnx.protobuf import Message
from dala.ml.onnx.schemas import ANY, find_schema

NODES_LIMIT = 1 << 20
"""How many nodes a graph may have once its functions are written out."""

OPSETS = {"": 28, "ai.onnx.ml": 5}
"""The newest version of each set of operators that is checked here; an engine may know fewer."""
UNCHECKED = ("com.microsoft",)
"""Sets of operators that only ONNX Runtime itself can look up."""

Key = tuple[str, str, str]
Names = set[str]


@record
class Library:
    """What a node may call: operators at some versions, and the file's own functions."""

    versions: dict[str, int]
    functions: dict[Key, Message]


def walk_nodes(nodes: list[Message]) -> Iterator[Message]:
    """Yields every node, with those of the graphs inside of it."""
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        yield node
        for _, graph in graphs_of(node):
            waiting += reversed(graph.get("node", []))


def graphs_of(node: Message) -> Iterator[tuple[str, Message]]:
    """Yields the branches and bodies of a node, with the names of their attributes."""
    for attribute in node.get("attribute", []):
        name = attribute.get("name", "")
        if "g" in attribute:
            yield name, attribute["g"]
        yield from ((name, graph) for graph in attribute.get("graphs", []))


def label_of(node: Message) -> str:
    """Returns what a node is called in an error."""
    operator = node.get("op_type", "?")
    if node.get("name"):
        return f"node {node['name']!r} ({operator})"
    made = next(filter(None, node.get("output", [])), None)
    return f"the unnamed node ({operator}) that makes {made!r}"


def check_graph(
    where: str, graph: Message, library: Library, outer: tuple[Names, ...] = ()
) -> Names:
    """The names that the graph takes from those around it; refused where it could not run."""
    nodes: list[Message] = graph.get("node", [])
    given = _given(where, graph)
    maker: dict[str, int] = {}
    for index, node in enumerate(nodes):
        check_operator(where, node, library)
        for name in filter(None, node.get("output", [])):
            if name in given or name in maker:
                other = f"{label_of(nodes[maker[name]])} does" if name in maker else "is given"
                raise ModelError(
                    f"{where}: {label_of(node)} makes {name!r}, which {other} already: "
                    f"each value is made once."
                )
            maker[name] = index
    own = given | maker.keys()
    free: Names = set()
    needs: list[set[int]] = []
    for node in nodes:
        used = set(filter(None, node.get("input", [])))
        _refuse_unknown(f"{where}: {label_of(node)} reads", used, (own, *outer))
        for name, inner in graphs_of(node):
            used |= check_graph(
                f"{where}: {name} of {label_of(node)}", inner, library, (own, *outer)
            )
        free |= used - own
        needs.append({maker[name] for name in used if name in maker})
    outputs = _unique(where, "output", [value.get("name", "") for value in graph.get("output", [])])
    _refuse_unknown(f"{where}: the graph gives out", outputs, (own, *outer))
    circle = sort_by_needs(needs)[1]
    if circle:
        labels = " and ".join(label_of(nodes[index]) for index in circle[:4])
        waits = f"wait for each other in a cycle of {len(circle)}"
        raise ModelError(
            f"{where}: {labels} {waits if len(circle) > 1 else 'waits for itself'}: what it reads "
            f"is made of what it makes."
        )
    return free | (outputs - own)


def check_functions(where: str, nodes: list[Message], library: Library) -> None:
    """Refuse functions that call themselves, or that make too much of the graph's `nodes`."""
    keys = list(library.functions)
    index_of = {key: index for index, key in enumerate(keys)}
    bodies = [list(walk_nodes(library.functions[key].get("node", []))) for key in keys]
    calls = [[index_of[key] for key in map(key_of, body) if key in index_of] for body in bodies]
    order, circle = sort_by_needs([set(called) for called in calls])
    if circle:
        raise ModelError(
            f"{where}: the function {keys[circle[0]][1]!r} calls itself, "
            f"through {len(circle)} functions."
        )
    sizes = [0] * len(keys)
    for index in order:
        sizes[index] = len(bodies[index]) + sum(sizes[called] for called in calls[index])
        # So that the numbers themselves stay small.
        sizes[index] = min(sizes[index], NODES_LIMIT + 1)
    total = sum(1 + (sizes[index_of[key]] if key in index_of else 0) for key in map(key_of, nodes))
    if total > NODES_LIMIT:
        raise LimitError(
            f"{where} has more than {NODES_LIMIT:,} nodes once its functions are written out."
        )


def check_operator(where: str, node: Message, library: Library) -> None:
    """Refuse a node whose operator does not exist, or not with so many inputs and outputs."""
    domain, operator, _ = key = key_of(node)
    if key in library.functions:
        return
    if domain not in OPSETS and domain not in UNCHECKED:
        known = ", ".join(["ai.onnx", *filter(None, OPSETS), *UNCHECKED])
        raise ModelError(
            f"{where}: {label_of(node)} is of the domain {domain!r}, whose operators are not "
            f"known. Known are those of {known}: export the model with these."
        )
    if domain not in library.versions:
        raise ModelError(
            f"{where}: {label_of(node)} is of the domain {domain or 'ai.onnx'!r}, of which the "
            f"file imports no version."
        )
    if domain in UNCHECKED:
        return
    version = library.versions[domain]
    schema = find_schema(operator, version, domain)
    if schema is None:
        raise ModelError(
            f"{where}: {label_of(node)}: version {version} of {domain or 'ai.onnx'} has no "
            f"operator {operator!r}. Export the model with operators of that version."
        )
    for what, side in (("input", schema.inputs), ("output", schema.outputs)):
        count, least, most = len(node.get(what, [])), side.least, side.most
        if not least <= count <= most:
            raise ModelError(
                f"{where}: {label_of(node)} has {count} {what}s; {operator} has {least}"
                + ("." if least == most else " or more." if most == ANY else f" to {most:,}.")
            )
    for name, formal in zip(node.get("input", []), schema.inputs.names, strict=False):
        if not name and not formal.endswith(("?", "*")):
            raise ModelError(f"{where}: {label_of(node)} lacks its input {formal!r}.")
    held = {item.get("name", "") for item in node.get("attribute", [])}
    for name in schema.required:
        if name not in held:
            raise ModelError(f"{where}: {label_of(node)} lacks its attribute {name!r}.")


def key_of(node: Message) -> Key:
    """By what a node's operator or function is found."""
    domain = node.get("domain", "")
    return (
        ("" if domain == "ai.onnx" else domain),
        node.get("op_type", ""),
        node.get("overload", ""),
    )


def sort_by_needs(needs: list[set[int]]) -> tuple[list[int], list[int]]:
    """An order in which each comes after what it needs, and a circle in those that have none."""
    missing = [len(needed) for needed in needs]
    users: list[list[int]] = [[] for _ in needs]
    for index, needed in enumerate(needs):
        for other in needed:
            users[other].append(index)
    order = [index for index, count in enumerate(missing) if not count]
    for index in order:  # grows as it is read
        for user in users[index]:
            missing[user] -= 1
            if not missing[user]:
                order.append(user)
    if len(order) == len(needs):
        return order, []
    seen: dict[int, int] = {}
    index = next(index for index, count in enumerate(missing) if count)
    while index not in seen:
        seen[index] = len(seen)
        index = next(other for other in sorted(needs[index]) if missing[other])
    return order, list(seen)[seen[index] :]


def _given(where: str, graph: Message) -> Names:
    """Returns the names of inputs and initializers; an initializer may be an input's default."""
    inputs = [value.get("name", "") for value in graph.get("input", [])]
    initializers = [tensor.get("name", "") for tensor in graph.get("initializer", [])]
    return _unique(where, "input", inputs) | _unique(where, "initializer", initializers)


def _unique(where: str, what: str, names: list[str]) -> Names:
    found: Names = set()
    for name in names:
        if not name:
            raise ModelError(f"{where}: the graph has an {what} without a name.")
        if name in found:
            raise ModelError(f"{where}: the graph has two {what}s {name!r}.")
        found.add(name)
    return found


def _refuse_unknown(who: str, names: Names, scopes: tuple[Names, ...]) -> None:
    for name in sorted(names):
        if not any(name in scope for scope in scopes):
            raise ModelError(
                f"{who} {name!r}, which no node makes, and which is neither an input nor an "
                f"initializer."
            )
