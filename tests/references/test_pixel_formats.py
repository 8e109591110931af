"""Formats of pixels, held against OpenCV, Pillow and the formulas of BT.601 and BT.709."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from kernels.pictures import picture
from kernels.planes import expanded, planes, reduced, stored
from PIL import Image

from dala.gpu import compute

SIZES = [(38, 54), (2, 2), (2, 30), (36, 2)]
ODD_SIZES = [(37, 53), (1, 1), (1, 29), (31, 2)]
CODES = {"yuv420p": "I420", "nv12": "NV12"}
PACKED = ["rgb", "rgba", "bgr", "bgra"]


@pytest.fixture
def run(device):
    """Convert an array, and give back the output."""

    def call(image, shape, source, target, **params):
        output = compute.buffer_zeros(shape, "u8" if image.dtype == np.uint8 else "f32")
        given = {"from": source, "to": target, **params}
        compute.run_kernel("convert", [compute.from_numpy(image)], output, given)
        return compute.read(output)

    return call


def structured(height, width):
    """Ramps of luma and chroma in other directions."""
    y, x = np.mgrid[:height, :width]
    v, u = np.mgrid[: (height + 1) // 2, : (width + 1) // 2]
    made = ((3 * x + 5 * y) % 256, (7 * u + v) % 256, (u + 9 * v) % 256)
    return tuple(plane.astype(np.uint8) for plane in made)


def blocks(height, width, channels):
    """Colours that are the same in each 2 × 2 pixels."""
    small = picture((height // 2, width // 2, channels), "u8")
    return np.ascontiguousarray(small.repeat(2, 0).repeat(2, 1))


@pytest.mark.parametrize("target", PACKED)
@pytest.mark.parametrize("source", CODES)
def test_planes_are_expanded_as_opencv_does(run, agree, source, target):
    code = getattr(cv2, f"COLOR_YUV2{target.upper()}_{CODES[source]}")
    for height, width in SIZES:
        for parts in (planes(height, width), structured(height, width)):
            image = stored(*parts, source).reshape(height * 3 // 2, width)
            want = cv2.cvtColor(image, code)
            got = run(image, want.shape, source, target)
            agree("convert", f"OpenCV cvtColor, YUV2{target.upper()}_{CODES[source]}", got, want)


@pytest.mark.parametrize("source", PACKED)
def test_planes_are_made_as_opencv_does(run, agree, source):
    """OpenCV takes the chroma of one pixel of four: they are the same here."""
    code = getattr(cv2, f"COLOR_{source.upper()}2YUV_I420")
    for height, width in SIZES:
        image = blocks(height, width, len(source))
        want = cv2.cvtColor(image, code)
        got = run(image, want.shape, source, "yuv420p")
        agree("convert", f"OpenCV cvtColor, {source.upper()}2YUV_I420, flat blocks", got, want)


@pytest.mark.parametrize("matrix", ["bt601", "bt709"])
@pytest.mark.parametrize("span", ["limited", "full"])
def test_planes_are_those_of_the_standard(run, agree, matrix, span):
    said = {"matrix": matrix, "range": span}
    name = f"{matrix.upper()} formula, {span}"
    for size in (*SIZES, *ODD_SIZES):
        for source in CODES:
            for parts in (planes(*size), structured(*size)):
                want = expanded(*parts, matrix, span) * 255
                got = run(stored(*parts, source), want.shape, source, "rgb", **said)
                agree("convert", f"{name}, {source} to rgb", got, want)
            image = picture((*size, 3), "u8")
            want = stored(*reduced(image / 255, matrix, span), source)
            got = run(image, want.shape, "rgb", source, **said)
            agree("convert", f"{name}, rgb to {source}", got, want)


@pytest.mark.parametrize(
    "names", [(a, b) for a in [*PACKED, "gray"] for b in [*PACKED, "gray"] if a != b]
)
def test_channels_are_ordered_as_opencv_does(run, agree, names):
    source, target = names
    code = getattr(cv2, f"COLOR_{source.upper()}2{target.upper()}")
    for size in ((37, 53), (1, 1), (1, 29), (30, 2)):
        for dtype in ("u8", "f32"):
            image = picture(size if source == "gray" else (*size, len(source)), dtype)
            want = cv2.cvtColor(image, code)
            got = run(image, want.shape, source, target)
            agree("convert", f"OpenCV cvtColor, {source.upper()}2{target.upper()}", got, want)


def test_full_range_is_that_of_jpeg_as_pillow_has_it(run, agree):
    """Of gray and of flat blocks, as Pillow keeps the chroma of each pixel."""
    image = blocks(38, 54, 3)
    y, u, v = np.moveaxis(np.asarray(Image.fromarray(image).convert("YCbCr")), -1, 0)
    want = stored(y, u[::2, ::2], v[::2, ::2], "yuv420p").reshape(57, 54)
    got = run(image, want.shape, "rgb", "yuv420p", range="full")
    agree("convert", "Pillow YCbCr, full range", got, want)
