"""Neighbors of a place that is another one in each lane are read together, and as indices say."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

import dala
from dala.gpu import compute

DTYPES = {"u8": np.uint8, "u16": np.uint16, "f32": np.float32, "f16": np.float16}
WHITES = {"u8": 255, "u16": 65535}
CHANNELS = [(), (3,), (4,)]
BORDERS = {"clamp": "edge", "mirror": "reflect", "reflect": "symmetric", "wrap": "wrap"}
SHAPE = (23, 90)
FAR = 5
"""How far beyond the edges places are."""


def picture(dtype: str, channels: tuple[int, ...]) -> np.ndarray:
    return (np.random.default_rng(3).random((*SHAPE, *channels)) * 250).astype(DTYPES[dtype])


def places(shape: tuple[int, int], *, inside: bool) -> tuple[np.ndarray, np.ndarray]:
    """A row and a column for each pixel, from which all neighbors of a test lie inside, or not."""
    least, most = (1, -3) if inside else (-FAR, FAR)
    random = np.random.default_rng(7)
    down, across = (random.integers(least, size + most, shape) for size in SHAPE)
    return down.astype(np.int32), across.astype(np.int32)


def padded(image: np.ndarray, border: str) -> np.ndarray:
    around = [(9, 9), (9, 9), *[(0, 0)] * (image.ndim - 2)]
    return np.pad(image, around, BORDERS.get(border, "constant"))  # type: ignore[call-overload]


def around_of(border: str, apart: int):
    @dala.kernel(border=border)
    def around(image: dala.Image, down, across):
        y, x = dala.position(2)
        i, j = down[y, x], across[y, x]
        total = image[i, j] * 0.5 + image[i, j + 1] * 0.125
        total += image[i + 1, j] * 0.125 + image[i + 1, j + apart] * 0.125
        return total + image[i - 1, j - 1] * 0.125

    return around


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("dtype", DTYPES)
class TestPictures:
    @pytest.mark.parametrize("apart", [1, 2, -1])
    @pytest.mark.parametrize("is_inside", [True, False])
    def test_neighbors_of_a_place_may_be_read(self, device, dtype, channels, apart, is_inside):
        image = picture(dtype, channels)
        down, across = places((40, 77), inside=is_inside)
        got = around_of("clamp", apart)(image, down, across, shape=(40, 77, *channels), dtype="f32")
        whole, i, j = padded(image, "clamp").astype(np.float64), down + 9, across + 9
        want = whole[i, j] * 0.5 + (whole[i, j + 1] + whole[i + 1, j]) * 0.125
        want += (whole[i + 1, j + apart] + whole[i - 1, j - 1]) * 0.125
        np.testing.assert_allclose(got, want / WHITES.get(dtype, 1), rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("border", [*BORDERS, "zero"])
def test_neighbors_outside_follow_the_border(device, border):
    image = picture("u8", (3,))
    down, across = places((40, 77), inside=False)
    got = around_of(border, 2)(image, down, across, shape=(40, 77, 3), dtype="f32")
    whole, i, j = padded(image, border).astype(np.float64) / 255, down + 9, across + 9
    want = whole[i, j] * 0.5 + (whole[i, j + 1] + whole[i + 1, j]) * 0.125
    want += (whole[i + 1, j + 2] + whole[i - 1, j - 1]) * 0.125
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-7)


def test_neighbors_may_be_read_in_a_loop_and_in_three_dimensions(device):
    @dala.kernel
    def walked(volume, places):
        y, x = dala.position(2)
        at = places[y, x]
        total = dala.f32(0)
        for k in range(7):
            total += volume[y, k, at] * volume[y, k, at + 1] - volume[y, k + 1, at + 2]
        return total

    random = np.random.default_rng(5)
    volume = random.random((11, 8, 50), dtype=np.float32)
    at = random.integers(-3, 52, (11, 83)).astype(np.int32)
    got = walked(volume, at)
    a, b, c = (
        np.stack([volume[i][:, np.clip(at[i] + k, 0, 49)] for i in range(11)]) for k in range(3)
    )
    want = (a[:, :7] * b[:, :7] - c[:, 1:]).sum(1)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_places_without_end_read_the_border(device):
    @dala.kernel
    def far(x, at):
        (i,) = dala.position(1)
        return x[at[i]] + x[at[i] + 1] * 100

    x = np.arange(1, 41, dtype=np.float32)
    at = np.tile(np.array([0, 5, 2**31 - 1, -(2**31)], np.int32), 20)
    got = far(x, at)
    # The index after the last one of s32 is its first.
    assert np.array_equal(got[:4], [1 + 200, 6 + 700, 40 + 100, 1 + 100])


@pytest.mark.parametrize(("channels", "words"), [((3,), 2), ((4,), 2), ((), 1)])
def test_lanes_load_neighbors_as_words(monkeypatch, tmp_path, channels, words):
    monkeypatch.setenv("DALA_DUMP_CODE", str(tmp_path))
    down, across = places((40, 77), inside=True)
    around = around_of("mirror", 1)
    with compute.device("cpu"):
        around(picture("u8", channels), down, across, shape=(40, 77, *channels), dtype="f32")
    code = "\n".join(path.read_text() for path in tmp_path.glob("*.ll"))
    near = code.split("@fast(")[1].split("\nnear")[1].split("\napart")[0]
    assert ("load <2 x i32>" in near) == (words == 2)
    assert not re.search(r"gather\.v\d+i8", near)


LAST = """
import ctypes, mmap, sys
import numpy as np
import dala
from dala.gpu import compute

@dala.kernel
def last(image: dala.Image, down, across):
    y, x = dala.position(2)
    i, j = down[y, x], across[y, x]
    return image[i, j] + image[i, j + 1] + image[i + 1, j] + image[i + 1, j + 1]

page = mmap.PAGESIZE
memory = mmap.mmap(-1, 2 * page)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + page), page, 0) == 0
for dtype in ("u1", "u2", "f4"):
    for channels in ((), (3,), (4,)):
        shape = (3, 17, *channels)
        count = np.prod(shape) * np.dtype(dtype).itemsize
        image = np.frombuffer(memory, dtype, np.prod(shape), page - count).reshape(shape)
        image[:] = (np.arange(image.size) % 200).reshape(shape)
        down = np.full((2, 64), 1, np.int32)
        across = np.tile(np.arange(64, dtype=np.int32) % 3 + 13, (2, 1))
        with compute.device("cpu"):
            got = last(image, down, across, shape=(2, 64, *channels), dtype="f32")
        rows = image[1].astype(np.float64) + image[2]
        want = rows[across] + rows[across + 1]
        white = {"u1": 255, "u2": 65535, "f4": 1}[dtype]
        np.testing.assert_allclose(np.asarray(got), want / white, rtol=1e-5)
print("read")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
def test_nothing_is_read_beyond_the_last_pixel():
    command = [sys.executable, "-c", LAST]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "read\n"), done.stderr
