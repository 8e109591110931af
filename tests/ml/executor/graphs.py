"""Small ONNX graphs, and what ONNX Runtime makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from dala.gpu import compute
from dala.ml.executor.graph import Graph
from dala.ml.onnx.contents import read_contents


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """A node; names are separated by blanks, and "-" is one that is left out."""
    names = [name.replace("-", "") for name in inputs.split()]
    return helper.make_node(op, names, outputs.split(), f"{op} of {outputs}", **attributes)


def graph_of(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, np.ndarray],
    constants: dict[str, Any] | None = None,
    outputs: str = "y",
    opset: int = 17,
    shapes: dict[str, Any] | None = None,
) -> bytes:
    """The bytes of a model; constants that are no arrays are taken as f32, lists of int as s64."""
    given = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(item.dtype),
            (shapes or {}).get(name, item.shape),
        )
        for name, item in inputs.items()
    ]
    made = [helper.make_value_info(name, helper.TypeProto()) for name in outputs.split()]
    kept = [numpy_helper.from_array(_array(item), name) for name, item in (constants or {}).items()]
    graph = helper.make_graph(nodes, "graph", given, made, kept)
    versions = [helper.make_opsetid("", opset)]
    versions += [helper.make_opsetid(name, 1) for name in {it.domain for it in nodes} - {""}]
    model = helper.make_model(graph, opset_imports=versions, ir_version=8)
    model = onnx.shape_inference.infer_shapes(model)
    for item in model.graph.output:
        if not item.type.HasField("tensor_type"):  # some operators have no inference
            item.type.tensor_type.elem_type = TensorProto.FLOAT
    return bytes(model.SerializeToString())


def _array(given: Any) -> np.ndarray:
    array = np.asarray(given)
    return array if isinstance(given, np.ndarray) or array.dtype.kind == "i" else array.astype("f4")


def expected(model: bytes, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What ONNX Runtime computes, by the names of outputs."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def computed(
    graph: Graph, inputs: dict[str, np.ndarray], like: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """What kernels compute on the current device; integers are s32."""
    given = {name: compute.from_numpy(item) for name, item in inputs.items()}
    rooms = {
        name: compute.buffer_zeros(item.shape, "f32" if item.dtype.kind == "f" else "s32")
        for name, item in like.items()
    }
    for stage in graph.stages(given, rooms):
        stage.kernel.run(stage.inputs, stage.output, stage.params)
    return {name: compute.read(item) for name, item in rooms.items()}


def read_graph(model: bytes) -> Graph:
    """The graph of a model's bytes."""
    return Graph(read_contents("graph", model))


def check(model: bytes, inputs: dict[str, np.ndarray]) -> None:
    """Both agree, to 1e-5 of the largest element."""
    graph = read_graph(model)
    assert graph.missing() == []
    want = expected(model, inputs)
    got = computed(graph, inputs, want)
    for name, item in want.items():
        most = np.abs(item).max(initial=1e-3)
        np.testing.assert_allclose(got[name], item, rtol=1e-5, atol=1e-5 * most, err_msg=name)


def check_reference(model: bytes, inputs: dict[str, np.ndarray]) -> None:
    """Agrees with ONNX's own reference, for operators that ONNX Runtime has not."""
    names = [item.name for item in onnx.load_model_from_string(model).graph.output]
    found = ReferenceEvaluator(onnx.load_model_from_string(model)).run(None, inputs)
    want = {name: np.asarray(item) for name, item in zip(names, found, strict=True)}
    graph = read_graph(model)
    assert graph.missing() == []
    got = computed(graph, inputs, want)
    for name, item in want.items():
        np.testing.assert_allclose(got[name], item, rtol=1e-4, atol=2e-5, err_msg=name)


def sample(*shape: int, seed: int = 0) -> np.ndarray:
    """Random f32 around zero."""
    return np.random.default_rng(seed + 7).standard_normal(shape).astype(np.float32)
