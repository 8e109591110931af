"""Kernels that return several values, each into an output of its own."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.errors import ArgumentError, KernelSyntaxError, KernelTypeError, ShapeError
from dala.gpu import compute
from dala.runtime.kernels.kernel import from_source

RANDOM = np.random.default_rng(5)


@dala.kernel
def gradients(x):
    i, j = dala.position(2)
    return x[i, j + 1] - x[i, j - 1], x[i + 1, j] - x[i - 1, j]


@dala.kernel
def divided(a, b) -> tuple[dala.s32, dala.f32, dala.u8]:
    return a // b, a % b, a > b


def across_and_down(x):
    padded = np.pad(x, 1, "edge")
    across = padded[1:-1, 2:] - padded[1:-1, :-2]
    return across, padded[2:, 1:-1] - padded[:-2, 1:-1]


def buffers(*dtypes, shape):
    return [compute.buffer_zeros(shape, dtype) for dtype in dtypes]


# -- calls ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(9, 7), (3, 300), (1, 1), (2, 1025)])
def test_a_call_gives_one_array_for_each_value(device, shape):
    x = RANDOM.random(shape, np.float32)
    found = gradients(x)
    assert isinstance(found, tuple)
    for got, want in zip(found, across_and_down(x), strict=True):
        assert np.allclose(got, want, atol=1e-6)


def test_each_output_has_the_dtype_of_its_annotation(device):
    a = RANDOM.integers(-50, 50, (7, 33)).astype(np.int32)
    b = RANDOM.integers(1, 9, (7, 33)).astype(np.int32)
    quotient, rest, greater = divided(a, b)
    assert [item.dtype for item in (quotient, rest, greater)] == [np.int32, np.float32, np.uint8]
    assert np.array_equal(quotient, a // b)
    assert np.array_equal(rest, a % b)
    assert np.array_equal(greater, a > b)


def test_each_output_has_the_dtype_of_its_expression(device):
    @dala.kernel
    def both(x):
        return x, x * 0.5, x > 3

    whole, half, large = both(np.arange(6, dtype=np.int32))
    assert (whole.dtype, half.dtype, large.dtype) == (np.int32, np.float32, np.bool_)
    assert half.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
    assert large.tolist() == [0, 0, 0, 0, 1, 1]


def test_out_and_dtype_are_for_all_outputs_or_for_each(device):
    x = RANDOM.random((5, 6), np.float32)
    want = across_and_down(x)
    into = tuple(np.empty((5, 6), np.float32) for _ in range(2))
    found = gradients(x, out=into)
    assert all(a is b for a, b in zip(found, into, strict=True))
    assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(into, want, strict=True))
    assert [item.dtype for item in gradients(x, dtype="s32")] == [np.int32] * 2
    assert [item.dtype for item in gradients(x, dtype=("f32", "s32"))] == [np.float32, np.int32]
    assert [item.shape for item in gradients(x, shape=(2, 3))] == [(2, 3)] * 2
    assert [item.shape for item in gradients(x, shape=((2, 3), (2, 3)))] == [(2, 3)] * 2
    held = gradients(compute.from_numpy(x))
    assert all(isinstance(item, compute.Buffer) for item in held)
    assert np.array_equal(compute.read(held[1]), into[1])


def test_a_kernel_given_as_text_returns_several(device):
    both = from_source("both", "def both(x) -> tuple[f32, s32]:\n    return x + 1, x * 2")
    more, twice = both(np.array([1.0, 2.5], np.float32))
    assert more.tolist() == [2.0, 3.5]
    assert twice.tolist() == [2, 5]


def test_branches_and_loops_return_several(device):
    @dala.function
    def order(a, b):
        if a > b:
            return b, a
        return a, b

    @dala.kernel
    def first_above(x, limit: float):
        (i,) = dala.position(1)
        for k in range(8):
            if x[i, k] > limit:
                return k, x[i, k]
        low, high = order(x[i, 0], x[i, 7])
        return -1, high - low

    x = RANDOM.random((20, 8), np.float32)
    place, value = first_above(x, limit=0.8, shape=(20,), dtype=("s32", "f32"))
    above = x > 0.8
    found = above.any(1)
    assert np.array_equal(place, np.where(found, above.argmax(1), -1))
    none = np.abs(x[:, 0] - x[:, 7])
    assert np.allclose(value, np.where(found, x[np.arange(20), above.argmax(1)], none), atol=1e-6)


# -- images ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("width", [37, 40])
def test_an_image_and_its_mask_are_two_outputs(device, channels, dtype, width):
    @dala.kernel
    def split(image: dala.Image):
        p = image.pixel
        return dala.rgba(p.b, p.g, p.r, 1.0), dala.luma(p) > 0.5, p * 0.5

    image = RANDOM.integers(0, 256, (5, width, channels)).astype(np.uint8)
    if dtype == np.float32:
        image = (image / 255).astype(np.float32)
    swapped, mask, half = split(image)
    assert (swapped.shape, mask.shape, half.shape) == (image.shape, image.shape[:2], image.shape)
    assert np.array_equal(swapped[..., :3], image[..., 2::-1])
    scale = 255 if dtype == np.uint8 else 1
    luma = image[..., :3] / scale @ [0.299, 0.587, 0.114]
    sure = np.abs(luma - 0.5) > 1e-3
    assert np.array_equal(mask[sure], (luma > 0.5)[sure])
    assert np.abs(half[..., :3] - image[..., :3] / 2).max() <= (0.51 if scale > 1 else 1e-6)


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_two_images_whose_channels_are_treated_alike(device, channels, dtype):
    @dala.kernel
    def levels(image: dala.Image):
        y, x = dala.position(2)
        smooth = (image[y, x - 1] + image[y, x] + image[y, x + 1]) / 3.0
        return smooth, image[y, x] - smooth + 0.5

    whole = RANDOM.integers(0, 256, (6, 75, channels)).astype(np.float32)
    image = whole.astype(np.uint8) if dtype == "u8" else whole / np.float32(255)
    low, high = levels(image)
    padded = np.pad(whole, ((0, 0), (1, 1), (0, 0)), "edge")
    smooth = (padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]) / 3
    scale, off = (1, 0.51) if dtype == "u8" else (255, 1e-3)
    assert np.abs(low * scale - smooth).max() <= off
    assert np.abs(high * scale - np.clip(whole - smooth + 127.5, *_bounds(dtype))).max() <= off


def _bounds(dtype):
    return (0, 255) if dtype == "u8" else (-np.inf, np.inf)


def test_rows_that_share_a_reduction_have_several_outputs(device):
    @dala.kernel
    def shares(x):
        i, j = dala.position(2)
        total = sum(x[i, k] for k in range(x.shape[1]))
        return x[i, j] / total, 255.0 * x[i, j] / total

    x = RANDOM.random((3, 301), np.float32)
    part, level = shares(x, dtype=("f32", "u8"))
    want = x / x.sum(1, keepdims=True)
    assert np.allclose(part, want, rtol=1e-4)
    assert np.abs(level - 255 * want).max() <= 0.51


# -- memory ---------------------------------------------------------------------------------------


def test_outputs_may_be_inputs_that_are_read_at_their_own_position(device):
    @dala.kernel
    def turned(x, y, angle: float):
        s, c = dala.sin(angle), dala.cos(angle)
        return c * x - s * y, s * x + c * y

    x, y = RANDOM.random((2, 40, 33), np.float32)
    want = turned(x, y, angle=0.3)
    for order in (0, 1), (1, 0):
        held = [compute.from_numpy(x), compute.from_numpy(y)]
        into = [held[i] for i in order]
        compute.run_kernel(turned, held, into, {"angle": 0.3})
        for got, expected in zip(into, want, strict=True):
            assert np.allclose(compute.read(got), expected, atol=1e-6)


def test_outputs_may_be_inputs_that_are_read_elsewhere(device):
    x = RANDOM.random((30, 33), np.float32)
    want = across_and_down(x)
    held, other = compute.from_numpy(x), compute.buffer_zeros((30, 33), "f32")
    compute.run_kernel(gradients, [held], [other, held])
    assert np.allclose(compute.read(other), want[0], atol=1e-6)
    assert np.allclose(compute.read(held), want[1], atol=1e-6)


def test_two_outputs_in_one_memory_are_refused(device):
    x, out = (compute.buffer_zeros((4, 5), "f32") for _ in range(2))
    with pytest.raises(ArgumentError, match="outputs 0 and 1 share memory"):
        compute.run_kernel(gradients, [x], [out, out])


def test_large_outputs_are_written_whole(device):
    @dala.kernel
    def two(x):
        return x + 1.0, x * 2.0

    x = RANDOM.random((2100, 1031), np.float32)
    more, twice = two(x)
    assert np.array_equal(more, x + np.float32(1))
    assert np.array_equal(twice, x * np.float32(2))


def test_a_loop_that_ends_too_late_changes_no_output(device):
    @dala.kernel
    def endless(x):
        k = 0
        while k < 1:
            k = k * 1
        return x + k, x - k

    x = compute.buffer_zeros((2,), "f32")
    outputs = [compute.buffer([7.0, 8.0], (2,), "f32") for _ in range(2)]
    with pytest.raises(dala.errors.KernelTimeoutError):
        compute.run_kernel(endless, [x], outputs)
    assert [compute.read_list(item) for item in outputs] == [[7.0, 8.0]] * 2


def test_empty_outputs_take_nothing(device):
    found = gradients(np.zeros((0, 4), np.float32))
    assert [item.shape for item in found] == [(0, 4)] * 2


# -- mistakes -------------------------------------------------------------------------------------


def test_another_number_of_outputs_is_refused_with_both_numbers(device):
    x = compute.buffer_zeros((4, 5), "f32")
    one, two, three = buffers("f32", "f32", "f32", shape=(4, 5))
    with pytest.raises(
        KernelTypeError, match=r"(?s)gives 2 values, but has 1 output .*\[out0, out1"
    ):
        compute.run_kernel(gradients, [x], one)
    with pytest.raises(KernelTypeError, match="gives 2 values, but has 3 outputs"):
        compute.run_kernel(gradients, [x], [one, two, three])
    with pytest.raises(ArgumentError, match="blur has one output, but 2 were given"):
        compute.run_kernel("blur", [x], [one, two])
    with pytest.raises(ArgumentError, match="has 2 outputs, but dtype= has 3 items"):
        gradients(x, dtype=("f32", "f32", "f32"))


def test_unequal_shapes_are_refused_with_both_shapes(device):
    x = compute.buffer_zeros((4, 5), "f32")
    outputs = [compute.buffer_zeros((4, 5), "f32"), compute.buffer_zeros((4, 6), "f32")]
    with pytest.raises(ShapeError, match=r"output 0 is \(4, 5\), but output 1 is \(4, 6\)"):
        compute.run_kernel(gradients, [x], outputs)


def test_an_annotation_for_another_number_of_values_is_refused():
    with pytest.raises(KernelTypeError, match=r"names 3 dtypes, but `k` returns 2 values"):

        @dala.kernel
        def k(x) -> tuple[dala.f32, dala.f32, dala.u8]:
            return x, x


def test_two_scattered_outputs_are_refused():
    with pytest.raises(KernelSyntaxError, match=r"(?s)a kernel writes one output.*return"):

        @dala.kernel
        def k(x, a: dala.Out, b: dala.Out):
            (i,) = dala.position(1)
            a[i] = x
            b[i] = x


def test_tuples_of_tuples_are_refused():
    with pytest.raises(KernelTypeError, match="a tuple of 2"):

        @dala.kernel
        def k(x):
            return (x, x), x


def test_an_output_that_is_no_buffer_is_named(device):
    x = compute.buffer_zeros((4, 5), "f32")
    with pytest.raises(ArgumentError, match="output 1 is ndarray, not a Buffer"):
        compute.run_kernel(gradients, [x], [x, np.zeros((4, 5))])


# -- seeing ---------------------------------------------------------------------------------------


def test_python_gives_a_tuple_of_arrays():
    x = RANDOM.random((4, 5), np.float32)
    for got, want in zip(gradients.python(x), across_and_down(x), strict=True):
        assert np.allclose(got, want, atol=1e-6)
    quotient, rest, greater = divided.python(np.array([7, 8], np.int32), np.array([2, 9], np.int32))
    assert (quotient.tolist(), rest.tolist(), greater.tolist()) == ([3, 0], [1.0, 8.0], [1, 0])


def test_explain_lists_every_output(capsys):
    said = divided.explain()
    assert said.count("\n  out   ") == 3
