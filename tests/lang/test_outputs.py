"""What kernels make: images of every kind, and outputs written wherever they like."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu import compute


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_images_of_every_kind_give_whole_pixels(device, channels, dtype):
    @dala.kernel
    def k(image: dala.Image):
        p = image.pixel
        q = p * 0.5 + 0.25
        return dala.rgba(q.b, q.g, q.r, p.a)

    shape = (5, 37) if channels == 1 else (5, 37, channels)
    random = np.random.default_rng(1)
    image = random.integers(0, 256, shape).astype(np.uint8)
    if dtype == np.float32:
        image = (image / 255).astype(np.float32)
    scale = 255.0 if dtype == np.uint8 else 1.0
    want = image / scale
    if channels > 1:
        want = want.copy()
        want[..., :3] = want[..., 2::-1] * 0.5 + 0.25
    else:
        want = want * 0.5 + 0.25
    out = compute.buffer_zeros(shape, image.dtype)
    compute.run_kernel(k, [compute.from_numpy(image)], out)
    assert np.abs(compute.read(out) - want * scale).max() <= (0.51 if scale > 1 else 1e-6)


def test_a_colour_image_into_a_gray_output_gives_luma(device):
    @dala.kernel
    def k(image: dala.Image):
        p = image.pixel
        return dala.rgba(p.r, p.g, p.b, 1.0)

    image = np.random.default_rng(2).random((4, 5, 3)).astype(np.float32)
    out = compute.buffer_zeros((4, 5), "f32")
    compute.run_kernel(k, [compute.from_numpy(image)], out)
    assert np.allclose(compute.read(out), image @ [0.299, 0.587, 0.114], atol=1e-6)


def test_an_image_kernel_can_return_one_value_for_each_pixel(device):
    @dala.kernel
    def k(image: dala.Image):
        y, x = dala.position(2)
        h, w = image.shape
        return dala.luma(image[h - 1 - y, w - 1 - x])

    image = np.random.default_rng(2).random((4, 5, 4)).astype(np.float32)
    out = compute.buffer_zeros((4, 5), "f32")
    compute.run_kernel(k, [compute.from_numpy(image)], out)
    want = (image[..., :3] @ [0.299, 0.587, 0.114])[::-1, ::-1]
    assert np.allclose(compute.read(out), want, atol=1e-6)


def test_scattered_writes_start_from_zeros(device):
    @dala.kernel
    def k(x, out: dala.Out):
        (i,) = dala.position(1)
        out[2 * i] = x
        out.add(2 * i + 1, i)

    x = compute.buffer([5.0, 6.0], (2,), "f32")
    out = compute.buffer([9.0] * 6, (6,), "f32")
    for _ in range(2):
        compute.run_kernel(k, [x], out)
        assert compute.read_list(out) == [5.0, 0.0, 6.0, 1.0, 0.0, 0.0]


def test_the_shape_of_a_scattering_kernel_is_what_it_runs_over(device):
    @dala.kernel
    def k(x, out: dala.Out):
        i, j = dala.position(2)
        h, w = dala.shape(2)
        out[i * w + j] = h * 100 + w

    out = compute.buffer_zeros((6,), "s32")
    compute.run_kernel(k, [compute.buffer_zeros((2, 3), "f32")], out)
    assert compute.read_list(out) == [203] * 6


def test_functions_may_make_pixels(device):
    @dala.function
    def gray(v):
        return dala.rgba(v, v, v, 1.0)

    @dala.kernel
    def k(level: dala.f32):
        return gray(level)

    out = compute.buffer_zeros((2, 2, 4), "u8")
    compute.run_kernel(k, [], out, {"level": 0.2})
    assert compute.read(out)[0, 0].tolist() == [51, 51, 51, 255]


def test_a_float_for_each_pixel_is_gray_in_a_u8_image(device):
    @dala.kernel
    def luma(image: dala.Image):
        return dala.luma(image.pixel)

    @dala.kernel
    def label(image: dala.Image):
        return dala.s32(image.pixel.r > 0.5) + 1

    image = compute.from_numpy(np.full((2, 3, 3), 200, np.uint8))
    out = compute.buffer_zeros((2, 3), "u8")
    compute.run_kernel(luma, [image], out)
    assert (compute.read(out) == 200).all()
    compute.run_kernel(label, [image], out)
    assert (compute.read(out) == 2).all()


def test_a_kernel_over_two_axes_may_count_into_bins(device):
    @dala.kernel
    def count(x, out: dala.Out):
        i, j = dala.position(2)
        out.add(x[i, j], 1)

    x = compute.from_numpy(np.array([[0, 1, 1], [2, 1, 0]], np.int32))
    out = compute.buffer_zeros((3,), "s32")
    compute.run_kernel(count, [x], out)
    assert compute.read_list(out) == [2, 3, 1]


def test_the_axes_of_an_output_are_known_by_its_shape_or_by_what_is_added(device):
    @dala.kernel
    def by_shape(x, out: dala.Out):
        (i,) = dala.position(1)
        height, width, _ = out.shape
        place = i % height, i % width, 0
        out.add(place, x)

    @dala.kernel
    def by_place(x, out: dala.Out):
        (i,) = dala.position(1)
        height, width = out.shape[0], out.shape[1]
        out.add((i % height, i % width, 0), x)

    @dala.kernel
    def area(x, page):
        height, width, depth = page.shape
        return x * dala.f32(height * width * depth)

    x = np.ones(6, np.float32)
    want = np.zeros((2, 3, 1))
    np.add.at(want, (np.arange(6) % 2, np.arange(6) % 3, 0), 1)
    assert np.array_equal(by_shape(x, shape=(2, 3, 1)), want)
    assert np.array_equal(by_place(x, shape=(2, 3, 1)), want)
    assert np.array_equal(area(x, np.ones((2, 3, 4), np.float32)), 24 * x)
