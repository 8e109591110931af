"""Filters of neighbourhoods against OpenCV, Pillow, scikit-image and SciPy."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from PIL import Image, ImageFilter
from scipy import ndimage
from skimage import filters

from dala.gpu import compute

BORDERS = {
    "clamp": cv2.BORDER_REPLICATE,
    "mirror": cv2.BORDER_REFLECT_101,
    "reflect": cv2.BORDER_REFLECT,
    "zero": cv2.BORDER_CONSTANT,
}
"""What OpenCV calls the border rules; it refuses to wrap here."""
MODES = {"clamp": "nearest", "mirror": "mirror", "reflect": "reflect", "wrap": "wrap"}
"""What SciPy calls them; with "constant" for zero."""
SHAPES = [(37, 53, 4), (32, 47, 3), (21, 40), (1, 1, 3), (1, 29, 4), (31, 1)]


def pictures(dtype="u8", shapes=SHAPES):
    """For each shape a random image and one with edges, slopes and lines."""
    for shape in shapes:
        random = np.random.default_rng(shape[0]).integers(0, 256, shape).astype(np.uint8)
        y, x = np.indices(shape[:2])
        drawn = np.where((x // 7 + y // 9) % 2, 3 * x + 2 * y, 255 * ((x - y) % 11 == 0))
        drawn = drawn if len(shape) == 2 else drawn[..., None] * np.arange(1, shape[2] + 1)
        for image in (random, (drawn % 256).astype(np.uint8)):
            yield image if dtype == "u8" else (image / 255).astype(np.float32)


def apply(name, image, dtype=None, **params):
    output = compute.buffer_zeros(
        image.shape, dtype or ("u8" if image.dtype == np.uint8 else "f32")
    )
    compute.run_kernel(name, [compute.from_numpy(np.array(image))], output, params)
    return compute.read(output)


def shaped(made, image):
    """OpenCV drops an axis of length 1."""
    return np.asarray(made).reshape(image.shape)


def in_floats(image):
    return image.astype(np.float32) / 255 if image.dtype == np.uint8 else image


def by_channel(call, image):
    if image.ndim == 2:
        return call(image)
    return np.stack([call(image[..., c]) for c in range(image.shape[2])], -1)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize(
    ("radius", "sigma", "border"),
    [(3, 1.5, border) for border in BORDERS] + [(20, 6.7, "clamp"), (45, 14, "mirror")],
)
def test_blur(agree, radius, sigma, border, dtype):
    size = 2 * radius + 1
    shapes = SHAPES if border == "clamp" and radius == 3 else [(61, 83, 4), (70, 90)]
    for image in pictures(dtype, shapes):
        got = apply("blur", image, radius=radius, sigma=sigma, border=border)
        # Of u8, OpenCV rounds the weights to 256ths; of f32 it does not.
        made = cv2.GaussianBlur(in_floats(image), (size, size), sigma, borderType=BORDERS[border])
        want = shaped(made, image)
        agree("blur", f"OpenCV GaussianBlur, {dtype}", got, want if dtype == "f32" else want * 255)


def test_blur_wrapped(agree):
    for image in pictures("f32", [(37, 53, 4), (21, 40)]):
        got = apply("blur", image, radius=6, sigma=2.5, border="wrap")
        want = by_channel(lambda x: ndimage.gaussian_filter(x, 2.5, radius=6, mode="wrap"), image)
        agree("blur", "SciPy gaussian_filter", got, want)
        axis = -1 if image.ndim == 3 else None
        want = filters.gaussian(image, 2.5, truncate=6 / 2.5, mode="wrap", channel_axis=axis)
        agree("blur", "scikit-image gaussian", got, want)


def test_blur_of_radius_100(agree):
    for image in pictures("u8", [(210, 230, 4)]):
        got = apply("blur", image, radius=100, sigma=33.0)
        want = cv2.GaussianBlur(in_floats(image), (201, 201), 33, borderType=cv2.BORDER_REPLICATE)
        agree("blur", "OpenCV GaussianBlur, radius 100", got, want * 255)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("border", BORDERS)
def test_box_blur(agree, border, dtype):
    for radius in (1, 5, 12) if border == "clamp" else (5, 12):
        for image in pictures(dtype, SHAPES if border == "clamp" else SHAPES[:2]):
            got = apply("box_blur", image, radius=radius, border=border)
            size = 2 * radius + 1
            want = shaped(cv2.blur(image, (size, size), borderType=BORDERS[border]), image)
            agree("box_blur", f"OpenCV blur, {dtype}", got, want)


def test_box_blur_of_pillow(agree):
    for image in pictures("u8", SHAPES[:3]):
        want = np.asarray(Image.fromarray(image).filter(ImageFilter.BoxBlur(5)))
        # It rounds between the two axes.
        agree("box_blur", "Pillow BoxBlur", apply("box_blur", image, radius=5), want)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("border", BORDERS)
def test_sharpen(agree, border, dtype):
    kernel = np.array([[0, -0.5, 0], [-0.5, 3, -0.5], [0, -0.5, 0]], np.float32)
    for image in pictures(dtype, SHAPES if border == "clamp" else SHAPES[:2]):
        got = apply("sharpen", image, border=border)
        want = shaped(cv2.filter2D(image, -1, kernel, borderType=BORDERS[border]), image)
        agree("sharpen", f"OpenCV filter2D, {dtype}", got, want)


@pytest.mark.parametrize("border", BORDERS)
def test_unsharp(agree, border):
    for dtype in ("u8", "f32"):
        for image in pictures(dtype, SHAPES if border == "clamp" else SHAPES[:2]):
            exact = in_floats(image)
            soft = cv2.GaussianBlur(exact, (5, 5), 1.0, borderType=BORDERS[border])
            want = cv2.addWeighted(exact, 2.5, shaped(soft, image), -1.5, 0)
            want = shaped(want, image)
            got = apply("unsharp", image, amount=1.5, border=border)
            scaled = want if dtype == "f32" else want.clip(0, 1) * 255
            agree("unsharp", f"OpenCV GaussianBlur and addWeighted, {dtype}", got, scaled)


def test_unsharp_of_scikit_image(agree):
    for image in pictures("f32", [(32, 47, 3), (21, 40)]):
        # It blurs over 4 sigmas; given all channels at once, it leaves some of them unset.
        want = by_channel(lambda x: filters.unsharp_mask(x, 2.0, 1.0, preserve_range=True), image)
        got = apply("unsharp", image, radius=8, sigma=2.0, border="reflect")
        agree("unsharp", "scikit-image unsharp_mask", got, want)


@pytest.mark.parametrize("border", [*BORDERS, "wrap"])
def test_edge_detect(agree, border):
    for image in pictures("f32", [(32, 47, 3), (21, 40)]):
        light = image if image.ndim == 2 else image @ np.array([0.299, 0.587, 0.114], np.float32)
        mode = MODES.get(border, "constant")
        want = np.hypot(ndimage.sobel(light, 0, mode=mode), ndimage.sobel(light, 1, mode=mode))
        want = want if image.ndim == 2 else np.repeat(want[..., None], 3, -1)
        agree("edge_detect", "SciPy sobel", apply("edge_detect", image, border=border), want)
        if border in BORDERS:
            across, down = (
                cv2.Sobel(light, cv2.CV_32F, *of, borderType=BORDERS[border])
                for of in ((1, 0), (0, 1))
            )
            want = np.hypot(across, down)
            want = want if image.ndim == 2 else np.repeat(want[..., None], 3, -1)
            agree("edge_detect", "OpenCV Sobel", apply("edge_detect", image, border=border), want)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize(
    ("border", "radius", "color", "space"),
    [(border, 2, 0.1, 2.0) for border in BORDERS] + [("mirror", 4, 0.4, 3.0)],
)
def test_bilateral(agree, border, radius, color, space, dtype):
    for image in pictures(dtype, [(32, 47, 3), (21, 40), (1, 1, 3), (1, 29), (31, 1, 3)]):
        sigma = color * 255 if dtype == "u8" else color
        want = cv2.bilateralFilter(image, 2 * radius + 1, sigma, space, borderType=BORDERS[border])
        params = {"radius": radius, "sigma_color": color, "sigma_space": space, "border": border}
        agree("bilateral", f"OpenCV bilateralFilter, {dtype}", apply("bilateral", image, **params),
              shaped(want, image))  # fmt: skip


def test_bilateral_of_opaque_pixels_is_that_of_their_colours(agree):
    for image in pictures("u8", [(32, 47, 3)]):
        opaque = np.concatenate([image, np.full((32, 47, 1), 255, np.uint8)], -1)
        want = cv2.bilateralFilter(image, 5, 25.5, 2.0, borderType=cv2.BORDER_REPLICATE)
        got = apply("bilateral", opaque)
        agree("bilateral", "OpenCV bilateralFilter, opaque RGBA", got[..., :3], want)
        assert (got[..., 3] == 255).all()


def test_denoise(agree):
    """The formula, with the blurs and exponentials of NumPy and OpenCV in f64."""
    for image in pictures("f32", [(32, 47, 3), (21, 40)]):
        exact = image.astype(np.float64)
        guide = cv2.GaussianBlur(exact, (3, 3), 1.0, borderType=cv2.BORDER_REPLICATE)
        rim = [(3, 3), (3, 3), *[(0, 0)] * (image.ndim - 2)]
        x, g = np.pad(exact, rim, mode="edge"), np.pad(guide, rim, mode="edge")
        height, width = image.shape[:2]
        total = weights = 0.0
        for k, m in ((k, m) for k in range(7) for m in range(7)):
            distance = (k - 3) ** 2 + (m - 3) ** 2
            if distance <= 9:
                there = np.s_[k : k + height, m : m + width]
                c = np.abs(g[there] - guide)
                c = c if image.ndim == 2 else c.sum(-1, keepdims=True)
                weight = np.exp(-distance / (2 * 1.5**2) - c**2 / (2 * 0.15**2))
                total, weights = total + weight * x[there], weights + weight
        agree("denoise", "its formula in f64", apply("denoise", image), total / weights)


def test_median(agree):
    for image in pictures("u8"):
        for radius in (1, 2):
            got = apply("median", image, radius=radius)
            want = shaped(cv2.medianBlur(image, 2 * radius + 1), image)
            agree("median", "OpenCV medianBlur", got, want, within=0)


@pytest.mark.parametrize("border", [*MODES, "zero"])
def test_median_borders(agree, border):
    mode = MODES.get(border, "constant")
    for image in pictures("f32", [(32, 47, 3), (21, 40)]):
        for radius in (1, 2):
            size = 2 * radius + 1
            want = by_channel(lambda x, size=size: ndimage.median_filter(x, size, mode=mode), image)
            got = apply("median", image, radius=radius, border=border)
            agree("median", "SciPy median_filter", got, want, within=0)


@pytest.mark.parametrize(
    ("name", "call", "peer"),
    [
        ("erode", cv2.erode, ndimage.minimum_filter),
        ("dilate", cv2.dilate, ndimage.maximum_filter),
    ],
)
def test_extremes(agree, name, call, peer):
    for dtype in ("u8", "f32"):
        for image in pictures(dtype):
            for radius in (1, 4):
                size = 2 * radius + 1
                want = call(image, np.ones((size, size)), borderType=cv2.BORDER_REPLICATE)
                got = apply(name, image, radius=radius)
                agree(name, f"OpenCV {name}, {dtype}", got, shaped(want, image), within=0)
    for image in pictures("f32", [(32, 47, 3), (21, 40)]):
        for border in (*MODES, "zero"):
            mode = MODES.get(border, "constant")
            want = by_channel(lambda x, mode=mode: peer(x, 5, mode=mode), image)
            got = apply(name, image, radius=2, border=border)
            agree(name, f"SciPy {peer.__name__}", got, want, within=0)
