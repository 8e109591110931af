"""Stencils whose weights are a product are computed in two passes, and give what they say."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest

import dala
from dala.gpu import compute
from dala.ir.level_plans import LARGEST_ERROR

IMAGE = np.random.default_rng(5).integers(0, 256, (37, 83, 4), np.uint8)
PADDING = {"clamp": "edge", "mirror": "reflect", "reflect": "symmetric", "wrap": "wrap"}
BINOMIAL = np.array([1, 4, 6, 4, 1]) / 16
GAUSSIAN = np.exp(-((np.arange(-3, 4) / 1.5) ** 2) / 2)
GAUSSIAN /= GAUSSIAN.sum()
WEIGHTS = {
    "mean": (np.ones(5) / 5, np.ones(5) / 5),
    "binomial": (BINOMIAL, BINOMIAL),
    "gaussian": (GAUSSIAN, GAUSSIAN),
    "slope": (GAUSSIAN, np.array([-0.5, -1.0, 0.25, 1.0, 0.5])),
    "lopsided": tuple(np.random.default_rng(1).dirichlet(np.ones(n)) for n in (9, 6)),
    "loud": (4 * GAUSSIAN, np.random.default_rng(2).dirichlet(np.ones(7))),
}


def stencil(weights: np.ndarray, border: str = "clamp", *, rest: str = "", alpha: str = "t.a"):
    """A kernel of one loop nest over a table of weights, as one writes it down."""
    rows, columns = weights.shape
    text = (
        "def k(image: dala.Image):\n"
        f"    W = {tuple(weights.ravel().tolist())!r}\n"
        "    y, x = dala.position(2)\n"
        "    t = dala.rgba(0.0, 0.0, 0.0, 0.0)\n"
        f"    for i in range({rows}):\n"
        f"        for j in range({columns}):\n"
        f"            p = image[y + i - {rows // 2}, x + j - {columns // 2}]\n"
        f"            t += W[i * {columns} + j] * p\n"
        f"    t = t {rest}\n"
        f"    return dala.rgba(t.r, t.g, t.b, {alpha})\n"
    )
    return compute.Kernel.register("k", text, border=border, replace=True)


def reference(image: np.ndarray, weights: np.ndarray, border: str = "clamp") -> np.ndarray:
    rows, columns = weights.shape
    around = [(n // 2, n - 1 - n // 2) for n in weights.shape] + [(0, 0)] * (image.ndim - 2)
    mode = PADDING.get(border, "constant")
    padded = np.pad(image.astype(float), around, mode)
    h, w = image.shape[:2]
    return sum(
        weights[i, j] * padded[i : i + h, j : j + w] for i in range(rows) for j in range(columns)
    )


def is_split(kernel, image: np.ndarray = IMAGE) -> bool:
    with compute.device("cpu"):
        source, out = compute.from_numpy(image), compute.buffer_zeros(image.shape, "u8")
        with redirect_stdout(StringIO()):
            return "in two passes" in kernel.explain([source], out)


@pytest.mark.parametrize("border", [*PADDING, "zero"])
@pytest.mark.parametrize("name", WEIGHTS)
def test_a_product_of_weights_gives_the_sums_at_every_border(device, name, border):
    weights = np.outer(*WEIGHTS[name])
    kernel = stencil(weights, border)
    apart = np.abs(kernel(IMAGE, dtype="u8") - reference(IMAGE, weights, border).clip(0, 255))
    assert apart.max() <= 0.5 + 2 * LARGEST_ERROR
    assert is_split(kernel)


@pytest.mark.parametrize("name", ["mean", "binomial"])
def test_sums_of_whole_parts_are_rounded_exactly(device, name):
    weights = np.outer(*WEIGHTS[name])
    real = reference(IMAGE, weights)
    assert np.abs(stencil(weights)(IMAGE, dtype="u8") - real).max() <= 0.5 + 1e-4


def test_what_is_added_and_held_to_limits_is_kept(device):
    weights = np.outer(GAUSSIAN, GAUSSIAN)
    kernel = stencil(weights, rest="* 1.5 - 0.25", alpha="dala.clamp(t.a, 0.25, 0.5)")
    want = (1.5 * reference(IMAGE, weights) - 0.25 * 255).clip(0, 255)
    want[..., 3] = want[..., 3].clip(0.25 * 255, 0.5 * 255)
    assert np.abs(kernel(IMAGE, dtype="u8") - want).max() <= 0.5 + 2 * LARGEST_ERROR
    assert is_split(kernel)


def test_a_channel_may_be_passed_on(device):
    weights = np.outer(GAUSSIAN, GAUSSIAN)
    kernel = stencil(weights, alpha="image.pixel.a")
    out, want = kernel(IMAGE, dtype="u8"), reference(IMAGE, weights)
    assert np.array_equal(out[..., 3], IMAGE[..., 3])
    assert np.abs(out - want)[..., :3].max() <= 0.5 + 2 * LARGEST_ERROR
    assert is_split(kernel)


@pytest.mark.parametrize("shape", [(37, 83), (37, 83, 3), (1, 5), (5, 1, 4), (1, 1), (300, 700)])
def test_every_shape_of_image_is_split(device, shape):
    image = np.random.default_rng(4).integers(0, 256, shape, np.uint8)

    @dala.kernel
    def smooth(image: dala.Image):
        y, x = dala.position(2)
        total = image.pixel * 0.0
        for i in range(-2, 3):
            for j in range(-2, 3):
                total += image[y + i, x + j]
        return total / 25

    want = reference(image, np.ones((5, 5)) / 25)
    assert np.abs(smooth(image, dtype="u8") - want).max() <= 0.5 + 1e-4
    assert is_split(smooth, image)


@pytest.mark.parametrize("radius", [2, 5, 20])
def test_loops_that_are_too_long_to_be_unrolled_are_split(device, radius):
    count = (2 * radius + 1) ** 2

    @dala.kernel
    def by_statements(image: dala.Image):
        y, x = dala.position(2)
        total = dala.rgba(0.0, 0.0, 0.0, 0.0)
        for i in range(-radius, radius + 1):
            for j in range(-radius, radius + 1):
                total += image[y + i, x + j] * 0.5
        return (total + total) / count

    @dala.kernel
    def by_sum(image: dala.Image):
        y, x = dala.position(2)
        return (
            sum(
                image[y + i, x + j]
                for i in range(-radius, radius + 1)
                for j in range(-radius, radius + 1)
            )
            / count
        )

    want = reference(IMAGE, np.ones((2 * radius + 1,) * 2) / count)
    for kernel in (by_statements, by_sum):
        assert np.abs(kernel(IMAGE, dtype="u8") - want).max() <= 0.5 + 2 * LARGEST_ERROR
        assert is_split(kernel)


def test_a_loop_that_does_more_than_add_up_stays_a_loop(device):
    @dala.kernel
    def odd(image: dala.Image):
        y, x = dala.position(2)
        total = dala.rgba(0.0, 0.0, 0.0, 0.0)
        for i in range(-6, 7):
            for j in range(-6, 7):
                total += abs(image[y + i, x + j] - image.pixel)
        return total / 169

    levels = IMAGE.astype(float)
    padded = np.pad(levels, [(6, 6), (6, 6), (0, 0)], "edge")
    h, w = IMAGE.shape[:2]
    want = (
        sum(np.abs(padded[i : i + h, j : j + w] - levels) for i in range(13) for j in range(13))
        / 169
    )
    assert np.abs(odd(IMAGE, dtype="u8") - want).max() <= 0.501
    assert not is_split(odd)


def test_weights_that_are_no_product_stay_together(device):
    weights = np.outer(GAUSSIAN, GAUSSIAN)
    weights[3, 3] += 0.05
    kernel = stencil(weights)
    apart = np.abs(kernel(IMAGE, dtype="u8") - reference(IMAGE, weights).clip(0, 255))
    assert apart.max() <= 0.5 + LARGEST_ERROR
    assert not is_split(kernel)
    assert not is_split(stencil(np.outer(BINOMIAL[1:4], BINOMIAL[1:4])))  # too small to gain


def test_it_may_write_over_its_own_image(device):
    kernel = stencil(np.outer(GAUSSIAN, GAUSSIAN))
    image, want = compute.from_numpy(IMAGE), kernel(IMAGE, dtype="u8")
    compute.run_kernel(kernel, [image], image)
    assert np.array_equal(compute.read(image), want)
    pipeline = compute.pipeline().add(kernel, [image], image).add("invert", [image], image)
    compute.write(image, IMAGE)
    pipeline.run()
    assert np.abs(compute.read(image)[..., :3].astype(int) - (255 - want[..., :3])).max() == 0


@pytest.mark.parametrize("fuse", [True, False])
def test_among_other_steps_it_gives_the_bytes_that_it_gives_alone(fuse):
    soft, rough = stencil(np.outer(GAUSSIAN, GAUSSIAN)), stencil(np.outer(*WEIGHTS["lopsided"]))
    image = np.random.default_rng(6).integers(0, 256, (211, 160, 4), np.uint8)
    with compute.device("cpu"):
        buffers = [compute.from_numpy(image)]
        buffers += [compute.buffer_zeros(image.shape, "u8") for _ in range(5)]
        fused = compute.pipeline(fuse=fuse)
        kernels = ("invert", soft, "brightness", rough, soft)
        for kernel, given, made in zip(kernels, buffers, buffers[1:], strict=False):
            params = {"value": 0.1} if kernel == "brightness" else {}
            fused.add(kernel, [given], made, params)
        hidden = compute.pipeline(fuse=fuse)
        between = [buffers[0], *(compute.scratch(image.shape, "u8") for _ in range(4))]
        last = compute.buffer_zeros(image.shape, "u8")
        for kernel, given, made in zip(kernels, between, [*between[1:], last], strict=True):
            params = {"value": 0.1} if kernel == "brightness" else {}
            hidden.add(kernel, [given], made, params)
        fused.run()
        hidden.run()
        step = image
        for kernel in kernels:
            found = compute.Kernel.lookup(kernel) if isinstance(kernel, str) else kernel
            params = {"value": 0.1} if kernel == "brightness" else {}
            step = found(step, dtype="u8", **params)
        assert np.array_equal(compute.read(buffers[-1]), step)
        assert np.array_equal(compute.read(last), step)
        assert "k (down) → k (across)" in hidden.explain() or not fuse


# -- minima and maxima -----------------------------------------------------------------------------


def extreme(op: str, rows: range, columns: range, border: str) -> compute.Kernel:
    places = [(i, j) for i in rows for j in columns]
    terms = ", ".join(f"image[y + {i}, x + {j}]" for i, j in places)
    text = f"def k(image: dala.Image):\n    y, x = dala.position(2)\n    return {op}({terms})"
    return compute.Kernel.register("k", text, replace=True, border=border)


@pytest.mark.parametrize("border", ["clamp", "mirror", "reflect", "wrap", "zero"])
@pytest.mark.parametrize("channels", [(), (3,), (4,)])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_extremes_over_a_window_are_those_of_all_its_elements(device, dtype, channels, border):
    draw = np.random.default_rng(7)
    image = (draw.random((19, 83, *channels)) * (1 if dtype == "float32" else 250)).astype(dtype)
    around = [(9, 9), (9, 9), *[(0, 0)] * len(channels)]
    padded = np.pad(image, around, PADDING.get(border, "constant"))
    for op, rows, columns in (
        ("min", range(-1, 2), range(-1, 2)),
        ("max", range(-2, 3), range(4)),
        ("min", range(3), range(-5, -1)),
    ):
        parts = [padded[9 + i : 9 + i + 19, 9 + j : 9 + j + 83] for i in rows for j in columns]
        want = (np.minimum if op == "min" else np.maximum).reduce(parts)
        got = extreme(op, rows, columns, border)(
            image, dtype=dtype.replace("int", "").replace("float", "f")
        )
        np.testing.assert_array_equal(got, want)


def test_extremes_of_a_rectangle_are_found_in_two_passes_and_no_others():
    @dala.kernel
    def cross(image: dala.Image):
        y, x = dala.position(2)
        least = image[y, x]
        for i in range(-3, 4):
            least = min(least, image[y + i, x], image[y, x + i])
        return least

    assert is_split(extreme("max", range(-2, 3), range(-2, 3), "clamp"))
    assert not is_split(extreme("max", range(1), range(-5, 5), "clamp"))
    assert not is_split(cross)
