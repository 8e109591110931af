"""Kernels that do most of their work in a box give there and elsewhere what their formulas say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dala
from dala.devices.cpu.device import CPU
from dala.gpu import compute
from dala.ir.boxes import box_of
from dala.runtime.kernels.kernel import Kernel

SHAPES = [(7, 5), (40, 333), (33, 1030)]


@dala.kernel
def lit(x, top: int, left: int, height: int, width: int):
    i, j = dala.position(2)
    inside = i >= top and i < top + height and j >= left and j < left + width
    return dala.sqrt(dala.exp(-x) + 2.0) * 3.0 + dala.sin(x) if inside else x


@dala.kernel
def lit_elsewhere(x, top: int, left: int, height: int, width: int):
    i, j = dala.position(2)
    down, across = i - top, j - left
    if down > -1 and height > down and 0 <= across <= width - 1:
        return dala.sqrt(dala.exp(-x) + 2.0) * 3.0 + dala.sin(x)
    return x


@dala.kernel
def lit_by_row(x, slope: int):
    i, j = dala.position(2)
    least = 3
    inside = j - slope * i < 20 and least < j + i
    return dala.sqrt(dala.exp(-x) + 2.0) * 3.0 + dala.sin(x) if inside else x


@dala.kernel
def lit_around(x, away: int):
    _, j = dala.position(2)
    return dala.sqrt(dala.exp(-x) + 2.0) * 3.0 + dala.sin(x) if j + away >= 0 else x


@dala.kernel
def lit_in_volumes(x, first: int):
    i, j, k = dala.position(3)
    inside = i >= 1 and j < 3 and k >= first and k < first + 70
    return dala.sqrt(dala.exp(-x) + 2.0) * 3.0 + dala.sin(x) if inside else x


@dala.kernel
def lit_below(x, most: float):
    _, j = dala.position(2)
    return dala.sqrt(dala.exp(-x) + 2.0) * 3.0 + dala.sin(x) if dala.f32(j) < most else x


def light(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.exp(-x) + 2) * 3 + np.sin(x)


def numbers(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(1).random(shape, np.float32)


def has_box(kernel: Kernel, shape: tuple[int, ...], **params: float) -> bool:
    task = kernel.prepared(CPU, (("f32", shape),) * 2, params)[0].task
    return box_of(task.lowered) is not None


def check(got: np.ndarray, x: np.ndarray, inside: np.ndarray) -> None:
    assert np.array_equal(got[~inside], x[~inside])
    assert np.allclose(got[inside], light(x)[inside], rtol=1e-5)


@pytest.mark.parametrize("kernel", [lit, lit_elsewhere])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_box_may_lie_anywhere(kernel, shape):
    x = numbers(shape)
    i, j = np.indices(shape)
    sizes = [(0, 0), (1, 1), (3, 70), shape, (1000, 2000), (-4, 3)]
    for (top, left), (height, width) in itertools.product(
        [(0, 0), (2, 3), (-2, -60), (shape[0] - 1, shape[1] - 2), (500, 4000)], sizes
    ):
        got = kernel(x, top=top, left=left, height=height, width=width)
        rows = (i >= top) & (i < top + height)
        check(got, x, rows & (j >= left) & (j < left + width))
    assert has_box(kernel, shape, top=0, left=0, height=1, width=1)


@pytest.mark.parametrize("slope", [-3, 0, 2, 50])
def test_bounds_may_differ_from_row_to_row(slope):
    x = numbers(SHAPES[1])
    i, j = np.indices(x.shape)
    check(lit_by_row(x, slope=slope), x, (j - slope * i < 20) & (j + i > 3))
    assert has_box(lit_by_row, x.shape, slope=slope)


@pytest.mark.parametrize("away", [0, -5, 2**31 - 1, 2**31 - 100, -(2**31), -(2**31) + 7])
def test_sums_that_leave_32_bits_wrap(away):
    x = numbers(SHAPES[1])
    j = np.indices(x.shape)[1].astype(np.int32)
    with np.errstate(over="ignore"):
        check(lit_around(x, away=away), x, j + np.int32(away) >= 0)
    assert has_box(lit_around, x.shape, away=away)


@pytest.mark.parametrize("first", [-3, 0, 60, 400])
def test_boxes_have_as_many_axes_as_the_kernel(first):
    x = numbers((3, 5, 150))
    i, j, k = np.indices(x.shape)
    got = lit_in_volumes(x, first=first)
    check(got, x, (i >= 1) & (j < 3) & (k >= first) & (k < first + 70))
    assert has_box(lit_in_volumes, x.shape, first=first)


def test_other_conditions_are_no_boxes():
    x = numbers(SHAPES[1])
    check(lit_below(x, most=17.5), x, np.indices(x.shape)[1] < 17.5)
    assert not has_box(lit_below, x.shape, most=1.0)


def test_a_box_in_a_chain_gives_the_bytes_of_its_steps():
    rng = np.random.default_rng(3)
    image = rng.integers(0, 256, (60, 210, 3), np.uint8)
    layer = rng.integers(0, 256, (17, 90, 4), np.uint8)
    given, above = compute.from_numpy(image), compute.from_numpy(layer)
    names = [
        ("brightness", {"value": 0.1}),
        ("overlay", {"x": 70, "y": 30}),
        ("blur", {"radius": 2}),
    ]
    steps = [compute.scratch(image.shape, "u8") for _ in names[1:]]
    out = compute.buffer_zeros(image.shape, "u8")
    pipeline, below = compute.pipeline(), given
    want = given
    for (name, params), made in zip(names, [*steps, out], strict=True):
        layers = [above] if name == "overlay" else []
        pipeline.add(name, [below, *layers], made, params)
        apart = compute.buffer_zeros(image.shape, "u8")
        compute.run_kernel(name, [want, *layers], apart, params)
        below, want = made, apart
    pipeline.run()
    assert np.array_equal(compute.read(out), compute.read(want))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("channels", [(), (3,), (4,)], ids=str)
def test_a_picture_may_be_changed_in_place(dtype, channels):
    rng = np.random.default_rng(4)
    top = {"uint8": 255, "uint16": 65535, "float32": 1}[dtype]
    image = (rng.random((41, 133, *channels)) * top).astype(dtype)
    layer = (rng.random((9, 50, 4)) * top).astype(image.dtype)
    apart = np.empty_like(image)
    kernel = compute.Kernel.lookup("overlay")
    kernel(image, layer, x=-7, y=35, out=apart)
    kernel(image, layer, x=-7, y=35, out=image)
    assert np.array_equal(apart, image)
