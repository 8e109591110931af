"""Values have the dtypes that ONNX declares, against ONNX's reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from ml.executor.graphs import graph_of, node, sample
from onnx.reference import ReferenceEvaluator

from dala import errors, ml
from dala.devices import current_device
from dala.gpu import compute

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
A = np.array([[5, 0, 120], [3, 7, 1]])
B = np.array([[2, 1, 9], [7, 7, 3]])


def agree(nodes, inputs, constants=None, outputs="y", opset=18):
    """Both have the same dtypes, shapes and values, whatever the device."""
    model = graph_of(nodes, inputs, constants, outputs, opset)
    with np.errstate(all="ignore"):
        want = ReferenceEvaluator(model).run(None, inputs)
    loaded = ml.gpu.load_model(model, engine="dala")
    got = loaded.outputs([inputs[item.name] for item in loaded.takes])
    for made, expected in zip(got.values(), map(np.asarray, want), strict=True):
        assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
        wide = made.astype(np.float64), expected.astype(np.float64)
        np.testing.assert_allclose(*wide, rtol=2e-3 if made.dtype == np.float16 else 1e-6)


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_arithmetic_comparisons_and_choices_keep_every_dtype(dtype, device):
    nodes = [
        node("Add", "a b", "sum"),
        node("Mul", "a b", "product"),
        node("Div", "a b", "quotient"),
        node("Max", "a b", "larger"),
        node("Less", "a b", "less"),
        node("Where", "less a b", "chosen"),
        node("Clip", "a low high", "clipped"),
        node("ReduceMax", "a", "most", keepdims=0),
        node("Transpose", "a", "turned"),
        node("Cast", "less", "ones", to=1),
    ]
    outputs = "sum product quotient larger less chosen clipped most turned ones"
    a, b = A.astype(dtype), B.astype(dtype)
    bounds = {"low": np.array(2, dtype), "high": np.array(6, dtype)}
    agree(nodes, {"a": a, "b": b}, bounds, outputs)


@pytest.mark.parametrize("to", INTEGERS + FLOATS + ["bool"])
def test_casts_lead_from_and_to_every_dtype(to, device):
    from onnx import helper

    number = helper.np_dtype_to_tensor_dtype(np.dtype(to))
    inputs = {
        "f": np.array([-1.9, 0.0, 0.5, 2.5, 99.9], np.float32)[0 if to[0] != "u" else 1 :],
        "s": np.array([0, 1, 77, 100]),
        "b": np.array([True, False]),
        "h": np.array([0.25, 3.75], np.float16),
    }
    nodes = [node("Cast", name, f"{name}_cast", to=number) for name in inputs]
    agree(nodes, inputs, outputs=" ".join(f"{name}_cast" for name in inputs))


def test_integers_of_64_bits_are_whole(device):
    x = np.array([2**40 + 1, -(2**50), 3])
    agree([node("Add", "x x", "s"), node("Neg", "s", "y")], {"x": x}, outputs="y s")


def test_logic_and_bits(device):
    p, q = np.array([True, False, True]), np.array([True, True, False])
    u = np.array([0b1100, 7, 255], np.uint8)
    nodes = [
        node("And", "p q", "and"),
        node("Or", "p q", "or"),
        node("Xor", "p q", "xor"),
        node("Not", "p", "not"),
        node("Equal", "p q", "equal"),
        node("BitwiseNot", "u", "flipped"),
        node("BitwiseXor", "u v", "bits"),
        node("BitShift", "u v", "left", direction="LEFT"),
        node("Mod", "s t", "mod"),
        node("Mod", "s t", "rest", fmod=1),
    ]
    inputs = {"p": p, "q": q, "u": u, "v": np.array([3, 1, 9], np.uint8)}
    inputs |= {"s": np.array([-7, 7, -4]), "t": np.array([3, -3, 5])}
    agree(nodes, inputs, outputs="and or xor not equal flipped bits left mod rest")


def test_floats_of_16_bits_go_through_layers_and_come_out_as_such(device):
    x, w = sample(1, 4, 5, 5).astype(np.float16), sample(3, 4, 3, 3).astype(np.float16)
    nodes = [node("Conv", "x w", "c"), node("Relu", "c", "r"), node("GlobalAveragePool", "r", "y")]
    model = graph_of(nodes, {"x": x}, {"w": w})
    y = ml.gpu.load_model(model, engine="dala").outputs([x])["y"]
    nodes32 = graph_of(nodes, {"x": x.astype("f4")}, {"w": w.astype("f4")})
    (want,) = ReferenceEvaluator(nodes32).run(None, {"x": x.astype("f4")})
    assert y.dtype == np.float16
    np.testing.assert_allclose(y.astype("f4"), want, rtol=4e-3)


def test_bf16_is_computed_in_f32_and_stored_as_such(device):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.array([1.0, 2.5, -3.0], ml_dtypes.bfloat16)
    loaded = ml.gpu.load_model(graph_of([node("Mul", "x x", "y")], {"x": x}), engine="dala")
    y = loaded.outputs([x])["y"]
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y.astype("f4"), [1.0, 6.25, 9.0])


def test_a_layer_refuses_f64_by_name(device):
    x = sample(1, 1, 4, 4).astype(np.float64)
    model = graph_of([node("AveragePool", "x", "y", kernel_shape=[2, 2])], {"x": x})
    with pytest.raises(errors.DtypeError, match=r"AveragePool \(AveragePool of y\) of f64"):
        ml.gpu.load_model(model, engine="dala").outputs([x])


# -- devices without integers of 64 bits -----------------------------------------------------------


@pytest.fixture
def narrow(device, monkeypatch):
    """A device that says it has no integers of 64 bits."""
    here = type(current_device())
    has = here.supports
    monkeypatch.setattr(here, "supports", lambda self, it: it != "s64" and has(self, it))
    return device


def test_integers_that_fit_are_held_in_32_bits_where_there_are_no_wider_ones(narrow):
    x, i = sample(3, 4), np.array([2, -1])
    nodes = [node("Gather", "x i", "g"), node("ArgMax", "g", "y", axis=1, keepdims=0)]
    loaded = ml.gpu.load_model(graph_of(nodes, {"x": x, "i": i}, outputs="y g"), engine="dala")
    made = loaded.outputs([x, i])
    assert made["y"].dtype == np.int64
    np.testing.assert_array_equal(made["y"], x[i].argmax(1))
    held = loaded.computed([compute.from_numpy(x), compute.from_numpy(i.astype(np.int32))])
    assert held["y"].dtype == "s32"


def test_integers_that_do_not_fit_are_refused_by_name(narrow):
    x = np.array([1, 2**40])
    loaded = ml.gpu.load_model(graph_of([node("Neg", "x", "y")], {"x": x}), engine="dala")
    with pytest.raises(errors.DtypeError, match="input 'x' is int64 from 1 to 1099511627776"):
        loaded.outputs([x])
    x = np.array([1, 2])
    model = graph_of([node("Add", "x c", "y")], {"x": x}, {"c": np.array([3, 2**33])})
    with pytest.raises(errors.DtypeError, match="constant 'c' is int64 from 3 to 8589934592"):
        ml.gpu.load_model(model, engine="dala").outputs([x])
