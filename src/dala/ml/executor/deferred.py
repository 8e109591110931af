"""Values that are deferred, and how many of them one kernel can compute.

A region is what a value needs of values that are deferred too, in the order of their nodes, itself
last. Its roots are those of them that more than an epilogue computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from dala.base.record import record
from dala.errors import InternalError
from dala.ir.types import F32, Scalar
from dala.ml.executor.channels_last import ChannelsLast
from dala.ml.executor.dtypes import scalar_of_array
from dala.ml.executor.epilogue import Epilogue, Shape
from dala.ml.executor.pointwise import Write, constant
from dala.ml.onnx.contents import Node
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.pipelines.composite import Stage

MOST_OPERANDS = 6
"""Inputs of one kernel: a device may give it few buffers at a time."""

Finish = Callable[[Epilogue, Sequence[Buffer], Buffer], Iterable[Stage]]
Takes = Callable[[Sequence[Shape]], bool]


@record
class Root:
    """What a kernel computes that can end in an epilogue, and which epilogues that may be."""

    finish: Finish
    takes: Takes
    channels_last: bool = False
    """Whether it computes planes with channels last, of operands in that layout."""


@record
class Deferred:
    """A value that is deferred: an expression of the node's inputs, or what a kernel computes."""

    node: Node
    shape: Shape
    scalar: Scalar
    write: Write | None = None
    root: Root | None = None


Value = np.ndarray | Buffer | ChannelsLast | Deferred
Values = Mapping[str, Value]
Order = Mapping[str, tuple[int, ...]]
"""Which node each value is made by."""


def region_of(values: Values, order: Order, name: str) -> list[str]:
    """Returns the values that are deferred and that this one needs, itself last."""
    found: dict[str, None] = {}
    left = [name]
    while left:
        item = left.pop()
        deferred = values.get(item)
        if isinstance(deferred, Deferred) and item not in found:
            found[item] = None
            if deferred.root is None:
                left.extend(deferred.node.inputs)
    # Parts of one node have its place in the order: those met last come first.
    region = list(reversed(found))
    region.sort(key=order.__getitem__)
    return region


def root_of(values: Values, name: str) -> Root | None:
    deferred = values[name]
    return deferred.root if isinstance(deferred, Deferred) else None


def largest_part(values: Values, order: Order, region: Sequence[str]) -> str:
    """The last value before the whole that a kernel can compute, with the first root in it."""
    first = [item for item in region if root_of(values, item) is not None][:1]
    for item in reversed(region[:-1]):
        part = region_of(values, order, item)
        roots = [root for root in part if root_of(values, root) is not None]
        if roots == first and is_one_kernel(values, part, roots):
            return item
    raise InternalError(f"no part of {region} can be computed by one kernel.")


def is_one_kernel(values: Values, region: Sequence[str], roots: Sequence[str]) -> bool:
    """Returns whether a kernel can compute a region that has these roots."""
    _, names = epilogue_of(values, region, roots)
    if not roots:
        return len(names) <= MOST_OPERANDS
    root = root_of(values, roots[0])
    floats = all(scalar_of(values[item]) == F32 for item in (*region, *names))
    same_shape = values[region[-1]].shape == values[roots[0]].shape
    return (
        len(roots) == 1
        and root is not None
        and floats
        and same_shape
        and root.takes([tuple(values[item].shape) for item in names])
    )


def epilogue_of(
    values: Values, region: Sequence[str], roots: Sequence[str]
) -> tuple[Epilogue, list[str]]:
    """What a region computes after its root, and the values that it takes from elsewhere."""
    known = dict.fromkeys(roots, "v0")
    lines: list[str] = []
    names: list[str] = []

    def term(source: str) -> str:
        if not source:
            return ""
        found = values[source]
        if isinstance(found, np.ndarray) and found.size == 1 and np.isfinite(found).all():
            return constant(found)
        if source not in known:
            known[source] = f"x{len(names)}"
            names.append(source)
        return known[source]

    for item in region:
        deferred = values[item]
        assert isinstance(deferred, Deferred)
        if deferred.write is not None:
            terms = [term(source) for source in deferred.node.inputs]
            known[item] = f"v{len(lines) + 1}"
            lines.append(f"{known[item]} = {deferred.write(deferred.node, terms)}")
    return Epilogue(tuple(lines), known[region[-1]]), names


def scalar_of(value: Value) -> Scalar:
    """Returns the type of a value on the device."""
    return scalar_of_array(value) if isinstance(value, np.ndarray) else value.scalar
