"""Convolutions, pools and products of any axes, with constants and without."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from ml.executor.graphs import (
    check,
    check_reference,
    computed,
    expected,
    graph_of,
    node,
    read_graph,
    sample,
)

from dala import errors

pytest.importorskip("onnxruntime")

ROW, PLANE, BLOCK = sample(2, 4, 11), sample(2, 4, 6, 7), sample(2, 4, 5, 4, 6)
LINE = sample(1, 4, 1, 120)

CONVOLUTIONS = {
    "row": (ROW, (6, 4, 3), {"pads": [1, 2], "strides": [2]}),
    "row_in_groups": (ROW, (6, 2, 3), {"group": 2, "dilations": [2]}),
    "row_of_each_channel": (ROW, (4, 1, 3), {"group": 4, "auto_pad": "SAME_UPPER"}),
    "block": (BLOCK, (6, 4, 3, 2, 1), {"pads": [1, 0, 0, 1, 1, 0], "strides": [1, 2, 3]}),
    "block_in_groups": (BLOCK, (6, 2, 2, 2, 3), {"group": 2, "dilations": [2, 1, 1]}),
    "plane_in_groups": (PLANE, (6, 2, 3, 2), {"group": 2, "strides": [2, 1]}),
    "plane_of_one_row": (LINE, (6, 4, 1, 3), {"pads": [0, 1, 0, 1], "strides": [1, 2]}),
    "plane_of_one_row_of_each_channel": (LINE, (4, 1, 3, 3), {"group": 4, "pads": [1] * 4}),
}


@pytest.mark.parametrize("fixed", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolution_along_any_axes_with_weights_of_any_kind(case, fixed, device):
    x, size, attributes = CONVOLUTIONS[case]
    weights = {"w": sample(*size, seed=1), "b": sample(size[0], seed=2)}
    nodes = [node("Conv", "x w b", "c", **attributes), node("Relu", "c", "y")]
    given = {"x": x} if fixed else {"x": x, **weights}
    check(graph_of(nodes, given, weights if fixed else {}), given)


def test_what_follows_a_convolution_of_rows_is_broadcast_as_before(device):
    constants = {"w": sample(6, 4, 3), "by": sample(6, 1), "more": sample(9)}
    nodes = [
        node("Conv", "x w", "c"),
        node("Mul", "c by", "m"),
        node("Add", "m more", "y"),
    ]
    check(graph_of(nodes, {"x": ROW}, constants), {"x": ROW})


def test_what_follows_a_product_may_be_one_number_that_is_computed(device):
    x = sample(5, 4)
    nodes = [
        node("MatMul", "x w", "p"),
        node("ReduceMax", "x", "most", keepdims=0),
        node("Sub", "p most", "y"),
    ]
    check(graph_of(nodes, {"x": x}, {"w": sample(4, 6)}), {"x": x})


TRANSPOSED = {
    "row": (ROW, (4, 3, 3), {"strides": [2], "pads": [1, 0]}),
    "block": (BLOCK, (4, 2, 2, 3, 1), {"strides": [2, 1, 2], "output_padding": [1, 0, 1]}),
    "plane_in_groups": (PLANE, (4, 3, 3, 2), {"group": 2, "strides": [2, 3]}),
    "one_tap_with_more_beside": (
        PLANE,
        (4, 2, 1, 1),
        {"strides": [3, 3], "output_padding": [1, 1]},
    ),
    "larger_than_natural": (PLANE, (4, 2, 3, 3), {"strides": [2, 2], "output_shape": [14, 16]}),
    "smaller_than_natural": (PLANE, (4, 2, 4, 4), {"strides": [2, 2], "output_shape": [11, 12]}),
    "same_upper": (PLANE, (4, 2, 3, 4), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    "same_lower": (PLANE, (4, 2, 3, 4), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
}


@pytest.mark.parametrize("fixed", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize("case", TRANSPOSED)
def test_transposed_convolution_along_any_axes(case, fixed, device):
    x, size, attributes = TRANSPOSED[case]
    made = size[1] * attributes.get("group", 1)
    weights = {"w": sample(*size, seed=1), "b": sample(made, seed=2)}
    given = {"x": x} if fixed else {"x": x, **weights}
    nodes = [node("ConvTranspose", "x w b", "y", **attributes)]
    check(graph_of(nodes, given, weights if fixed else {}), given)


def test_transposed_convolution_keeps_nan_under_its_windows(device):
    x = sample(1, 1, 4, 4)
    x[0, 0, 1, 2] = np.nan
    layer = node("ConvTranspose", "x w", "y", strides=[2, 2])
    model = graph_of([layer], {"x": x}, {"w": sample(1, 1, 4, 4)})
    want = expected(model, {"x": x})
    got = computed(read_graph(model), {"x": x}, want)
    assert np.isnan(got["y"]).sum() == np.isnan(want["y"]).sum() == 16
    np.testing.assert_allclose(got["y"], want["y"], rtol=1e-5, atol=1e-5)


def test_columns_become_an_image(device):
    x = sample(2, 3 * 6, 12)
    layer = node("Col2Im", "x size block", "y", strides=[2, 1], pads=[0, 1, 1, 0])
    constants = {"size": [5, 5], "block": [2, 3]}
    check(graph_of([layer], {"x": x}, constants, opset=18), {"x": x})


POOLS = {
    "row": (ROW, {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    "plane": (PLANE, {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]}),
    "plane_rounded_up": (PLANE, {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "plane_same": (PLANE, {"kernel_shape": [3, 2], "auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    "block": (BLOCK, {"kernel_shape": [2, 3, 2], "strides": [1, 2, 2], "pads": [0, 1, 1, 1, 1, 0]}),
    "dilated": (PLANE, {"kernel_shape": [2, 2], "dilations": [2, 3], "pads": [1, 1, 1, 1]}),
}
MORE = {
    "MaxPool": [{}],
    "AveragePool": [{}, {"count_include_pad": 1}],
    "LpPool": [{}, {"p": 3}],
}


@pytest.mark.parametrize("case", POOLS)
@pytest.mark.parametrize("op", MORE)
def test_pool_along_any_axes(op, case, device):
    x, attributes = POOLS[case]
    if op == "LpPool" and "ceil_mode" in attributes:
        pytest.skip("ONNX Runtime rounds it down")
    for more in MORE[op]:
        layer = node(op, "x", "y", **attributes, **more)
        check(graph_of([layer], {"x": x}, opset=19), {"x": x})


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("case", ["row", "plane", "block", "dilated"])
def test_places_of_the_largest(case, order, device):
    x, attributes = POOLS[case]
    x = np.round(x * 2)  # some are the same: the first of them counts
    layer = node("MaxPool", "x", "y at", **attributes, storage_order=order)
    check(graph_of([layer], {"x": x}, outputs="y at"), {"x": x})


@pytest.mark.parametrize("attributes", [POOLS["plane"][1], POOLS["dilated"][1]])
def test_the_largest_of_minus_infinity_is_itself(attributes, device):
    x = np.full((1, 1, 6, 7), -np.inf, np.float32)
    model = graph_of([node("MaxPool", "x", "y", **attributes)], {"x": x})
    got = computed(read_graph(model), {"x": x}, expected(model, {"x": x}))["y"]
    assert np.isneginf(got).all()


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("x", [ROW, PLANE, BLOCK], ids=["row", "plane", "block"])
def test_pool_over_whole_planes(op, x, device):
    more = {"p": 3} if op == "GlobalLpPool" else {}
    check(graph_of([node(op, "x", "y", **more)], {"x": x}), {"x": x})


@pytest.mark.parametrize("wanted", [None, [2, 4, 8, 9]], ids=["natural", "larger"])
def test_the_largest_go_back_to_their_places(wanted, device):
    size = {"kernel_shape": [2, 2], "strides": [2, 2]}
    x = sample(2, 4, 6, 8)
    back = node("MaxUnpool", "p at size" if wanted else "p at", "y", **size)
    nodes = [node("MaxPool", "x", "p at", **size), back]
    model = graph_of(nodes, {"x": x}, {"size": wanted} if wanted else {})
    if wanted is None:
        check(model, {"x": x})
        return
    got = computed(read_graph(model), {"x": x}, {"y": np.zeros(wanted, np.float32)})["y"]
    plain = graph_of([nodes[0], node("MaxUnpool", "p at", "y", **size)], {"x": x})
    want = expected(plain, {"x": x})["y"]
    np.testing.assert_array_equal(got[:, :, :6, :8], want)
    assert not got[:, :, 6:].any()
    assert not got[:, :, :, 8:].any()


PRODUCTS = {
    "matrices": ((3, 4), (4, 5)),
    "vector_and_matrix": ((4,), (4, 5)),
    "matrix_and_vector": ((3, 4), (4,)),
    "vectors": ((4,), (4,)),
    "batch_and_vector": ((2, 3, 4), (4,)),
    "batch_and_matrix": ((2, 3, 4), (4, 5)),
    "matrix_and_batch": ((3, 4), (2, 4, 5)),
    "batches_spread_both_ways": ((2, 1, 3, 4), (3, 4, 5)),
    "batches_of_some_axes": ((2, 3, 2, 3, 4), (3, 1, 4, 5)),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_product_of_any_ranks(case, device):
    a, b = (sample(*shape, seed=i) for i, shape in enumerate(PRODUCTS[case]))
    check(graph_of([node("MatMul", "a b", "y")], {"a": a, "b": b}), {"a": a, "b": b})


@pytest.mark.parametrize("c", [None, (), (5,), (3, 1), (1, 5), (3, 5)])
@pytest.mark.parametrize("turned", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_gemm_of_any_kind(c, turned, device):
    a, b = sample(3, 4), sample(4, 5, seed=1)
    given = {"a": a.T if turned[0] else a, "b": b.T if turned[1] else b}
    given = {name: np.ascontiguousarray(item) for name, item in given.items()}
    if c is not None:
        given["c"] = np.asarray(sample(*c, seed=2))
    numbers = {"alpha": 0.5, "beta": 2.0, "transA": turned[0], "transB": turned[1]}
    layer = node("Gemm", " ".join(given), "y", **numbers)
    kept = {name: item for name, item in given.items() if item.shape}
    check(graph_of([layer], kept, {"c": given["c"]} if c == () else {}), kept)
    fixed = {name: item for name, item in given.items() if name != "a"}
    check(graph_of([layer], {"a": given["a"]}, fixed), {"a": given["a"]})


REFUSED = {
    "gemm": (node("Gemm", "x w", "y"), (2, 3), (4, 5), "3 columns, but b has 4 rows"),
    "product": (node("MatMul", "x w", "y"), (2, 3), (4, 5), "has 3 columns"),
    "pointwise": (node("Conv", "x w", "y"), (1, 3, 2, 2), (5, 4, 1, 1), "for 4 channels"),
    "single_place": (node("Conv", "x w", "y"), (1, 3, 1, 1), (5, 4, 1, 1), "for 4 channels"),
    "axes": (node("Conv", "x w", "y"), (1, 3, 2), (5, 3, 1, 1), "the same axes"),
    "window": (node("Conv", "x w", "y"), (1, 3, 2), (5, 3, 3), "does not fit"),
    "turned": (node("ConvTranspose", "x w", "y"), (1, 3, 2), (5, 3, 3), "for 5 channels"),
    "blocks": (node("DepthToSpace", "x", "y", blocksize=2), (1, 6, 2, 2), (1,), "no blocks"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_sizes_that_do_not_fit_are_refused(case, device):
    layer, x, w, complaint = REFUSED[case]
    given, room = sample(*x), np.zeros((1, 1), np.float32)
    # Declared without sizes, since ONNX would not infer any.
    model = onnx.load_model_from_string(graph_of([layer], {"x": given}, {"w": sample(*w)}))
    model.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y", 1, ["a", "b"]))
    with pytest.raises(errors.ShapeError, match=complaint):
        computed(read_graph(model.SerializeToString()), {"x": given}, {"y": room})


@pytest.mark.parametrize(("group", "parts", "masked"), [(1, 1, False), (2, 1, True), (2, 4, True)])
def test_convolution_whose_taps_are_moved(group, parts, masked, device):
    taps, places = 3 * 2, (3, 6)
    given = {
        "x": PLANE,
        "w": sample(6, 4 // group, 3, 2, seed=1),
        "o": sample(2, 2 * parts * taps, *places, seed=2),
        "b": sample(6, seed=3),
    }
    if masked:
        given["m"] = sample(2, parts * taps, *places, seed=4)
    more = {"group": group, "offset_group": parts, "strides": [2, 1], "pads": [1, 0, 1, 0]}
    layer = node("DeformConv", " ".join(given), "y", kernel_shape=[3, 2], **more)
    check_reference(graph_of([layer], given, opset=19), given)
