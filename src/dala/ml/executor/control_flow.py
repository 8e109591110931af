"""Branches and loops: the nodes inside of them, as often as they run, one after another."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dala.errors import ModelError
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.parts import between
from dala.ml.executor.sizes import axis_in, require
from dala.ml.onnx.nodes import Body, Node, inlined

MOST_TRIPS = 1 << 14
"""How often the body of a loop is laid out at most."""


def branch(context: NodeContext) -> Iterator[Node]:
    """If: the nodes of the branch that the condition chooses."""
    condition = np.asarray(context.array(0)).reshape(-1)
    require(context.node, condition.size == 1, f"{condition.size} conditions are given for one")
    node = context.node
    body: Body = node.get("then_branch" if condition[0] else "else_branch")
    yield from inlined(body, between(node, "/"), {}, node.outputs)


def loop(context: NodeContext) -> Iterator[Node]:
    """Loop: one trip and the loop that is left, or what it comes to."""
    node = context.node
    body: Body = node.get("body")
    trip, scans = node.get("trip", 0), node.get("scans", ())
    most, going = (context.array(i) for i in range(2))
    for item in (most, going):
        require(node, item is None or item.size == 1, "its trips and its condition are one number")
    carried = node.inputs[2:]
    ends = most is not None and trip >= int(most.reshape(()))
    if ends or (going is not None and not bool(going.reshape(()))):
        yield from _gathered(node, carried, scans, len(body.outputs) - 1 - len(carried))
        return
    if trip >= MOST_TRIPS:
        raise ModelError(
            f"{node} goes on after {MOST_TRIPS:,} trips: so many are laid out at most."
        )
    number = between(node, f"trip {trip}")
    value = np.asarray(trip, np.int64)
    yield Node("Constant", "", (), (number,), {"value": value}, node.opset)
    condition = node.inputs[1]
    if not condition:
        condition = between(node, f"condition {trip}")
        yield Node("Constant", "", (), (condition,), {"value": np.asarray(True)}, node.opset)
    given = dict(zip(body.inputs, (number, condition, *carried), strict=False))
    made = tuple(between(node, f"{trip}: {i}") for i in range(len(body.outputs)))
    yield from inlined(body, between(node, f"{trip}/"), given, made)
    more = made[1 + len(carried) :]
    scanned = tuple(
        (*before, item) for before, item in zip(scans or [()] * len(more), more, strict=True)
    )
    attributes = {"body": body, "trip": trip + 1, "scans": scanned}
    inputs = (node.inputs[0], made[0], *made[1 : 1 + len(carried)])
    captures = (*node.captures, *(name for item in scanned for name in item))
    yield Node("Loop", node.name, inputs, node.outputs, attributes, node.opset, captures)


def scan(context: NodeContext) -> Iterator[Node]:
    """Scan: the body for each slice of the inputs that are gone through."""
    node = context.node
    body: Body = node.get("body")
    through = node.get("num_scan_inputs")
    if node.opset < 9:
        raise ModelError(f"{node} is of opset {node.opset}, whose batches are not computed.")
    states, inputs = node.inputs[:-through], node.inputs[-through:]
    made = len(body.outputs) - len(states)
    axes = node.get("scan_input_axes") or [0] * through
    turned = node.get("scan_input_directions") or [0] * through
    shapes = [context.builder.shape(name) for name in inputs]
    axes = [axis_in(node, axis, len(shape)) for axis, shape in zip(axes, shapes, strict=True)]
    lengths = {shape[axis] for axis, shape in zip(axes, shapes, strict=True)}
    require(node, len(lengths) == 1, f"inputs are {sorted(lengths)} long, not equally long")
    (count,) = lengths
    require(node, count <= MOST_TRIPS, f"{count:,} slices are more than {MOST_TRIPS:,}")
    scans: list[list[str]] = [[] for _ in range(made)]
    for trip in range(count):
        slices = []
        for i, name in enumerate(inputs):
            at, part = between(node, f"at {trip}.{i}"), between(node, f"slice {trip}.{i}")
            value = np.asarray(count - 1 - trip if turned[i] else trip, np.int64)
            yield Node("Constant", "", (), (at,), {"value": value}, node.opset)
            yield Node("Gather", "", (name, at), (part,), {"axis": axes[i]}, node.opset)
            slices.append(part)
        given = dict(zip(body.inputs, (*states, *slices), strict=True))
        results = tuple(between(node, f"{trip}: {i}") for i in range(len(body.outputs)))
        yield from inlined(body, between(node, f"{trip}/"), given, results)
        states = results[: len(states)]
        for before, item in zip(scans, results[len(states) :], strict=True):
            before.append(item)
    backwards = node.get("scan_output_directions") or [0] * made
    ordered = tuple(
        tuple(reversed(item) if back else item) for item, back in zip(scans, backwards, strict=True)
    )
    yield from _gathered(node, states, ordered, made, node.get("scan_output_axes"))


def _gathered(
    node: Node,
    carried: tuple[str, ...],
    scans: tuple[tuple[str, ...], ...],
    count: int,
    axes: list[int] | None = None,
) -> Iterator[Node]:
    """Yields what a loop comes to: what it carried, and what each trip left, one after another."""
    results = [*node.outputs, *[""] * len(carried)]
    for name, result in zip(carried, results, strict=False):
        if result:
            yield Node("Identity", "", (name,), (result,), {}, node.opset)
    if count and not scans:
        raise ModelError(f"{node} makes no trip: how large its results would be is not known.")
    for i, (names, result) in enumerate(zip(scans, results[len(carried) :], strict=False)):
        if not result:
            continue
        axis = axes[i] if axes else 0
        along = between(node, f"axis {i}")
        value = np.asarray([axis], np.int64)
        yield Node("Constant", "", (), (along,), {"value": value}, node.opset)
        rows = tuple(f"{name} row" for name in names)
        for name, row in zip(names, rows, strict=True):
            yield Node("Unsqueeze", "", (name, along), (row,), {}, max(node.opset, 13))
        yield Node("Concat", "", rows, (result,), {"axis": axis}, node.opset)
