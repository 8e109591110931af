"""Reads between elements: `image.sample(y, x)` and `image.sample_uv(v, u)`."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.errors import KernelSyntaxError, KernelTypeError
from dala.gpu import compute

RNG = np.random.default_rng(3)
BORDERS = {"clamp": "edge", "mirror": "reflect", "reflect": "symmetric", "wrap": "wrap"}
ROUND = 40
"""Elements around the image that the reference knows."""


def padded(image, border):
    wide = ((ROUND, ROUND), (ROUND, ROUND), *((0, 0),) * (image.ndim - 2))
    if border == "zero":
        return np.pad(image, wide)
    return np.pad(image, wide, BORDERS[border])


def cubic(t):
    t = np.abs(t)
    near = (1.25 * t - 2.25) * t * t + 1
    far = -0.75 * (t * (t * (t - 5) + 8) - 4)
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


WEIGHTS = {
    "bilinear": (2, lambda t: np.clip(1 - np.abs(t), 0, 1)),
    "bicubic": (4, cubic),
}


def sampled(image, y, x, method, border):
    """The reference, in f64."""
    around = padded(image.astype(np.float64), border)
    if method == "nearest":
        return around[np.floor(y + 0.5).astype(int) + ROUND, np.floor(x + 0.5).astype(int) + ROUND]
    taps, weigh = WEIGHTS[method]
    total = 0
    for di in range(1 - taps // 2, 1 + taps // 2):
        for dj in range(1 - taps // 2, 1 + taps // 2):
            i, j = np.floor(y).astype(int) + di, np.floor(x).astype(int) + dj
            weight = weigh(y - i) * weigh(x - j)
            weight = weight.reshape(weight.shape + (1,) * (image.ndim - 2))
            total = total + around[i + ROUND, j + ROUND] * weight
    return total


def warped(method, border, uv=False):
    name = "sample_uv" if uv else "sample"
    text = f"""def warped(image: dala.Image, ys, xs):
 i, j = dala.position(2)
 return image.{name}(ys[i, j], xs[i, j], method={method!r}, border={border!r})"""
    return compute.Kernel.register("warped", text, replace=True)


def run(kernel, image, *places, shape=None):
    out = compute.buffer_zeros(shape or image.shape, str(image.dtype))
    compute.run_kernel(kernel, [compute.from_numpy(item) for item in (image, *places)], out)
    return compute.read(out)


@pytest.mark.parametrize("channels", [(), (3,), (4,)])
@pytest.mark.parametrize("border", [*BORDERS, "zero"])
@pytest.mark.parametrize("method", ["nearest", *WEIGHTS])
def test_places_between_pixels_agree_with_the_reference(method, border, channels, device):
    image = RNG.random((11, 9, *channels), np.float32)
    y = RNG.uniform(-12, 22, (11, 9)).astype(np.float32)
    x = RNG.uniform(-12, 22, (11, 9)).astype(np.float32)
    got = run(warped(method, border), image, y, x)
    np.testing.assert_allclose(got, sampled(image, y, x, method, border), atol=1e-5)


def test_shares_of_the_extent_name_the_same_places(device):
    image = RNG.random((8, 6), np.float32)
    v, u = (RNG.uniform(-0.5, 1.5, (8, 6)).astype(np.float32) for _ in range(2))
    got = run(warped("bilinear", "clamp", uv=True), image, v, u)
    np.testing.assert_allclose(
        got, sampled(image, v * 8 - 0.5, u * 6 - 0.5, "bilinear", "clamp"), atol=1e-5
    )


def test_a_plain_input_of_two_axes_is_sampled_in_its_own_type(device):
    @dala.kernel(border="wrap")
    def between(x):
        i, j = dala.position(2)
        return x.sample(dala.f32(i) + 0.25, dala.f32(j) - 0.5)

    x = RNG.random((7, 5), np.float32)
    i, j = np.mgrid[:7, :5]
    np.testing.assert_allclose(
        run(between, x), sampled(x, i + 0.25, j - 0.5, "bilinear", "wrap"), atol=1e-6
    )


def test_an_input_that_is_sampled_has_two_axes_though_its_shape_is_asked_for(device):
    @dala.kernel
    def lower_half(x):
        i, j = dala.position(2)
        return x.sample(0.5 * dala.f32(x.shape[0] + i), j)

    image = RNG.random((6, 5), np.float32)
    want = sampled(
        image,
        *np.meshgrid(3 + 0.5 * np.arange(6), np.arange(5), indexing="ij"),
        "bilinear",
        "clamp",
    )
    np.testing.assert_allclose(lower_half(image), want, atol=1e-6)


def test_places_far_outside_stay_in_bounds(device):
    image = RNG.random((4, 4), np.float32)
    y = np.full((4, 4), 3e38, np.float32)
    assert (run(warped("nearest", "clamp"), image, y, -y) == image[-1, 0]).all()
    assert (run(warped("bilinear", "zero"), image, y, -y) == 0).all()


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        ("image.sample(1.0)", KernelTypeError, "two coordinates, not 1"),
        ("image.sample(1.0, 2.0, how=3)", KernelSyntaxError, "does not take `how`"),
        ("image.sample(1.0, 2.0, method='cubic')", KernelSyntaxError, "nearest, bicubic"),
        ("image.sample(1.0, 2.0, border='none')", KernelSyntaxError, "clamp, mirror, reflect"),
    ],
)
def test_what_cannot_be_sampled_is_refused(call, kind, says):
    with pytest.raises(kind, match=says):
        compute.Kernel.register("wrong", f"def k(image: dala.Image): return {call}", replace=True)


def test_an_input_of_another_rank_is_refused():
    kernel = compute.Kernel.register(
        "wrong", "def k(x, y):\n return x + y.sample(0.5, 0.5)", replace=True
    )
    x = compute.buffer_zeros((3,), "f32")
    with pytest.raises(KernelTypeError, match="1 axes: only inputs of two"):
        compute.run_kernel(kernel, [x, x], x)
