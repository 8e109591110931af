"""Operators of TensorFlow.js graphs on elements and shapes, against NumPy, in both layouts."""

from __future__ import annotations

import numpy as np
import pytest
from ml.importers.tfjs_graphs import (
    convert,
    ints,
    node,
    placeholder,
    result,
    results,
    run,
    scalar,
)

from dala.errors import ModelError


@pytest.fixture
def sample():
    """Makes random arrays, the same in every test whatever ran before it."""
    random = np.random.default_rng(11)
    return lambda *shape: random.standard_normal(shape).astype(np.float32)


def close(given, wanted):
    wanted = np.asarray(wanted)
    assert given.shape == wanted.shape
    np.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-6)


@pytest.fixture(params=[False, True], ids=["channels_last", "channels_first"])
def first(request):
    return request.param


UNARY = {
    "Abs": np.abs,
    "Ceil": np.ceil,
    "Cos": np.cos,
    "Elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "Exp": np.exp,
    "Floor": np.floor,
    "LeakyRelu": lambda x: np.where(x > 0, x, x * 0.2),
    "Neg": np.negative,
    "OnesLike": np.ones_like,
    "Reciprocal": np.reciprocal,
    "Relu": lambda x: np.maximum(x, 0),
    "Relu6": lambda x: np.clip(x, 0, 6),
    "Round": np.round,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Sin": np.sin,
    "Softmax": lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "Square": np.square,
    "Tanh": np.tanh,
    "ZerosLike": np.zeros_like,
}


@pytest.mark.parametrize("op", UNARY)
def test_each_element_is_computed_as_numpy_does(sample, op, first):
    x = sample(1, 3, 4, 5) * 5
    close(result(op, x, first=first), UNARY[op](x))


@pytest.mark.parametrize(
    ("op", "wanted"),
    [("Log", np.log), ("Sqrt", np.sqrt), ("Rsqrt", lambda x: 1 / np.sqrt(x))],
)
def test_roots_and_logarithms_of_positive_numbers(sample, op, wanted):
    x = np.abs(sample(3, 4)) + 0.1
    close(result(op, x), wanted(x))


BINARY = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "RealDiv": np.divide,
    "Minimum": np.minimum,
    "Maximum": np.maximum,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
    "SquaredDifference": lambda a, b: (a - b) ** 2,
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
}


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize("shape", [(1, 3, 4, 5), (5,), (4, 1), (), (3, 1, 5)])
def test_a_constant_meets_an_image_as_with_channels_last(sample, op, shape, first):
    x, other = sample(1, 3, 4, 5), np.asarray(sample(*shape))
    close(result(op, x, constants=[other], first=first), BINARY[op](x, other))


def test_two_results_of_different_ranks_meet_as_with_channels_last(sample, first):
    x, other = sample(1, 3, 4, 5), sample(4, 5)
    close(result("Add", x, other, first=first), x + other)


@pytest.mark.parametrize(("op", "wanted"), [("FloorDiv", np.floor_divide), ("FloorMod", np.mod)])
def test_whole_numbers_are_divided_towards_minus_infinity(op, wanted):
    x, y = ints(7, -7, 7, -7, 6, -6), ints(2, 2, -2, -2, 3, 3)
    np.testing.assert_array_equal(result(op, x, y), wanted(x, y))


def test_several_tensors_are_added(sample, first):
    x, y, z = (sample(1, 2, 2, 3) for _ in range(3))
    close(result("AddN", x, y, first=first), x + y)
    close(result("AddN", x, y, z, first=first), x + y + z)


def test_truth_values_are_combined_and_choose(sample):
    a, b = np.array([True, True, False]), np.array([True, False, False])
    x, y = sample(3), sample(3)
    np.testing.assert_array_equal(result("LogicalAnd", a, b), a & b)
    np.testing.assert_array_equal(result("LogicalOr", a, b), a | b)
    np.testing.assert_array_equal(result("LogicalNot", a), ~a)
    close(result("SelectV2", a, x, y), np.where(a, x, y))
    rows, others = sample(3, 2), sample(3, 2)
    close(result("Select", a, rows, others), np.where(a[:, None], rows, others))


def test_values_are_cast_towards_zero():
    x = np.array([1.9, -1.9, 0.0], np.float32)
    given = result("Cast", x, DstT="DT_INT32")
    assert given.dtype == np.int32
    np.testing.assert_array_equal(given, [1, -1, 0])
    assert result("Cast", np.array([3, 255], np.uint8), DstT="DT_FLOAT").tolist() == [3, 255]


def test_shapes_change_as_their_constants_say(sample, first):
    x = sample(1, 2, 3, 4)
    close(result("Reshape", x, constants=[ints(4, -1)], first=first), x.reshape(4, -1))
    close(result("ExpandDims", x, constants=[scalar(-2)], first=first), x[:, :, :, None])
    close(result("Squeeze", x, squeeze_dims=[0], first=first), x[0])
    close(result("Squeeze", x, first=first), x[0])
    order = ints(3, 1, 0, 2)
    close(result("Transpose", x, constants=[order], first=first), x.transpose(order))


def test_what_only_depends_on_shapes_is_worked_out_beforehand(sample):
    x = sample(1, 4, 6, 2)
    weights = {"at": ints(1), "end": ints(2), "one": ints(1), "last": scalar(-1)}
    nodes = [
        placeholder("x", (-1, 4, 6, 2)),
        node("shape", "Shape", "x"),
        node("rows", "StridedSlice", "shape", "at", "end", "one", shrink_axis_mask=1),
        node("sizes", "Pack", "rows", "last", axis=0),
        node("y", "Reshape", "x", "sizes"),
    ]
    model = convert(nodes, weights)
    assert [each.op_type for each in model.graph.node] == ["Reshape"]
    close(run(model, x)[0], x.reshape(4, -1))


def test_a_small_file_does_not_become_a_large_one():
    weights = {"sizes": ints(2**13, 2**12), "zero": np.zeros((), np.float32)}
    nodes = [placeholder("x", (1,)), node("many", "Fill", "sizes", "zero")]
    model = convert([*nodes, node("y", "Add", "x", "many")], weights)
    assert model.ByteSize() < 1000


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_tensors_are_joined_stacked_and_split_along_any_axis(sample, axis, first):
    x, y = sample(1, 4, 2, 6), sample(1, 4, 2, 6)
    joined = result("ConcatV2", x, y, constants=[scalar(axis)], first=first)
    close(joined, np.concatenate([x, y], axis))
    close(result("Pack", x, y, axis=axis, first=first), np.stack([x, y], axis))
    parts = results("Unpack", x, axis=axis, count=x.shape[axis], first=first)
    for index, part in enumerate(parts):
        close(part, np.take(x, index, axis))


def test_parts_may_be_equal_or_of_given_sizes(sample):
    x = sample(2, 6)
    nodes = [placeholder("x", x.shape), node("y", "Split", "axis", "x", num_split=3)]
    model = convert(nodes, {"axis": scalar(1)}, outputs={"a": "y", "b": "y:1", "c": "y:2"})
    for given, wanted in zip(run(model, x), np.split(x, 3, 1), strict=True):
        close(given, wanted)
    uneven = results("SplitV", x, constants=[ints(1, -1, 2), scalar(1)], count=3)
    for given, wanted in zip(uneven, np.split(x, [1, 4], 1), strict=True):
        close(given, wanted)


SLICES = [
    ([0, 1, 0, 2], [1, 4, 3, 5], [1, 2, 1, 1], {}, np.s_[0:1, 1:4:2, 0:3, 2:5]),
    ([0, 3, 9], [9, 0, 0], [1, -2, -1], {}, np.s_[0:9, 3:0:-2, 9:0:-1]),
    ([0, 1], [0, 0], [1, 1], {"begin": 1, "end": 3}, np.s_[:, 1:]),
    ([0, -1], [0, 0], [1, 1], {"ellipsis": 1, "end": 2}, np.s_[..., -1:]),
    ([0, -2], [0, 0], [1, 1], {"ellipsis": 1, "shrink_axis": 2}, np.s_[..., -2]),
    ([0, 0], [0, 0], [1, -1], {"ellipsis": 1, "begin": 2, "end": 2}, np.s_[..., ::-1]),
    ([0, 0, 1], [0, 0, 2], [1, 1, 1], {"shrink_axis": 1, "new_axis": 2}, np.s_[0, None, 1:2]),
]


@pytest.mark.parametrize(("begin", "end", "step", "masks", "wanted"), SLICES)
def test_a_strided_slice_takes_what_numpy_does(sample, begin, end, step, masks, wanted, first):
    x = sample(1, 4, 3, 5)
    options = {f"{name}_mask": bits for name, bits in masks.items()}
    bounds = [ints(*begin), ints(*end), ints(*step)]
    close(result("StridedSlice", x, constants=bounds, first=first, **options), x[wanted])


def test_a_slice_has_a_begin_and_a_size(sample, first):
    x = sample(1, 4, 3, 5)
    constants = [ints(0, 1, 0, 2), ints(1, 2, -1, 3)]
    close(result("Slice", x, constants=constants, first=first), x[:, 1:3, :, 2:5])


@pytest.mark.parametrize(
    ("op", "mode"), [("Pad", "constant"), ("MirrorPad", "reflect"), ("MirrorPad", "symmetric")]
)
def test_a_rim_is_added_on_every_axis(sample, op, mode, first):
    x = sample(1, 4, 3, 5)
    pairs = ints([0, 0], [1, 2], [2, 0], [0, 1])
    given = result(op, x, constants=[pairs], first=first, mode=mode.upper())
    close(given, np.pad(x, pairs, mode))


def test_a_rim_of_another_value_stays_outside_of_a_convolution(sample):
    x, w = sample(1, 4, 4, 2), sample(3, 3, 2, 1)
    weights = {"pairs": ints([0, 0], [1, 1], [1, 1], [0, 0]), "fill": np.float32(2), "w": w}
    nodes = [
        placeholder("x", x.shape),
        node("p", "PadV2", "x", "pairs", "fill"),
        node("y", "Conv2D", "p", "w"),
    ]
    wide = np.pad(x, weights["pairs"], constant_values=2)
    close(run(convert(nodes, weights), x)[0], result("Conv2D", wide, constants=[w]))


REDUCTIONS = {"Max": np.max, "Min": np.min, "Sum": np.sum, "Mean": np.mean, "Prod": np.prod}


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("keep", [False, True])
def test_axes_are_reduced_as_numpy_does(sample, op, keep, first):
    x = sample(1, 3, 4, 5)
    given = result(op, x, constants=[ints(1, -1)], keep_dims=keep, first=first)
    close(given, REDUCTIONS[op](x, (1, 3), keepdims=keep))


def test_the_largest_are_found_with_their_places(sample, first):
    x = sample(1, 3, 4, 5)
    for op, wanted in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
        given = result(op, x, constants=[scalar(-1)], first=first)
        assert given.dtype == np.int32
        np.testing.assert_array_equal(given, wanted(x, -1))
    wide = result("ArgMax", x, constants=[scalar(2)], output_type="DT_INT64")
    assert wide.dtype == np.int64
    values, places = results("TopKV2", x, constants=[scalar(2)], count=2, first=first)
    order = np.argsort(-x, -1)[..., :2]
    np.testing.assert_array_equal(places, order)
    close(values, np.take_along_axis(x, order, -1))


def test_elements_are_looked_up_by_their_places(sample, first):
    x, rows = sample(1, 3, 4, 5), ints(2, 0)
    close(result("GatherV2", x, constants=[rows, scalar(1)], first=first), x[:, rows])
    points = ints([0, 2, 1], [0, 0, 3])
    close(result("GatherNd", x, constants=[points], first=first), x[0, [2, 0], [1, 3]])


@pytest.mark.parametrize("shape", [(), (2, 3)])
def test_what_is_filled_like_a_tensor_has_its_shape(sample, shape):
    for op, fill in (("ZerosLike", 0), ("OnesLike", 1)):
        given = result(op, sample(*shape))
        assert given.shape == shape
        assert (given == fill).all()


def test_constants_are_repeated_filled_and_counted(sample):
    x = sample(2, 3)
    close(result("Tile", x, constants=[ints(2, 1)]), np.tile(x, (2, 1)))
    close(result("BroadcastTo", x, constants=[ints(4, 2, 3)]), np.broadcast_to(x, (4, 2, 3)))
    nodes = [
        placeholder("x", x.shape),
        node("count", "Range", "zero", "three", "one"),
        node("filled", "Fill", "shape", "half"),
        node("sum", "AddV2", "count", "filled"),
        node("y", "Mul", "x", "sum"),
    ]
    weights = {
        name: np.float32(v) for name, v in (("zero", 0), ("three", 3), ("one", 1), ("half", 0.5))
    }
    model = convert(nodes, {**weights, "shape": ints(2, 3)})
    assert [each.op_type for each in model.graph.node] == ["Mul"]
    close(run(model, x)[0], x * (np.arange(3) + 0.5))


def test_matrices_are_multiplied_also_turned_and_fused(sample):
    x, w, bias = sample(4, 3), sample(5, 3), sample(5)
    close(result("MatMul", x, constants=[w], transpose_b=True), x @ w.T)
    fused = ["BiasAdd", "Relu"]
    given = result("_FusedMatMul", x, constants=[w.T.copy(), bias], fused_ops=fused)
    close(given, np.maximum(x @ w.T + bias, 0))


def test_few_transposes_are_left_between_convolutions():
    eye = np.eye(3, dtype=np.float32)[None, None]
    nodes = [
        placeholder("x", (1, 6, 6, 3)),
        node("a", "Conv2D", "x", "eye"),
        node("b", "Relu", "a"),
        node("c", "Conv2D", "b", "eye"),
        node("d", "AddV2", "c", "b"),
        node("e", "ConcatV2", "d", "a", "axis"),
        node("f", "MaxPool", "e", ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"),
        node("y", "ResizeBilinear", "f", "size"),
    ]
    model = convert(nodes, {"eye": eye, "axis": scalar(3), "size": ints(5, 5)})
    names = [each.op_type for each in model.graph.node]
    assert names[0] == names[-1] == "Transpose"
    assert names.count("Transpose") == 2


def test_an_operator_over_sizes_that_only_running_tells_is_refused():
    nodes = [placeholder("x", (2,), "DT_INT32"), node("y", "Fill", "x", "one")]
    with pytest.raises(ModelError, match=r"node 'y' \(Fill\): the shape \(input 0, 'x'\)"):
        convert(nodes, {"one": np.float32(1)})
