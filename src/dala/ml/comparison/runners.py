"""What computes a part of a model: our kernels on a device, and ONNX Runtime for what is right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dala.base.record import changed
from dala.devices import Device, using
from dala.errors import ModelError
from dala.ml.executor.graph import Graph
from dala.ml.onnx.contents import Contents
from dala.ml.onnx.signature import Tensor
from dala.runtime.buffers.access import read
from dala.runtime.buffers.buffer import from_numpy

Arrays = Mapping[str, np.ndarray]


def computed(device: Device, contents: Contents, inputs: Arrays) -> dict[str, np.ndarray]:
    """Returns the outputs of a model that kernels compute on a device, in the shapes they find."""
    graph = Graph(contents)
    missing = graph.missing()
    if missing:
        raise ModelError(missing[0])
    with using(device):
        made = graph.compute({name: from_numpy(item) for name, item in inputs.items()})
        return {name: read(item) for name, item in made.items()}


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


def values_by_kernels(
    device: Device,
    contents: Contents,
    inputs: Arrays,
    like: Arrays | None = None,
) -> dict[str, Any]:
    """Returns every value of a model as kernels compute it on a device, asked for all of them.

    `like` are values whose dtypes they have; all others are floats.
    """
    names = [name for node in contents.nodes for name in node.outputs if name]
    kinds = {name: item.dtype for name, item in (like or {}).items()}
    wanted = (Tensor(name, None, kinds.get(name, np.dtype(np.float32))) for name in names)
    asked = changed(contents, outputs=tuple(wanted))
    return {**inputs, **computed(device, asked, inputs)}
