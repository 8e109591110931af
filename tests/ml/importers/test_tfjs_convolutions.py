"""Convolutions, pooling and resizing of TensorFlow.js graphs, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from ml.importers import channels_last as expected
from ml.importers.tfjs_graphs import convert, ints, node, placeholder, result, run

from dala.errors import ModelError


@pytest.fixture
def sample():
    """Makes random arrays, the same in every test whatever ran before it."""
    random = np.random.default_rng(7)
    return lambda *shape: random.standard_normal(shape).astype(np.float32)


def close(given, wanted):
    assert given.shape == wanted.shape
    np.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-5)


def kinds(model):
    return [each.op_type for each in model.graph.node]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    ("strides", "dilations"), [((1, 1), (1, 1)), ((2, 3), (1, 1)), ((1, 1), (2, 3))]
)
def test_a_convolution_slides_its_window_as_in_numpy(sample, padding, strides, dilations):
    x, w = sample(1, 12, 11, 3), sample(3, 2, 3, 5)
    given = result(
        "Conv2D",
        x,
        constants=[w],
        strides=[1, *strides, 1],
        dilations=[1, *dilations, 1],
        padding=padding,
    )
    close(given, expected.convolution(x, w, strides, padding, dilations))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("multiplier", [1, 3])
def test_a_depthwise_convolution_keeps_the_channels_of_each_channel_together(
    sample, padding, multiplier
):
    x, w = sample(2, 9, 8, 4), sample(3, 3, 4, multiplier)
    given = result("DepthwiseConv2dNative", x, constants=[w], strides=[1, 2, 2, 1], padding=padding)
    close(given, expected.depthwise(x, w, (2, 2), padding))


def test_a_convolution_of_fewer_channels_works_in_groups(sample):
    x, w = sample(1, 5, 5, 6), sample(3, 3, 3, 4)
    halves = [
        expected.convolution(x[..., 3 * half :][..., :3], w[..., 2 * half :][..., :2])
        for half in (0, 1)
    ]
    close(result("Conv2D", x, constants=[w]), np.concatenate(halves, -1))


def test_explicit_paddings_may_differ_on_every_side(sample):
    x, w = sample(1, 6, 7, 2), sample(3, 3, 2, 4)
    given = result(
        "Conv2D", x, constants=[w], padding="EXPLICIT", explicit_paddings=[0, 0, 2, 0, 1, 3, 0, 0]
    )
    close(given, expected.convolution(x, w, padding=[(2, 0), (1, 3)]))


ACTIVATIONS = {
    "Relu": lambda x: np.maximum(x, 0),
    "Relu6": lambda x: np.clip(x, 0, 6),
    "Elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "LeakyRelu": lambda x: np.where(x > 0, x, x * 0.3),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("depthwise", [False, True])
def test_a_fused_convolution_adds_its_bias_and_activates(sample, name, depthwise):
    x, w, bias = sample(1, 6, 6, 3) * 4, sample(3, 3, 3, 2), sample(6 if depthwise else 2)
    given = result(
        "FusedDepthwiseConv2dNative" if depthwise else "_FusedConv2D",
        x,
        constants=[w, bias],
        padding="SAME",
        fused_ops=["BiasAdd", name],
        leakyrelu_alpha=0.3,
    )
    made = (expected.depthwise if depthwise else expected.convolution)(x, w, padding="SAME")
    close(given, ACTIVATIONS[name](made + bias))


def test_a_fused_prelu_has_a_slope_for_each_channel(sample):
    x, w, bias, slope = sample(1, 5, 5, 3), sample(3, 3, 3, 4), sample(4), sample(1, 1, 4)
    given = result("_FusedConv2D", x, constants=[w, bias, slope], fused_ops=["BiasAdd", "Prelu"])
    made = expected.convolution(x, w) + bias
    close(given, np.where(made > 0, made, made * slope))


def test_scale_and_bias_after_a_convolution_become_part_of_it(sample):
    x, w, scale, bias = sample(1, 5, 5, 3), sample(3, 3, 3, 4), sample(1, 1, 1, 4), sample(4)
    nodes = [
        placeholder("x", x.shape),
        node("c", "Conv2D", "x", "w", padding="SAME"),
        node("m", "Mul", "c", "scale"),
        node("a", "AddV2", "bias", "m"),
    ]
    model = convert(nodes, {"w": w, "scale": scale, "bias": bias})
    assert kinds(model) == ["Transpose", "Conv", "Transpose"]
    close(run(model, x)[0], expected.convolution(x, w, padding="SAME") * scale + bias)


def test_a_convolution_that_others_use_too_keeps_its_own_weights(sample):
    x, w, bias = sample(1, 5, 5, 3), sample(3, 3, 3, 4), sample(4)
    nodes = [
        placeholder("x", x.shape),
        node("c", "Conv2D", "x", "w"),
        node("a", "Add", "c", "bias"),
        node("y", "Mul", "a", "c"),
    ]
    model = convert(nodes, {"w": w, "bias": bias})
    assert kinds(model).count("Conv") == 1
    made = expected.convolution(x, w)
    close(run(model, x)[0], (made + bias) * made)


def test_a_constant_along_columns_is_not_taken_for_a_bias(sample):
    x, w, rows = sample(1, 4, 4, 3), sample(1, 1, 3, 4), sample(1, 1, 4, 1)
    nodes = [placeholder("x", x.shape), node("c", "Conv2D", "x", "w"), node("a", "Add", "c", "k")]
    close(run(convert(nodes, {"w": w, "k": rows}), x)[0], expected.convolution(x, w) + rows)


def test_zeros_around_the_input_become_part_of_the_convolution(sample):
    x, w = sample(1, 6, 7, 2), sample(3, 3, 2, 4)
    nodes = [
        placeholder("x", x.shape),
        node("p", "Pad", "x", "pairs"),
        node("c", "Conv2D", "p", "w", strides=[1, 2, 2, 1], padding="VALID"),
    ]
    model = convert(nodes, {"pairs": ints([0, 0], [1, 0], [2, 1], [0, 0]), "w": w})
    assert kinds(model) == ["Transpose", "Conv", "Transpose"]
    close(run(model, x)[0], expected.convolution(x, w, (2, 2), [(1, 0), (2, 1)]))


def dealt(x, w, block, pads, crops, padding="VALID"):
    nodes = [
        placeholder("x", x.shape),
        node("s", "SpaceToBatchND", "x", "block", "pads"),
        node("c", "DepthwiseConv2dNative", "s", "w", padding=padding),
        node("y", "BatchToSpaceND", "c", "block", "crops"),
    ]
    weights = {"block": ints(*block), "pads": ints(*pads), "crops": ints(*crops), "w": w}
    return convert(nodes, weights)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_space_dealt_to_the_batch_around_a_convolution_is_a_dilation(sample, padding):
    x, w = sample(1, 9, 10, 3), sample(3, 3, 3, 1)
    model = dealt(x, w, (2, 3), ((2, 3), (3, 5)), ((0, 1), (0, 2)), padding)
    assert kinds(model) == ["Transpose", "Conv", "Transpose"]
    rim = 0 if padding == "VALID" else 1
    wanted = [(2 + 2 * rim, 2 + 2 * rim), (3 + 3 * rim, 3 + 3 * rim)]
    close(run(model, x)[0], expected.depthwise(x, w, padding=wanted, dilations=(2, 3)))


def test_space_dealt_to_the_batch_by_itself_comes_back(sample):
    x, w = sample(2, 6, 8, 3), np.ones((1, 1, 3, 1), np.float32)
    cut = dealt(x, w, (2, 2), ((0, 0), (0, 0)), ((1, 0), (2, 1)))
    assert "Slice" in kinds(cut)
    close(run(cut, x)[0], x[:, 1:, 2:-1])
    blocks = result("SpaceToBatchND", x, constants=[ints(2, 2), ints([0, 0], [0, 0])])
    wanted = [x[:, row::2, column::2] for row in (0, 1) for column in (0, 1)]
    close(blocks, np.concatenate(wanted))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    ("window", "strides"), [((3, 3), (2, 2)), ((2, 2), (2, 2)), ((1, 2), (2, 3))]
)
def test_a_transposed_convolution_spreads_its_weights(sample, padding, window, strides):
    x, w = sample(1, 4, 5, 3), sample(*window, 2, 3)
    size = [
        count * stride if padding == "SAME" else (count - 1) * stride + width
        for count, stride, width in zip((4, 5), strides, window, strict=True)
    ]
    nodes = [
        placeholder("x", x.shape),
        node(
            "y", "Conv2DBackpropInput", "size", "w", "x", strides=[1, *strides, 1], padding=padding
        ),
    ]
    model = convert(nodes, {"size": ints(1, *size, 2), "w": w})
    close(run(model, x)[0], expected.transposed_convolution(x, w, size, strides, padding))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("first", [False, True])
def test_pooling_leaves_out_what_is_outside_of_the_image(sample, padding, first):
    x = sample(1, 7, 8, 3)
    options = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 2, 1], "padding": padding, "first": first}
    found = expected.windows(x, (3, 2), (2, 2), padding, fill=np.nan)
    close(result("MaxPool", x, **options), np.nanmax(found, (-1, -2)))
    close(result("AvgPool", x, **options), np.nanmean(found, (-1, -2)))


def test_a_pool_over_the_whole_image_gives_one_pixel(sample):
    x = sample(1, 5, 6, 3)
    given = result("AvgPool", x, ksize=[1, 5, 6, 1], strides=[1, 5, 6, 1], padding="VALID")
    close(given, x.mean((1, 2), keepdims=True))


@pytest.mark.parametrize(("aligned", "centred"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("size", [(9, 14), (3, 4), (1, 1)])
@pytest.mark.parametrize("op", ["ResizeBilinear", "ResizeNearestNeighbor"])
def test_resizing_samples_where_tensorflow_does(sample, op, size, aligned, centred):
    x = sample(1, 5, 7, 2)
    given = result(
        op, x, constants=[ints(*size)], align_corners=aligned, half_pixel_centers=centred
    )
    wanted = expected.bilinear if op == "ResizeBilinear" else expected.nearest
    close(given, wanted(x, size, aligned, centred))


@pytest.mark.parametrize("size", [(5, 7), (10, 14)])
@pytest.mark.parametrize(
    ("op", "dtype"), [("ResizeBilinear", np.float32), ("ResizeNearestNeighbor", np.int32)]
)
def test_whole_numbers_are_resized_to_what_tensorflow_makes_of_them(op, dtype, size):
    x = np.arange(70, dtype=np.int32).reshape(1, 5, 7, 2)
    given = result(op, x, constants=[ints(*size)])
    assert given.shape == (1, *size, 2)
    assert given.dtype == dtype
    assert np.array_equal(given[:, :: size[0] // 5, :: size[1] // 7], x)


def test_depth_becomes_space_and_space_depth(sample):
    x = sample(1, 4, 6, 8)
    blocks = x.reshape(1, 4, 6, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(1, 8, 12, 2)
    close(result("DepthToSpace", x, block_size=2), blocks)
    close(result("SpaceToDepth", blocks, block_size=2), x)


def test_batch_normalisation_uses_the_given_mean_and_variance(sample):
    x, scale, offset, mean = sample(1, 3, 3, 4), sample(4), sample(4), sample(4)
    variance = np.abs(sample(4))
    given = result("FusedBatchNormV3", x, constants=[scale, offset, mean, variance], epsilon=0.01)
    close(given, (x - mean) / np.sqrt(variance + 0.01) * scale + offset)


@pytest.mark.parametrize("op", ["DepthToSpace", "SpaceToDepth"])
@pytest.mark.parametrize("block", [0, -2, 3])
def test_blocks_that_do_not_fit_are_refused(sample, op, block):
    with pytest.raises(ModelError, match=rf"into blocks of {block} × {block}"):
        result(op, sample(1, 4, 4, 4), block_size=block)


@pytest.mark.parametrize(("op", "count"), [("BiasAdd", 1), ("FusedBatchNormV3", 4)])
def test_channels_first_are_refused_also_beside_convolutions(sample, op, count):
    with pytest.raises(ModelError, match="only NHWC"):
        result(op, sample(1, 4, 4, 4), constants=[sample(4)] * count, data_format="NCHW")


@pytest.mark.parametrize(
    ("attrs", "told"),
    [
        ({"data_format": "NCHW"}, "only NHWC"),
        ({"padding": "ODD"}, "SAME, VALID and EXPLICIT"),
        ({"strides": [2, 1, 1, 1]}, "[1, rows, columns, 1]"),
        ({"strides": [1, 0, 1, 1]}, "from 1 on"),
        ({"padding": "EXPLICIT"}, "explicit_paddings"),
        ({"fused_ops": ["BiasAdd", "Cube"]}, "fused with 'Cube'"),
        ({"fused_ops": ["BiasAdd", "Prelu"]}, "only 1 inputs"),
    ],
)
def test_a_convolution_that_is_not_known_is_refused_with_its_node(sample, attrs, told):
    constants = [sample(3, 3, 3, 2), sample(2)]
    with pytest.raises(ModelError) as caught:
        result("_FusedConv2D", sample(1, 6, 6, 3), constants=constants, **attrs)
    assert "node 'y' (_FusedConv2D)" in str(caught.value)
    assert told in str(caught.value)


def test_weights_for_other_channels_are_refused_with_both_shapes(sample):
    with pytest.raises(ModelError, match=r"\(3, 3, 5, 2\) do not fit its input \(1, 6, 6, 3\)"):
        result("Conv2D", sample(1, 6, 6, 3), constants=[sample(3, 3, 5, 2)])
