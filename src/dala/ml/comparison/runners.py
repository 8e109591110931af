"""What computes a part of a model: our kernels on a device, and ONNX Runtime for what is right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dala.base.record import changed
from dala.devices import Device, using
from dala.errors import ModelError
from dala.ml.executor.deferred import scalar_of
from dala.ml.executor.graph import Graph
from dala.ml.executor.graph_builder import GraphBuilder
from dala.ml.executor.operators import OPERATORS
from dala.ml.onnx.contents import Contents
from dala.ml.onnx.signature import Tensor
from dala.runtime.buffers.access import read
from dala.runtime.buffers.buffer import buffer_zeros, from_numpy, scratch

Arrays = Mapping[str, np.ndarray]


def computed(device: Device, contents: Contents, inputs: Arrays) -> dict[str, np.ndarray]:
    """Returns the outputs of a model that kernels compute on a device, in the shapes they find."""
    graph = Graph(contents)
    missing = graph.missing()
    if missing:
        raise ModelError(missing[0])
    with using(device):
        given = {name: from_numpy(item) for name, item in inputs.items()}
        builder = GraphBuilder(
            contents.nodes,
            contents.constants,
            {name: scratch(item.shape, item.scalar) for name, item in given.items()},
            {},
            lambda _, make: from_numpy(np.asarray(make(), order="C")),
        )
        for node in contents.nodes:
            builder.add(node, OPERATORS.get(node.op))
        found = {item.name: builder.values[item.name] for item in contents.outputs}
        rooms = {
            name: buffer_zeros(tuple(item.shape), scalar_of(item)) for name, item in found.items()
        }
        graph.run(given, rooms)
        return {name: read(room) for name, room in rooms.items()}


def has_onnx_runtime() -> bool:
    """Returns whether ONNX Runtime can be asked."""
    from importlib.util import find_spec

    return find_spec("onnxruntime") is not None and find_spec("onnx") is not None


def values_by_onnx_runtime(data: bytes, contents: Contents, inputs: Arrays) -> dict[str, Any]:
    """Returns every value of a model as ONNX Runtime computes it, node by node, nothing fused."""
    import onnxruntime
    from onnx import ModelProto, ValueInfoProto

    model = ModelProto.FromString(data)
    names = [name for node in model.graph.node for name in node.output if name]
    known = {item.name for item in model.graph.output}
    model.graph.output.extend(ValueInfoProto(name=name) for name in names if name not in known)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        wanted = [item.name for item in session.get_outputs()]
        found = dict(zip(wanted, session.run(wanted, dict(inputs)), strict=True))
    except Exception as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(f"ONNX Runtime cannot compute every value of it: {said}") from error
    return {**inputs, **found}


def values_by_kernels(device: Device, contents: Contents, inputs: Arrays) -> dict[str, Any]:
    """Returns every value of a model as kernels compute it on a device, asked for all of them."""
    names = [name for node in contents.nodes for name in node.outputs if name]
    asked = changed(
        contents, outputs=tuple(Tensor(name, None, np.dtype(np.float32)) for name in names)
    )
    return {**inputs, **computed(device, asked, inputs)}
