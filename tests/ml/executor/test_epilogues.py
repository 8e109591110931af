"""Elementwise operators, and chains of them that are computed with what stands before them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from ml.executor.graphs import check, computed, expected, graph_of, node, read_graph, sample

from dala.gpu import compute

X = sample(2, 6, 7, 9)
W, B = sample(8, 6, 3, 3, seed=1), sample(8, seed=2)

ALONE = {
    "Abs": {},
    "Ceil": {},
    "Celu": {"alpha": 0.8},
    "Elu": {"alpha": 0.7},
    "Erf": {},
    "Exp": {},
    "Floor": {},
    "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
    "HardSwish": {},
    "LeakyRelu": {"alpha": 0.1},
    "Neg": {},
    "Relu": {},
    "Selu": {},
    "Sigmoid": {},
    "Softplus": {},
    "Softsign": {},
    "Tanh": {},
}


@pytest.mark.parametrize("op", ALONE)
def test_one_operator_alone_and_after_a_convolution(op, device):
    check(graph_of([node(op, "x", "y", **ALONE[op])], {"x": X}), {"x": X})
    nodes = [node("Conv", "x w b", "c"), node(op, "c", "y", **ALONE[op])]
    check(graph_of(nodes, {"x": X}, {"w": W, "b": B}), {"x": X})


@pytest.mark.parametrize("op", ["Log", "Reciprocal", "Sqrt"])
def test_operators_of_positive_numbers(op, device):
    x = np.abs(X) + 0.1
    check(graph_of([node(op, "x", "y")], {"x": x}), {"x": x})


@pytest.mark.parametrize("power", [2.0, 0.5, 3.0, -1.0])
def test_powers(power, device):
    x = np.abs(X) + 0.1
    check(graph_of([node("Pow", "x p", "y")], {"x": x}, {"p": power}), {"x": x})


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "PRelu"])
@pytest.mark.parametrize("shape", [(1,), (6, 1, 1), (9,), (1, 1, 7, 9)])
def test_operands_that_are_spread(op, shape, device):
    k = sample(*shape, seed=3) + 3
    if op in ("Max", "Min"):
        k = k - 3
    check(graph_of([node(op, "x k", "y")], {"x": X}, {"k": k}), {"x": X})


def test_a_result_larger_than_each_operand(device):
    a, b = sample(3, 1, 5), sample(4, 1, seed=1)
    check(graph_of([node("Add", "a b", "y")], {"a": a, "b": b}), {"a": a, "b": b})


@pytest.mark.parametrize("bounds", ["x low high", "x low", "x - high"])
def test_clip_with_one_bound_or_both(bounds, device):
    used = {name: value for name, value in (("low", -0.5), ("high", 0.75)) if name in bounds}
    check(graph_of([node("Clip", bounds, "y")], {"x": X}, used), {"x": X})


def test_batch_normalisation_after_a_convolution_and_alone(device):
    constants = {"w": W, "b": B, "scale": B + 2, "shift": B, "mean": -B, "var": np.abs(B) + 0.5}
    nodes = [
        node("Conv", "x w b", "c"),
        node("BatchNormalization", "c scale shift mean var", "n", epsilon=1e-3),
        node("Relu", "n", "y"),
    ]
    check(graph_of(nodes, {"x": X}, constants), {"x": X})
    x = sample(2, 8, 3, 3)
    alone = [node("BatchNormalization", "x scale shift mean var", "y")]
    del constants["w"], constants["b"]
    check(graph_of(alone, {"x": x}, constants), {"x": x})


def test_bytes_are_cast_to_floats(device):
    x = np.arange(48, dtype=np.uint8).reshape(1, 4, 4, 3)
    nodes = [node("Cast", "x", "f", to=1), node("Div", "f k", "y")]
    check(graph_of(nodes, {"x": x}, {"k": 255.0}), {"x": x})


def test_floats_are_cut_off_to_whole_numbers(device):
    nodes = [node("Cast", "x", "y", to=6)]
    check(graph_of(nodes, {"x": X * 3}), {"x": X * 3})


def test_remainders_of_whole_numbers(device):
    nodes = [node("Cast", "x", "w", to=7), node("Mod", "w k", "m"), node("Sub", "m k", "y")]
    check(graph_of(nodes, {"x": X * 9}, {"k": np.array(4)}), {"x": X * 9})


def test_quotients_of_whole_numbers_are_cut_off(device):
    nodes = [node("Cast", "x", "w", to=6), node("Div", "w k", "y")]
    check(graph_of(nodes, {"x": X * 9}, {"k": np.array(4, np.int32)}), {"x": X * 9})


def stages_of(model: bytes, x: np.ndarray = X) -> list[str]:
    """The names of the kernels that compute a model."""
    graph = read_graph(model)
    want = expected(model, {"x": x})
    given = {"x": compute.from_numpy(x)}
    rooms = {name: compute.buffer_zeros(item.shape, "f32") for name, item in want.items()}
    return [stage.kernel.name for stage in graph.stages(given, rooms)]


SWISH = [
    node("Conv", "x w b", "c"),
    node("Add", "c three", "a"),
    node("Clip", "a zero six", "l"),
    node("Mul", "c l", "m"),
    node("Div", "m six", "y"),
]
NUMBERS = {"w": W, "b": B, "three": 3.0, "zero": 0.0, "six": 6.0}


def test_a_value_that_is_used_twice_inside_of_a_chain_stays_inside(webgpu):
    model = graph_of(SWISH, {"x": X}, NUMBERS)
    check(model, {"x": X})
    assert stages_of(model) == ["convolve"]


@pytest.mark.parametrize("op", ["Erf", "Exp", "Log", "Sqrt", "Sigmoid", "Tanh", "Floor"])
def test_every_function_can_end_a_convolution_with_the_bits_it_has_by_itself(op, webgpu):
    nodes = [node("Conv", "x w b", "c"), node("Abs", "c", "a"), node(op, "a", "y")]
    fused = graph_of(nodes, {"x": X}, {"w": W, "b": B})
    assert stages_of(fused) == ["convolve"]
    apart = graph_of(nodes, {"x": X}, {"w": W, "b": B}, outputs="y a c")
    assert stages_of(apart)[-1] != "convolve"
    results = [
        computed(read_graph(model), {"x": X}, expected(model, {"x": X}))["y"]
        for model in (fused, apart)
    ]
    np.testing.assert_array_equal(*results)


def test_a_value_that_is_wanted_is_computed_by_itself(device):
    check(graph_of(SWISH, {"x": X}, NUMBERS, outputs="y c l"), {"x": X})


def test_a_value_that_others_use_too_is_computed_once(webgpu):
    pools = [node("MaxPool", name, f"{name}p", kernel_shape=[2, 2]) for name in ("y", "c")]
    model = graph_of([*SWISH, *pools], {"x": X}, NUMBERS, outputs="yp cp")
    check(model, {"x": X})
    assert stages_of(model).count("convolve") == 1


def test_a_convolution_that_is_spread_over_planes_is_computed_before(device):
    nodes = [
        node("GlobalAveragePool", "x", "p"),
        node("Conv", "p w", "c"),
        node("Sigmoid", "c", "s"),
        node("Mul", "x s", "y"),
    ]
    check(graph_of(nodes, {"x": X}, {"w": sample(6, 6, 1, 1)}), {"x": X})
    nodes = [node("Conv", "x w", "c"), node("Add", "c k", "y")]
    constants = {"w": sample(1, 6, 7, 9), "k": sample(1, 1, 3, 5)}
    check(graph_of(nodes, {"x": X}, constants), {"x": X})


def test_two_convolutions_that_are_added_are_two_stages(webgpu):
    nodes = [
        node("Conv", "x w b", "c"),
        node("Relu", "c", "r"),
        node("Conv", "x v", "d"),
        node("Sigmoid", "d", "s"),
        node("Add", "r s", "y"),
    ]
    model = graph_of(nodes, {"x": X}, {"w": W, "b": B, "v": W[::-1].copy()})
    check(model, {"x": X})
    assert stages_of(model) == ["convolve", "convolve"]


def test_a_chain_on_the_cpu_is_part_of_the_convolution_whose_channels_lie_last():
    with compute.device("cpu"):
        model = graph_of(SWISH, {"x": X}, NUMBERS)
        assert stages_of(model) == ["transpose", "convolve", "transpose"]


def test_operands_of_every_spread_after_a_convolution(device):
    nodes = [
        node("Conv", "x w b", "c"),
        node("Mul", "c each", "m"),
        node("Add", "m rows", "a"),
        node("Add", "a whole", "s"),
        node("Sub", "s channel", "y"),
    ]
    constants = {
        "w": W,
        "b": B,
        "each": sample(2, 8, 1, 1, seed=3),
        "rows": sample(1, 1, 5, 7, seed=4),
        "channel": sample(8, 1, 1, seed=5),
    }
    whole = sample(2, 8, 5, 7, seed=6)
    inputs = {"x": X, "whole": whole}
    check(graph_of(nodes, inputs, constants), inputs)


def test_more_operands_than_a_kernel_takes_are_shared_out(device):
    count = 9
    inputs = {f"x{i}": sample(3, 4, seed=i) for i in range(count)}
    nodes = [node("Add", "x0 x1", "s1")]
    nodes += [
        node("Add", f"s{i - 1} x{i}", f"s{i}" if i < count - 1 else "y") for i in range(2, count)
    ]
    check(graph_of(nodes, inputs), inputs)
    together = [node("Sum", " ".join(inputs), "y")]
    check(graph_of(together, inputs), inputs)


def test_a_result_that_a_later_stage_reads_is_not_overwritten(device):
    # Planes of one size, of which the first is needed to the end.
    nodes = [
        node("Transpose", "x", "a", perm=[0, 1, 3, 2]),
        node("MaxPool", "a", "b", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("MaxPool", "b", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("MaxPool", "c", "d", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Concat", "a d b", "y", axis=1),
    ]
    check(graph_of(nodes, {"x": X}), {"x": X})


def test_stages_are_bound_anew_to_other_buffers(device):
    model = graph_of(SWISH, {"x": X}, NUMBERS)
    graph = read_graph(model)
    for seed in range(3):
        inputs = {"x": sample(2, 6, 7, 9, seed=seed)}
        want = expected(model, inputs)
        got = computed(graph, inputs, want)
        np.testing.assert_allclose(got["y"], want["y"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("op", ["Max", "Min"])
def test_constants_of_any_number_are_folded_and_stay_what_they_are(op, device):
    x, constants = sample(5), {name: sample(5, seed=i) for i, name in enumerate("abc")}
    nodes = [
        node(op, "a b c", "most"),
        node(op, "a", "one"),
        node("Sum", "x most one c", "y"),
    ]
    check(graph_of(nodes, {"x": x}, constants), {"x": x})


def test_remainders_of_constants_have_the_sign_that_is_asked_for(device):
    constants = {"a": [-5.5, 5.5, 7.0], "b": [2.0, -2.0, 4.0]}
    nodes = [node("Mod", "a b", "m", fmod=1), node("Add", "x m", "y")]
    check(graph_of(nodes, {"x": sample(3)}, constants), {"x": sample(3)})


@pytest.mark.parametrize("count", [1, 5])
def test_what_no_fold_computes_of_constants_is_computed_on_the_device(count, device):
    constants = {"a": sample(count, seed=1), "low": -0.2, "high": 0.9}
    nodes = [
        node("Sigmoid", "a", "s"),
        node("Clip", "a low high", "c"),
        node("Sum", "x s c a", "y"),
    ]
    check(graph_of(nodes, {"x": sample(5)}, constants), {"x": sample(5)})


@pytest.mark.parametrize("number", [-np.inf, np.inf, np.nan])
def test_a_number_that_cannot_be_written_is_one_all_the_same(number, device):
    nodes = [node("Conv", "x w b", "c"), node("Add", "c n", "y")]
    check(graph_of(nodes, {"x": X}, {"w": W, "b": B, "n": number}), {"x": X})


def test_a_chain_may_be_longer_than_calls_are_deep(device):
    names = ["x", *(f"v{i}" for i in range(1200)), "y"]
    nodes = [node("Neg", one, other) for one, other in pairwise(names)]
    check(graph_of(nodes, {"x": sample(3)}), {"x": sample(3)})
