"""Finds networks of minima and maxima, whose results are NaN if any of their inputs is.

A minimum that gives NaN for NaN takes three instructions on most CPUs. In a network, as a median or
a window has, each may give whatever it likes for NaN, and the inputs are looked at once.
"""

from __future__ import annotations

from collections.abc import Iterable

from dala.ir.nodes import (
    Apply,
    Block,
    Const,
    Statement,
    Value,
    blocks_of,
    operands_of,
    walk,
)

ALONE, WITH_CONSTANT = 3, 2
"""What a minimum takes by itself, in instructions."""
EXTREMES = ("min", "max")

Networks = dict[Apply, tuple[Value, ...]]
"""The minima and maxima of networks; for those that others use, the inputs they depend on."""


def extreme_networks(statements: Iterable[Statement], body: Block) -> Networks:
    """Returns the networks among statements of a body if they take less than minima alone."""
    members = [item for item in statements if isinstance(item, Apply) and _fits(item)]
    inside = set(members)
    outside: set[Value] = set(body.results)
    for item in walk(body):
        if item not in inside:
            outside.update(operands_of(item))
        for block in blocks_of(item):
            outside.update(block.results)
    found: Networks = {}
    inputs: dict[Value, dict[Value, None]] = {}
    for item in members:
        own: dict[Value, None] = {}
        for arg in item.args:
            own.update(inputs.get(arg, {} if isinstance(arg, Const) else {arg: None}))
        inputs[item] = own
        found[item] = tuple(own) if item in outside else ()
    cost = len(members) + sum(1 + (len(leaves) + 1) // 2 for leaves in found.values() if leaves)
    alone = sum(WITH_CONSTANT if _has_constant(item) else ALONE for item in members)
    return found if cost < alone else {}


def _fits(item: Apply) -> bool:
    return item.op in EXTREMES and item.type.is_float and not item.type.is_storage


def _has_constant(item: Apply) -> bool:
    return any(isinstance(arg, Const) for arg in item.args)
