"""Reads along rows, backwards, in steps, by ratios and down columns give what indices say."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu import compute

DTYPES = {"u8": np.uint8, "u16": np.uint16, "f32": np.float32, "f16": np.float16}
SUMMED = {"u8": np.uint8, "u16": np.uint16, "s32": np.int32, "f32": np.float32}
CHANNELS = [(), (3,), (4,)]
SHAPE = (150, 331)
"""Larger than a tile that is turned over, and no multiple of one."""


def picture(dtype: str, channels: tuple[int, ...], shape=SHAPE) -> np.ndarray:
    return (np.random.default_rng(3).random((*shape, *channels)) * 250).astype(DTYPES[dtype])


@dala.kernel
def mirrored(image: dala.Image):
    y, x = dala.position(2)
    return image[y, image.shape[1] - 1 - x]


@dala.kernel
def shifted(image: dala.Image, left: int, top: int):
    y, x = dala.position(2)
    return image[y + top, x + left]


@dala.kernel
def thinned(image: dala.Image, first: int):
    y, x = dala.position(2)
    return image[y, 3 * x + first]


@dala.kernel
def turned(image: dala.Image, top: int):
    y, x = dala.position(2)
    return image[x + top, image.shape[1] - 1 - y]


@dala.kernel
def turned_back(image: dala.Image):
    y, x = dala.position(2)
    return image[image.shape[0] - 1 - x, y]


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("dtype", DTYPES)
class TestPictures:
    def test_a_row_may_be_read_backwards(self, device, dtype, channels):
        image = picture(dtype, channels)
        assert np.array_equal(mirrored(image, dtype=dtype), image[:, ::-1])

    @pytest.mark.parametrize(("left", "top"), [(0, 0), (40, 7), (-9, -30), (300, 100), (-400, 5)])
    def test_a_row_may_begin_anywhere(self, device, dtype, channels, left, top):
        image = picture(dtype, channels)
        around = [(50, 200), (500, 500), *[(0, 0)] * len(channels)]
        want = np.pad(image, around, "edge")[50 + top :, 500 + left :][:99, :201]
        got = shifted(image, left=left, top=top, shape=want.shape, dtype=dtype)
        assert np.array_equal(got, want)

    @pytest.mark.parametrize("first", [0, 2, -7])
    def test_every_third_element_may_be_read(self, device, dtype, channels, first):
        image = picture(dtype, channels)
        places = np.clip(3 * np.arange(120) + first, 0, SHAPE[1] - 1)
        got = thinned(image, first=first, shape=(SHAPE[0], 120, *channels), dtype=dtype)
        assert np.array_equal(got, image[:, places])

    @pytest.mark.parametrize("ratio", [(1, 2), (1, 3), (3, 2), (2, 4), (4, 3)])
    def test_a_place_may_be_divided(self, device, dtype, channels, ratio):
        by, over = ratio

        @dala.kernel
        def spread(image: dala.Image, first: int, after: int):
            y, x = dala.position(2)
            return image[y, (by * x + first) // over + after]

        image = picture(dtype, channels)[:5]
        for width, first, after in ((413, 0, 0), (413, 3, -3), (7, -7, 2), (413, -7, 0)):
            places = np.clip((by * np.arange(width) + first) // over + after, 0, SHAPE[1] - 1)
            shape = (5, width, *channels)
            got = spread(image, first=first, after=after, shape=shape, dtype=dtype)
            assert np.array_equal(got, image[:, places])

    @pytest.mark.parametrize("top", [0, 11, -5])
    def test_a_row_may_be_a_column(self, device, dtype, channels, top):
        image = picture(dtype, channels)
        rows = np.clip(np.arange(SHAPE[0]) + top, 0, SHAPE[0] - 1)
        want = np.rot90(image[rows])
        got = turned(image, top=top, shape=want.shape, dtype=dtype)
        assert np.array_equal(got, want)

    def test_a_row_may_be_a_column_from_below(self, device, dtype, channels):
        image = picture(dtype, channels)
        want = np.rot90(image, -1)
        assert np.array_equal(turned_back(image, shape=want.shape, dtype=dtype), want)


def test_what_is_turned_over_can_be_computed_with(device):
    @dala.kernel
    def symmetric(x, scale: float):
        i, j = dala.position(2)
        return (x[i, j] + x[j, i]) * scale + i

    given = np.random.default_rng(4).random((200, 200), np.float32)
    want = (given + given.T) * np.float32(0.5) + np.arange(200, dtype=np.float32)[:, np.newaxis]
    np.testing.assert_allclose(symmetric(given, scale=0.5), want, rtol=1e-6)


def test_one_step_after_another_may_be_turned_over(device):
    image = picture("u8", (3,), (130, 130))
    given, out = compute.from_numpy(image), compute.buffer_zeros((130, 130, 3), "u8")
    between = compute.scratch((130, 130, 3), "u8")
    pipeline = compute.pipeline().add("invert", [given], between)
    pipeline.add(turned, [between], out, {"top": 0}).run()
    assert np.array_equal(compute.read(out), np.rot90(255 - image))


@pytest.mark.parametrize("radius", [1, 9])
def test_places_that_a_loop_computes_are_read_along_the_row(device, radius):
    @dala.kernel
    def window(x, radius: int):
        i, j = dala.position(2)
        total = 0.0
        for k in range(-radius, radius + 1):
            total += x[i, j + k] * float(k)
        return total

    given = np.random.default_rng(5).random((7, 333)).astype(np.float32)
    padded = np.pad(given, [(0, 0), (radius, radius)], "edge")
    want = sum(k * padded[:, k + radius : k + radius + 333] for k in range(-radius, radius + 1))
    np.testing.assert_allclose(window(given, radius=radius), want, atol=2e-5)


@pytest.mark.parametrize("border", ["clamp", "mirror", "reflect", "wrap", "zero"])
def test_a_place_outside_follows_the_border(device, border):
    text = "def k(x, far: dala.s32):\n    i, j = dala.position(2)\n    return x[i - 3, far - j]"
    kernel = compute.Kernel.register("k", text, border=border, replace=True)
    given = np.random.default_rng(6).random((11, 150)).astype(np.float32)
    modes = {"clamp": "edge", "mirror": "reflect", "reflect": "symmetric", "wrap": "wrap"}
    padded = np.pad(given, [(3, 3), (140, 140)], modes.get(border, "constant"))
    columns = 100 - np.arange(150) + 140
    want = padded[np.arange(11)][:, columns]
    assert np.array_equal(kernel(given, far=100), want)


SPREADS = [(0, 1), (-1, 1), (-1, 0, 1), (-7, -2, 3, 8), (-15, 0, 15), (-17, 0, 2, 20), (5, 6, 7)]


@pytest.mark.parametrize("columns", SPREADS, ids=str)
@pytest.mark.parametrize(
    ("dtype", "channels"), [("s32", ()), *(("f32", channels) for channels in CHANNELS)]
)
def test_neighbors_in_a_row_are_what_indices_say(device, dtype, channels, columns):
    """Of wide rows they are shifted out of each other."""
    reads = " + ".join(f"x[i + {row}, j + {column}]" for row in (0, 1) for column in columns)
    given = "x: dala.Image" if channels else "x"
    source = f"def near({given}):\n    i, j = dala.position(2)\n    return {reads}"
    kernel = compute.Kernel.register("near", source, replace=True)
    x = (
        np.random.default_rng(8)
        .integers(0, 99, (9, 333, *channels))
        .astype(np.float32 if dtype == "f32" else np.int32)
    )
    out = compute.buffer_zeros(x.shape, dtype)
    compute.run_kernel(kernel, [compute.from_numpy(x)], out)
    rows = np.minimum(np.arange(9)[:, None] + [0, 1], 8)
    expected = sum(
        x[rows[:, down]][:, np.clip(np.arange(333) + column, 0, 332)]
        for down in (0, 1)
        for column in columns
    )
    np.testing.assert_array_equal(compute.read(out), expected)
    compute.Kernel.unregister("near")


@pytest.mark.parametrize("dtype", ["u8", "u16", "s32", "f32"])
@pytest.mark.parametrize("border", ["clamp", "zero"])
def test_short_rows_end_within_vectors(device, border, dtype):
    """The rim is as wide as a row; rows above and below are outside, too."""

    @dala.kernel(border=border)
    def around(x):
        i, j = dala.position(2)
        return x[i - 1, j - 2] + x[i + 1, j + 1]

    @dala.kernel(border=border)
    def apart(x):
        i, j = dala.position(2)
        return x[i, 2 * j - 1] + x[i + 1, 2 * j + 2]

    mode = {"clamp": "edge", "zero": "constant"}[border]
    for width in (1, 2, 7, 15, 16, 17, 33, 65, 130):
        x = np.random.default_rng(width).integers(0, 100, (5, width)).astype(SUMMED[dtype])
        wide = np.pad(x, ((1, 1), (2, width + 4)), mode)
        want = wide[:-2, :width] + wide[2:, 3 : width + 3]
        assert np.array_equal(around(x, dtype=dtype), want)
        want = wide[1:-1, 1 : 2 * width + 1 : 2] + wide[2:, 4 : 2 * width + 4 : 2]
        assert np.array_equal(apart(x, dtype=dtype), want)
