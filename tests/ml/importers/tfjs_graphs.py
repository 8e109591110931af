"""Small graph models of TensorFlow.js, written as JSON and shards, and run by ONNX Runtime."""

from __future__ import annotations

import base64

import numpy as np
import onnx
import onnxruntime

from dala.ml.importers.tfjs import from_tfjs

DTYPES = {"float32": "DT_FLOAT", "int32": "DT_INT32", "uint8": "DT_UINT8", "bool": "DT_BOOL"}


def attr(value):
    """A value as the JSON of a graph has it."""
    match value:
        case bool():
            return {"b": value}
        case int():
            return {"i": str(value)}
        case float():
            return {"f": value}
        case str() if value.startswith("DT_"):
            return {"type": value}
        case str():
            return {"s": base64.b64encode(value.encode()).decode()}
        case [str(), *_]:
            return {"list": {"s": [attr(item)["s"] for item in value]}}
        case list() | tuple():
            return {"list": {"i": [str(item) for item in value]}}
    raise TypeError(value)


def node(name, op, *inputs, **attrs):
    return {
        "name": name,
        "op": op,
        "input": list(inputs),
        "attr": {key: attr(value) for key, value in attrs.items()},
    }


def placeholder(name, shape, dtype="DT_FLOAT"):
    made = node(name, "Placeholder", dtype=dtype)
    made["attr"]["shape"] = {"shape": {"dim": [{"size": str(size)} for size in shape]}}
    return made


def entry(name, array):
    return {"name": name, "shape": list(array.shape), "dtype": array.dtype.name}


def document(nodes, weights=None, signature=None):
    """The JSON of a graph, and its one shard."""
    arrays = {name: np.asarray(array) for name, array in (weights or {}).items()}
    text = {
        "format": "graph-model",
        "modelTopology": {"node": [*(node(name, "Const") for name in arrays), *nodes]},
        "weightsManifest": [
            {"paths": ["a.bin"], "weights": [entry(name, array) for name, array in arrays.items()]}
        ],
    }
    if signature is not None:
        text["signature"] = signature
    return text, b"".join(array.tobytes() for array in arrays.values())


def run(model, *inputs):
    """What ONNX Runtime gives for the model, with no optimisation of its own."""
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))


def convert(nodes, weights=None, **options):
    return from_tfjs(*document(nodes, weights), **options)


def results(op, *inputs, constants=(), count=1, first=False, **attrs):
    """What an operator gives: inputs, then constants; `first`, after a convolution that changes
    nothing, so that the inputs have their channels first."""
    nodes, weights, names = [], {}, []
    for place, array in enumerate(inputs):
        nodes.append(placeholder(f"x{place}", array.shape, DTYPES[array.dtype.name]))
        names.append(f"x{place}")
        if first and array.ndim == 4:
            weights[f"eye{place}"] = np.eye(array.shape[3], dtype=np.float32)[None, None]
            nodes.append(node(f"c{place}", "Conv2D", f"x{place}", f"eye{place}"))
            names[-1] = f"c{place}"
    for place, array in enumerate(constants):
        weights[f"k{place}"] = np.asarray(array)
        names.append(f"k{place}")
    nodes.append(node("y", op, *names, **attrs))
    ports = {f"y{index}": f"y:{index}" for index in range(count)}
    return run(from_tfjs(*document(nodes, weights), outputs=ports), *inputs)


def result(op, *inputs, **options):
    return results(op, *inputs, **options)[0]


def ints(*values):
    return np.array(values, np.int32)


def scalar(value):
    return np.array(value, np.int32)
