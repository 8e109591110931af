"""The conversion of a whole graph model: what is read and checked, then translated node by node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from dala.errors import ModelError, either
from dala.ml.importers.tfjs import (  # noqa: F401  (registers the translations)
    elementwise,
    reductions,
    shapes,
    slices,
    windows,
)
from dala.ml.importers.tfjs.onnx_graph import OnnxGraph
from dala.ml.importers.tfjs.operation import LAST, TRANSLATIONS, Operation, Tensor
from dala.ml.importers.tfjs.topology import Node, Port, Ref, Topology, read_topology, shape_of
from dala.ml.importers.tfjs.weights import read_weights

SOURCES = frozenset({"Placeholder", "Const"})
IGNORED = frozenset({"NoOp"})
KNOWN = SOURCES | IGNORED | TRANSLATIONS.keys()


def converted(
    topology: Mapping[str, Any] | bytes,
    shards: bytes | Sequence[bytes],
    name: str,
    sizes: Mapping[str, Sequence[int]],
    chosen: Mapping[str, str],
) -> onnx.ModelProto:
    """Returns the ONNX model; what is wrong with the given one is said with the model's name."""
    try:
        graph = read_topology(topology, KNOWN, chosen)
        weights = read_weights(graph.weights, shards)
        for node in graph.nodes:
            if node.op == "Const" and node.name not in weights:
                raise ModelError(
                    f"node {node.name!r} (Const): its weights are not in the manifest."
                )
        return _translated(graph, weights, name, sizes)
    except ModelError as error:
        raise ModelError(f"TensorFlow.js model {name!r}: {error}") from error


def _translated(
    topology: Topology,
    weights: Mapping[str, np.ndarray],
    name: str,
    sizes: Mapping[str, Sequence[int]],
) -> onnx.ModelProto:
    graph = OnnxGraph()
    results: dict[str, list[Tensor]] = {}
    by_name = {node.name: node for node in topology.nodes}
    known = {name: port for port in topology.inputs for name in (port.name, port.ref[0])}
    for given in sizes:
        if given not in known:
            raise ModelError(f"shapes name an input {given!r}, but there are {', '.join(known)}.")
    for port in topology.inputs:
        results[port.ref[0]] = [_input(graph, port, by_name[port.ref[0]], sizes)]
    uses: Counter[Ref] = Counter(ref for node in topology.nodes for ref in node.inputs)
    uses.update(port.ref for port in topology.outputs)
    origins: dict[str, Any] = {}
    for node in topology.nodes:
        if node.op == "Const":
            array = weights[node.name]
            inner = graph.constant(array, node.name)
            results[node.name] = [Tensor(array.shape, array.dtype.name, {LAST: inner})]
        elif node.op not in SOURCES | IGNORED:
            results[node.name] = _translate(node, graph, results, uses, origins)
    outputs = []
    for port in topology.outputs:
        tensor = _result(results, port.ref, f"its output {port.name!r}")
        # Written as an operation of its own: the last transpose may have to be made.
        end = Operation(graph, by_name[port.ref[0]], (tensor,), (True,), origins)
        outputs.append((port.name, end.name(tensor)))
    return graph.finish(outputs, name)


def _translate(
    node: Node,
    graph: OnnxGraph,
    results: Mapping[str, list[Tensor]],
    uses: Mapping[Ref, int],
    origins: dict[str, Any],
) -> list[Tensor]:
    try:
        inputs = tuple(_result(results, ref, f"its input {ref[0]!r}") for ref in node.inputs)
        once = tuple(uses[ref] == 1 for ref in node.inputs)
        made = TRANSLATIONS[node.op](Operation(graph, node, inputs, once, origins))
    except ModelError as error:
        raise ModelError(f"node {node.name!r} ({node.op}): {error}") from error
    except (ValueError, IndexError, OverflowError) as error:
        # Too few inputs, or numbers that no array can have.
        raise ModelError(
            f"node {node.name!r} ({node.op}) is not as it should be: {error}"
        ) from error
    return made if isinstance(made, list) else [made]


def _result(results: Mapping[str, list[Tensor]], ref: Ref, what: str) -> Tensor:
    name, index = ref
    made = results.get(name, [])
    if index >= len(made):
        raise ModelError(f"{what} is result {index} of {name!r}, which has {len(made)}.")
    return made[index]


def _remedy(port: Port) -> str:
    return either(f": give all of its sizes, as shapes={{{port.name!r}: …}}", "")


def _input(graph: OnnxGraph, port: Port, node: Node, sizes: Mapping[str, Sequence[int]]) -> Tensor:
    declared = node.attrs.get("shape")
    claimed = shape_of(declared.get("shape")) if isinstance(declared, Mapping) else None
    shape = sizes.get(port.name) or sizes.get(node.name)
    shape = shape or _closest(port.shape, claimed)
    if shape is None:
        raise ModelError(f"its input {port.name!r} has no shape{_remedy(port)}.")
    fixed = [1 if axis == 0 and size == -1 else size for axis, size in enumerate(shape)]
    if min(fixed, default=1) < 1:
        raise ModelError(
            f"its input {port.name!r} has the open shape {tuple(shape)}{_remedy(port)}."
        )
    dtype = node.dtype("dtype", "float32")
    inner = graph.input(port.name, dtype, tuple(fixed))
    return Tensor(tuple(fixed), dtype, {LAST: inner})


def _closest(first: tuple[int, ...] | None, second: tuple[int, ...] | None) -> Sequence[int] | None:
    """Returns the shape with fewer open sizes."""
    known = [shape for shape in (first, second) if shape is not None]
    return min(known, key=lambda shape: shape.count(-1), default=None)
