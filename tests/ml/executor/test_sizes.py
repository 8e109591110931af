"""Sizes that a model says, and inputs that do not go with them: refused, never read beyond."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from ml.executor.graphs import computed, expected, graph_of, node, read_graph, sample

from dala import errors, ml
from dala.gpu import compute

RESHAPED = [node("Relu", "x", "a"), node("Reshape", "a s", "b"), node("Relu", "b", "y")]
PLANES = {"kernel_shape": [2, 2]}


@pytest.mark.parametrize(
    ("sizes", "fed", "counts"),
    [
        ([100_000], (2, 3), "6 elements, .* 100,000"),
        ([20_000_000], (2, 3), "6 elements, .* 20,000,000"),
        ([5], (2, 3), "6 elements, .* 5"),
        ([1, 6], (2, 6), "12 elements, .* 6"),
    ],
)
def test_a_shape_of_other_counts_than_what_it_views_is_refused(device, sizes, fed, counts):
    model = graph_of(RESHAPED, {"x": sample(*fed)}, {"s": sizes}, shapes={"x": ["a", fed[1]]})
    loaded = ml.gpu.load_model(model, engine="dala")
    for given in (sample(*fed), compute.from_numpy(sample(*fed))):
        with pytest.raises(errors.ShapeError, match=counts) as refused:
            ml.gpu.predict(loaded, given)
        assert "Reshape of b" in str(refused.value)


def test_a_model_that_refused_a_batch_computes_the_one_that_it_was_made_for(device):
    model = graph_of(RESHAPED, {"x": sample(1, 6)}, {"s": [1, 6]}, shapes={"x": ["a", 6]})
    loaded = ml.gpu.load_model(model, engine="dala")
    with pytest.raises(errors.ShapeError, match="12 elements"):
        ml.gpu.predict(loaded, sample(2, 6))
    np.testing.assert_array_equal(ml.gpu.predict(loaded, sample(1, 6)), np.maximum(sample(1, 6), 0))


CASES = {
    "Reshape keeps an axis that is not there": ("Reshape", "x s", {}, {"s": [2, 3, 0]}, (2, 3)),
    "Reshape leaves two sizes open": ("Reshape", "x s", {}, {"s": [-1, -1]}, (2, 3)),
    "Reshape does not divide": ("Reshape", "x s", {}, {"s": [4, -1]}, (2, 3)),
    "Reshape with a negative size": ("Reshape", "x s", {}, {"s": [-2, -3]}, (2, 3)),
    "Flatten at no axis": ("Flatten", "x", {"axis": 3}, {}, (2, 3)),
    "Squeeze of an axis that is not one": ("Squeeze", "x s", {}, {"s": [0]}, (2, 3)),
    "Squeeze of no axis": ("Squeeze", "x s", {}, {"s": [4]}, (1, 3)),
    "Unsqueeze twice at one place": ("Unsqueeze", "x s", {}, {"s": [1, 1]}, (2, 3)),
    "Transpose to no order": ("Transpose", "x", {"perm": [0, 0]}, {}, (2, 3)),
    "Transpose to an order of more": ("Transpose", "x", {"perm": [0, 2, 1]}, {}, (2, 3)),
    "Expand to other sizes": ("Expand", "x s", {}, {"s": [4, 5]}, (2, 3)),
    "Concat of other rows": ("Concat", "x k", {"axis": 1}, {"k": sample(5, 3)}, (2, 3)),
    "Concat of another rank": ("Concat", "x k", {"axis": 1}, {"k": sample(2)}, (2, 3)),
    "Concat along no axis": ("Concat", "x k", {"axis": 2}, {"k": sample(2, 3)}, (2, 3)),
    "Split into more": ("Split", "x s", {"axis": 1}, {"s": [2, 7]}, (2, 3)),
    "Split into less": ("Split", "x s", {"axis": 1}, {"s": [1, 1]}, (2, 3)),
    "Slice of no axis": ("Slice", "x a b c", {}, {"a": [0], "b": [1], "c": [5]}, (2, 3)),
    "Slice by nothing": (
        "Slice",
        "x a b c d",
        {},
        {"a": [0], "b": [1], "c": [0], "d": [0]},
        (2, 3),
    ),
    "Pad of other axes": ("Pad", "x p", {}, {"p": [1, 1]}, (2, 3)),
    "Pad away": ("Pad", "x p", {}, {"p": [-2, 0, -2, 0]}, (2, 3)),
    "Tile of other axes": ("Tile", "x r", {}, {"r": [2]}, (2, 3)),
    "Gather along no axis": ("Gather", "x i", {"axis": 2}, {"i": [0]}, (2, 3)),
    "GatherND of more axes": ("GatherND", "x i", {}, {"i": [[0, 0, 0]]}, (2, 3)),
    "DepthToSpace in part": ("DepthToSpace", "x", {"blocksize": 2}, {}, (1, 6, 2, 2)),
    "SpaceToDepth in part": ("SpaceToDepth", "x", {"blocksize": 2}, {}, (1, 6, 3, 2)),
    "Softmax along no axis": ("Softmax", "x", {"axis": 2}, {}, (2, 3)),
    "ArgMax along no axis": ("ArgMax", "x", {"axis": 2}, {}, (2, 3)),
    "ReduceSum of no axis": ("ReduceSum", "x s", {}, {"s": [2]}, (2, 3)),
    "MatMul of other columns": ("MatMul", "x k", {}, {"k": sample(4, 2)}, (2, 3)),
    "MatMul of other batches": ("MatMul", "x k", {}, {"k": sample(3, 3, 2)}, (2, 2, 3)),
    "Gemm of other columns": ("Gemm", "x k", {}, {"k": sample(4, 2)}, (2, 3)),
    "Gemm of other columns, turned": ("Gemm", "x k", {"transB": 1}, {"k": sample(4, 2)}, (2, 3)),
    "Gemm with another row": ("Gemm", "x k c", {}, {"k": sample(3, 4), "c": sample(2)}, (2, 3)),
    "Gemm of a vector": ("Gemm", "x k", {}, {"k": sample(3, 4)}, (3,)),
    "Conv of other channels": ("Conv", "x k", {}, {"k": sample(5, 4, 2, 2)}, (1, 3, 6, 6)),
    "Conv of other channels, 1 × 1": ("Conv", "x k", {}, {"k": sample(5, 4, 1, 1)}, (1, 3, 6, 6)),
    "Conv of other channels, one place": (
        "Conv",
        "x k",
        {},
        {"k": sample(5, 4, 1, 1)},
        (1, 3, 1, 1),
    ),
    "Conv of more channels": ("Conv", "x k", {}, {"k": sample(5, 2, 2, 2)}, (1, 3, 6, 6)),
    "Conv in other groups": ("Conv", "x k", {"group": 3}, {"k": sample(6, 2, 2, 2)}, (1, 4, 6, 6)),
    "Conv with another bias": (
        "Conv",
        "x k b",
        {},
        {"k": sample(5, 3, 2, 2), "b": sample(4)},
        (1, 3, 6, 6),
    ),
    "Conv of rows": ("Conv", "x k", {}, {"k": sample(5, 3, 2, 2)}, (3, 6, 6)),
    "Conv of a larger window": ("Conv", "x k", {}, {"k": sample(5, 3, 7, 2)}, (1, 3, 6, 6)),
    "ConvTranspose of other channels": (
        "ConvTranspose",
        "x k",
        {},
        {"k": sample(4, 5, 2, 2)},
        (1, 3, 6, 6),
    ),
    "ConvTranspose with another bias": (
        "ConvTranspose",
        "x k b",
        {},
        {"k": sample(3, 5, 2, 2), "b": sample(3)},
        (1, 3, 6, 6),
    ),
    "MaxPool of rows": ("MaxPool", "x", PLANES, {}, (3, 6)),
    "AveragePool of a larger window": (
        "AveragePool",
        "x",
        {"kernel_shape": [9, 2]},
        {},
        (1, 3, 6, 6),
    ),
    "GlobalAveragePool of no planes": ("GlobalAveragePool", "x", {}, {}, (3,)),
    "BatchNormalization of other channels": (
        "BatchNormalization",
        "x a b c d",
        {},
        {name: np.ones(4, np.float32) for name in "abcd"},
        (1, 3, 2, 2),
    ),
    "BatchNormalization of one channel": (
        "BatchNormalization",
        "x a b c d",
        {},
        {name: np.ones(4, np.float32) for name in "abcd"},
        (1, 1, 2, 2),
    ),
    "Add of other sizes": ("Add", "x k", {}, {"k": sample(4)}, (2, 3)),
    "Resize of other axes": ("Resize", "x - k", {}, {"k": [2.0, 2.0]}, (1, 3, 2, 2)),
    "Resize to less than nothing": (
        "Resize",
        "x - k",
        {},
        {"k": [1.0, 1.0, -2.0, 1.0]},
        (1, 3, 2, 2),
    ),
}


def _typed(model: bytes) -> bytes:
    """The model with outputs of f32, where what is wrong keeps their types from being found."""
    read = onnx.load_model_from_string(model)
    for item in read.graph.output:
        if not item.type.tensor_type.elem_type:
            item.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return bytes(read.SerializeToString())


@pytest.mark.parametrize("case", CASES)
def test_sizes_that_do_not_fit_are_refused_as_onnx_runtime_refuses_them(device, case):
    op, inputs, attributes, constants, fed = CASES[case]
    outputs = "y z" if op == "Split" else "y"
    x = sample(*fed)
    free = [f"d{axis}" for axis in range(len(fed))]
    nodes = [node("Relu", "x", "r"), node(op, inputs.replace("x", "r"), outputs, **attributes)]
    model = _typed(graph_of(nodes, {"x": x}, constants, outputs, shapes={"x": free}))
    with pytest.raises(Exception, match=r"ONNXRuntimeError"):
        expected(model, {"x": x})
    graph = read_graph(model)
    assert graph.missing() == []
    with pytest.raises((errors.ShapeError, errors.ModelError), match=op):
        computed(graph, {"x": x}, dict.fromkeys(outputs.split(), np.zeros((1,), np.float32)))
