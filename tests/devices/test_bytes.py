"""Bytes in words: images of odd widths, single bytes, and what lies after the end of a buffer."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu import compute

SIZES = [(1, 1), (1, 3), (3, 1), (1, 85), (3, 255), (2, 257), (5, 7), (4, 8)]
PIXEL = {"gray": (), "RGB": (3,), "RGBA": (4,)}


def noise(shape, dtype):
    values = np.random.default_rng(5).integers(0, 256, shape, np.uint8)
    return values if dtype == "u8" else (values / np.float32(255)).astype(np.float32)


@dala.kernel
def turn(image: dala.Image):
    y, x = dala.position(2)
    h, w = image.size
    return image[h - 1 - y, w - 1 - x]


@dala.kernel
def smear(image: dala.Image):
    y, x = dala.position(2)
    p = image.pixel
    q = image[y, x + 1]
    return dala.rgba(q.b, p.g, q.r, q.a)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("kind", PIXEL)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_pixels_of_images_of_any_width_stay_apart(run, kind, dtype, size):
    image = noise((*size, *PIXEL[kind]), dtype)
    assert np.array_equal(run(turn, image), image[::-1, ::-1])


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("kind", ["RGB", "RGBA"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_channels_come_from_a_pixel_and_its_neighbour(run, kind, dtype, size):
    image = noise((*size, *PIXEL[kind]), dtype)
    want = np.concatenate([image[:, 1:], image[:, -1:]], axis=1)
    want[..., :3] = want[..., 2::-1]
    want[..., 1] = image[..., 1]
    assert np.array_equal(run(smear, image), want)


@dala.kernel
def between(x, out: dala.Out):
    (i,) = dala.position(1)
    if x > 0:
        out[i * 3 + 1] = x


@pytest.mark.parametrize("count", [1, 3, 255, 257, 65_537])
def test_bytes_beside_one_that_is_written_stay_zero(run, count):
    values = noise((count,), "u8")
    want = np.zeros(3 * count, np.uint8)
    want[1::3] = values
    assert np.array_equal(run(between, values, want.shape), want)


@dala.kernel
def add_up(x, out: dala.Out):
    (i,) = dala.position(1)
    out.add(i % 4, x)


def test_bytes_that_wrap_do_not_carry_into_the_next_one(run):
    values = np.full(4 * 1000, 255, np.uint8)
    values[::2] = 1
    assert run(add_up, values, (4,)).tolist() == [232, 24, 232, 24]


@dala.kernel
def more(x):
    return x + 1


@dala.kernel
def around(x):
    (i,) = dala.position(1)
    return x[i - 1] + x[i] + x[i + 1]


@dala.kernel
def total(x):
    return sum(x[i] for i in range(len(x)))


@pytest.mark.parametrize("count", range(1, 10))
def test_bytes_around_a_buffer_are_not_written(device, count):
    guard = np.full(count + 16, 7, np.uint8)
    output = compute.from_dlpack(guard[8 : 8 + count])
    for kernel in (more, around, between):
        compute.run_kernel(kernel, [compute.from_numpy(guard[:count])], output)
        assert (guard[:8] == 7).all()
        assert (guard[8 + count :] == 7).all()


@pytest.mark.parametrize("count", range(1, 10))
def test_bytes_after_the_end_of_a_buffer_are_not_read(run, count):
    for _ in range(2):  # what a buffer leaves behind is given to the next one
        compute.free(compute.from_numpy(np.full(256, 200, np.uint8)))
    values = np.arange(1, count + 1, dtype=np.uint8)
    padded = np.pad(values, 1, mode="edge")
    assert np.array_equal(run(around, values), padded[:-2] + padded[1:-1] + padded[2:])
    assert run(total, values, (1,)).tolist() == [values.sum()]


def test_bytes_after_the_end_of_an_output_do_not_come_back(run):
    for count in range(1, 10):
        run(more, np.full(count, 200, np.uint8))
        assert not compute.read(compute.buffer_zeros((256,), "u8")).any()
