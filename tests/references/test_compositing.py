"""Layers, blends and backgrounds, held against Pillow, OpenCV and the W3C's formulas."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from kernels.layers import MODES, added, composed, placed
from kernels.pictures import picture
from PIL import Image, ImageChops

from dala.gpu import compute

SHAPES = [(37, 53, 4), (1, 1, 4), (1, 29, 4), (31, 1, 4)]
PILLOW = {
    "multiply": ImageChops.multiply,
    "screen": ImageChops.screen,
    "hard-light": ImageChops.hard_light,
    "overlay": ImageChops.overlay,
    "difference": ImageChops.difference,
    "add": ImageChops.add,
    "subtract": ImageChops.subtract,
    "darken": ImageChops.darker,
    "lighten": ImageChops.lighter,
}
OPENCV = {
    "multiply": lambda a, b: cv2.multiply(a, b, scale=1 / 255),
    "difference": cv2.absdiff,
    "add": cv2.add,
    "subtract": cv2.subtract,
    "darken": cv2.min,
    "lighten": cv2.max,
}


@pytest.fixture
def run(device):
    """Run a kernel on arrays, and give back its output, of the first one's shape and dtype."""

    def call(kernel, *inputs, **params):
        output = compute.buffer_zeros(inputs[0].shape, inputs[0].dtype)
        buffers = [compute.from_numpy(np.array(item)) for item in inputs]
        compute.run_kernel(kernel, buffers, output, params)
        return compute.read(output)

    return call


def structured(shape):
    """Ramps of every channel, in other directions, with hard edges."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    ramps = [(x * 5 + y * k * 3 + 40 * k) % 256 for k in range(shape[2])]
    ramps[-1] = np.where((x // 5 + y // 7) % 3, ramps[-1], 255)
    return np.stack(ramps, -1).astype(np.uint8)


def pairs(channels=4):
    """An image and a layer, random and structured."""
    for shape in SHAPES:
        for a, b in (
            (picture(shape, "u8"), picture(shape, "u8", seed=6)),
            (structured(shape), structured(shape)[::-1, ::-1]),
        ):
            yield tuple(np.ascontiguousarray(item[..., :channels]) for item in (a, b))


def test_overlay_is_pillows(run, agree):
    for image, layer in pairs():
        want = Image.alpha_composite(Image.fromarray(image), Image.fromarray(layer))
        got = run("overlay", image, layer)
        # Where both are transparent Pillow gives the layer's colour, which nobody sees.
        hidden = got[..., 3] == 0
        shown = np.where(hidden[..., None], got, np.asarray(want))
        agree("overlay", "Pillow alpha_composite", got, shown)


def test_overlay_of_a_part_is_pillows(run, agree):
    for image, layer in pairs():
        piece = np.ascontiguousarray(layer[: max(1, len(layer) // 2)])
        for x, y in ((0, 0), (7, 5), (-3, 11), (-2, -4)):
            whole = Image.new("RGBA", image.shape[1::-1])
            whole.paste(Image.fromarray(piece), (x, y))
            want = Image.alpha_composite(Image.fromarray(image), whole)
            got = run("overlay", image, piece, x=x, y=y)
            shown = np.where(got[..., 3:] == 0, got, np.asarray(want))
            agree("overlay", "Pillow paste, alpha_composite", got, shown)


def test_overlay_is_the_w3c_formula(run, agree):
    for image, layer in pairs():
        for dtype in (np.uint8, np.float32):
            a, b = (
                (item / (1 if dtype == np.uint8 else 255)).astype(dtype) for item in (image, layer)
            )
            want = composed(a, placed(b, a.shape, 2, -3), MODES["normal"], 0.6)
            got = run("overlay", a, b, x=2, y=-3, alpha=0.6)
            want = want * 255 if dtype == np.uint8 else want
            agree("overlay", f"W3C source-over, {dtype.__name__}", got, want)


@pytest.mark.parametrize("mode", PILLOW)
def test_blend_is_pillows(run, agree, mode):
    for image, layer in pairs(3):
        want = np.asarray(PILLOW[mode](Image.fromarray(image), Image.fromarray(layer)))
        got = run("blend", image, layer, mode=mode, alpha=1)
        agree("blend", f"Pillow ImageChops, {mode}", got, want)


def test_blend_by_alpha_is_pillows_and_opencvs(run, agree):
    for image, layer in pairs(3):
        for alpha in (0.25, 0.5, 0.9):
            got = run("blend", image, layer, alpha=alpha)
            want = Image.blend(Image.fromarray(image), Image.fromarray(layer), alpha)
            agree("blend", "Pillow blend, normal", got, np.asarray(want))
            want = cv2.addWeighted(image, 1 - alpha, layer, alpha, 0)
            agree("blend", "OpenCV addWeighted, normal", got, want)


@pytest.mark.parametrize("mode", OPENCV)
def test_blend_is_opencvs(run, agree, mode):
    for image, layer in pairs(3):
        got = run("blend", image, layer, mode=mode, alpha=1)
        agree("blend", f"OpenCV, {mode}", got, OPENCV[mode](image, layer).reshape(image.shape))


@pytest.mark.parametrize("mode", [*MODES, "add"])
def test_blend_is_the_w3c_formula(run, agree, mode):
    for image, layer in pairs():
        for alpha in (1, 0.35):
            if mode == "add":
                want = added(image, layer, alpha)
            else:
                want = composed(image, layer, MODES[mode], alpha)
            got = run("blend", image, layer, mode=mode, alpha=alpha)
            agree("blend", f"W3C formula, {mode}", got, want * 255)


def test_background_replace_is_pillows(run, agree):
    for image, background in pairs(3):
        mask = picture(image.shape[:2], "u8", seed=8)
        pictures = (Image.fromarray(item) for item in (image, background, mask))
        got = run("background_replace", image, background, mask)
        agree("background_replace", "Pillow composite", got, np.asarray(Image.composite(*pictures)))


def gaussian(image):
    """In f32: of u8 OpenCV rounds the weights to 256ths."""
    image = image.astype(np.float32)
    return cv2.GaussianBlur(image, (31, 31), 7.5, borderType=cv2.BORDER_REPLICATE)


def test_background_blur_is_opencvs(run, agree):
    for image, _ in pairs(3):
        nobody = np.zeros(image.shape[:2], np.uint8)
        got = run("background_blur", image, nobody)
        agree("background_blur", "OpenCV GaussianBlur", got, gaussian(image).reshape(image.shape))
        mask = picture(image.shape[:2], "u8", seed=8) // 2
        m = mask[..., None] / np.float32(255)
        weighed = gaussian(image * (1 - m)).reshape(image.shape)
        behind = weighed / gaussian(1 - m).reshape(*image.shape[:2], 1)
        got = run("background_blur", image, mask)
        want = m * image + (1 - m) * behind
        agree(
            "background_blur",
            "OpenCV GaussianBlur, normalised",
            got,
            np.rint(want).astype(np.uint8),
        )
