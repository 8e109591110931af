"""Where parts of the executor meet: dtypes and layouts, sizes at their limits, segments."""

import numpy as np
import pytest
from ml.executor.graphs import check, graph_of, node, sample
from onnx import TensorProto, helper

from dala import errors, ml
from dala.gpu import compute

DTYPES = ["u8", "s32", "s64", "f16", "f64"]
NUMPY = {"u8": np.uint8, "s32": np.int32, "s64": np.int64, "f16": np.float16, "f64": np.float64}


def outputs(model, *inputs):
    return ml.gpu.load_model(model, engine="dala").outputs(list(inputs))["y"]


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_constant_beside_channels_that_are_last_keeps_its_dtype(device, dtype, axis):
    x = (sample(2, 3, 4, 5) * 50).astype(NUMPY[dtype])
    shape = [2, 5, 3, 4]
    shape[axis] = 2
    c = (sample(*shape) * 50).astype(NUMPY[dtype])
    nodes = [node("Transpose", "x", "t", perm=[0, 3, 1, 2]), node("Concat", "t c", "y", axis=axis)]
    made = outputs(graph_of(nodes, {"x": x}, {"c": c}), x)
    np.testing.assert_array_equal(made, np.concatenate([x.transpose(0, 3, 1, 2), c], axis))


def test_values_of_two_dtypes_are_not_joined(device):
    x, c = sample(2, 3), np.ones((2, 9), np.uint8)
    nodes = [node("Abs", "x", "a"), node("Concat", "a c", "y", axis=1)]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 12))],
        [helper.make_tensor("c", TensorProto.UINT8, c.shape, c.tobytes(), raw=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(errors.DtypeError, match=r"Concat of y.* of f32, u8"):
        outputs(model.SerializeToString(), x)


@pytest.mark.parametrize("op", ["Gemm", "MatMul"])
def test_a_product_over_nothing_is_zero(device, op):
    x, w = np.zeros((3, 0), np.float32), np.zeros((0, 5), np.float32)
    made = outputs(graph_of([node(op, "x w", "y")], {"x": x}, {"w": w}), x)
    np.testing.assert_array_equal(made, np.zeros((3, 5), np.float32))


WIDE = {
    "taps": ((5, 8, 1, 3), {"pads": [0, 1, 0, 1]}),
    "step": ((5, 8, 1, 1), {"strides": [1, 2]}),
    "planes": ((5, 8, 3, 3), {"pads": [1, 1, 1, 1]}),
    "depthwise": ((8, 1, 1, 3), {"pads": [0, 1, 0, 1], "group": 8}),
}


@pytest.mark.parametrize("width", [4, 10, 500])
@pytest.mark.parametrize("case", WIDE)
def test_a_row_of_pixels_is_convolved_as_one(device, case, width):
    size, said = WIDE[case]
    x, w = sample(1, 8, 1, width), sample(*size)
    check(graph_of([node("Conv", "x w", "y", **said)], {"x": x}, {"w": w}), {"x": x})


@pytest.mark.parametrize("made", [5, 32])
def test_zeros_at_the_end_of_planes_have_the_bias_of_a_convolution(device, made):
    x, w, b = sample(1, 8, 9, 11), sample(made, 8, 1, 1), sample(made)
    model = graph_of([node("Conv", "x w b", "y", pads=[0, 0, 2, 3])], {"x": x}, {"w": w, "b": b})
    check(model, {"x": x})


def test_packed_weights_are_told_apart_by_their_scales(device):
    x = sample(2, 32)
    packed = np.arange(4 * 16, dtype=np.uint8).reshape(4, 1, 16)
    said = {"K": 32, "N": 4, "bits": 4, "block_size": 32, "domain": "com.microsoft"}
    nodes = [
        node("MatMulNBits", "x p s", "a", **said),
        node("MatMulNBits", "x p r", "b", **said),
        node("Sub", "a b", "y"),
    ]
    scales = np.full(4, 0.5, np.float32)
    made = outputs(graph_of(nodes, {"x": x}, {"p": packed, "s": scales, "r": scales * 3}), x)
    one = outputs(graph_of([node("MatMulNBits", "x p s", "y", **said)], {"x": x},
                           {"p": packed, "s": scales}), x)  # fmt: skip
    np.testing.assert_allclose(made, -2 * one, rtol=1e-5)


@pytest.mark.parametrize("noop", [0, 1])
@pytest.mark.parametrize("axes", [None, []])
def test_sums_of_constants_are_those_of_values(axes, noop):
    c, x = sample(2, 3), sample(2, 3)
    given = "c a" if axes is not None else "c"
    nodes = [
        node("ReduceSum", given, "s", noop_with_empty_axes=noop),
        node("Add", "x s", "y"),
    ]
    constants = {"c": c} | ({} if axes is None else {"a": np.array(axes, np.int64)})
    check(graph_of(nodes, {"x": x}, constants), {"x": x})


def test_a_view_of_another_dtype_stays_one_in_a_pipeline(device):
    x = sample(5)
    nodes = [node("Relu", "x", "r"), node("BitCast", "r", "y", to=TensorProto.INT32)]
    model = ml.gpu.load_model(graph_of(nodes, {"x": x}, opset=26), engine="dala")
    out = compute.buffer_zeros((5,), "s32")
    pipeline = compute.pipeline()
    pipeline.add(kernel=model, inputs=[compute.from_numpy(x)], output=out)
    pipeline.run()
    np.testing.assert_array_equal(compute.read(out), np.maximum(x, 0).view(np.int32))


@pytest.mark.parametrize("dtype", ["f16", "f64"])
def test_a_batch_normalization_takes_halves_and_doubles(device, dtype):
    x = sample(1, 3, 2, 2).astype(NUMPY[dtype])
    constants = {name: np.abs(sample(3)).astype(x.dtype) + 1 for name in "sbmv"}
    nodes = [node("BatchNormalization", "x s b m v", "y")]
    made = outputs(graph_of(nodes, {"x": x}, constants), x)
    s, b, m, v = (constants[name].astype(np.float64).reshape(1, 3, 1, 1) for name in "sbmv")
    want = (x - m) / np.sqrt(v + 1e-5) * s + b
    np.testing.assert_allclose(made, want, rtol=1e-2 if dtype == "f16" else 1e-5)


def test_a_number_is_added_to_a_product(device):
    x, w = sample(3, 4), sample(4, 5)
    nodes = [node("MatMul", "x w", "p"), node("Add", "p c", "y")]
    for c in (np.float32(2), np.float32(np.inf)):
        check(graph_of(nodes, {"x": x}, {"w": w, "c": c}), {"x": x})


def test_indices_of_a_pool_are_integers_of_64_bits(device):
    x = sample(1, 1, 4, 4)
    nodes = [node("MaxPool", "x", "m i", kernel_shape=[2, 2]), node("Add", "i one", "y")]
    model = graph_of(nodes, {"x": x}, {"one": np.int64(1)})
    assert outputs(model, x).dtype == np.int64


def test_floats_may_follow_a_branch(device):
    x, yes = sample(3), np.array(True)
    branches = {
        f"{way}_branch": helper.make_graph(
            [node(op, "x", "o")],
            way,
            [],
            [helper.make_tensor_value_info("o", TensorProto.FLOAT, (3,))],
        )
        for way, op in (("then", "Abs"), ("else", "Neg"))
    }
    nodes = [helper.make_node("If", ["c"], ["b"], **branches), node("Exp", "b", "y")]
    made = outputs(graph_of(nodes, {"c": yes, "x": x}), yes, x)
    np.testing.assert_allclose(made, np.exp(np.abs(x)), rtol=1e-6)
