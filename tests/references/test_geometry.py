"""Filters that move and resize images, held against OpenCV, Pillow, scikit-image and SciPy."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from kernels.pictures import picture
from PIL import Image, ImageOps
from scipy import ndimage
from skimage import transform

from dala.gpu import compute

SHAPES = [(37, 53, 3), (64, 48, 4), (1, 1, 3), (1, 29, 4), (31, 1), (20, 33)]
SIZES = [(24, 35), (74, 106), (50, 17), (1, 1)]
PILLOW = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
    "area": Image.Resampling.BOX,
}
OPENCV = {"nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR, "bicubic": cv2.INTER_CUBIC}
ROUNDS_PLACES = int(cv2.__version__.partition(".")[0]) < 5
OPENCV_BORDERS = {
    "clamp": cv2.BORDER_REPLICATE,
    "mirror": cv2.BORDER_REFLECT_101,
    "reflect": cv2.BORDER_REFLECT,
    "wrap": cv2.BORDER_WRAP,
    "zero": cv2.BORDER_CONSTANT,
}
SCIPY_BORDERS = {
    "clamp": "nearest",
    "mirror": "mirror",
    "reflect": "reflect",
    "wrap": "grid-wrap",
    "zero": "grid-constant",
}


@pytest.fixture
def run(device):
    """Run a kernel on an image, and give back its output, of the same channels and dtype."""

    def call(kernel, image, made, **params):
        dtype = "u8" if image.dtype == np.uint8 else "f32"
        output = compute.buffer_zeros((*made, *image.shape[2:]), dtype)
        compute.run_kernel(kernel, [compute.from_numpy(image)], output, params)
        return compute.read(output)

    return call


def scene(shape, dtype):
    """Waves with sharp stripes and a disc, in every channel its own."""
    height, width = shape[:2]
    y, x = np.mgrid[:height, :width] / max(height, width)
    count = shape[2] if len(shape) == 3 else 1
    found = np.stack([0.5 + 0.5 * np.sin(9 * x + 5 * y * k + k) for k in range(count)], -1)
    found[:, ::7] = 1 - found[:, ::7]
    found[np.hypot(y - 0.4, x - 0.4) < 0.2] = 1
    found = found.reshape(shape)
    return np.rint(found * 255).astype(np.uint8) if dtype == "u8" else found.astype(np.float32)


def images(dtype):
    """Random images of all shapes, and what has structure where there is room for it."""
    yield from (picture(shape, dtype) for shape in SHAPES)
    yield from (scene(shape, dtype) for shape in SHAPES[:2])


def by_channel(function, image):
    """What a function of planes makes of each channel."""
    if image.ndim == 2:
        return function(image)
    planes = [function(np.ascontiguousarray(image[..., c])) for c in range(image.shape[2])]
    return np.stack(planes, -1)


def pillow_resized(image, size, method):
    def resize_plane(plane):
        return np.asarray(Image.fromarray(plane).resize(size[::-1], PILLOW[method]))

    return by_channel(resize_plane, image)


@pytest.mark.parametrize("method", ["bilinear", "bicubic", "lanczos"])
def test_resized_floats_are_those_of_pillow(run, agree, method):
    for image in images("f32"):
        for size in SIZES:
            got = run("resize", image, size, method=method)
            want = pillow_resized(image, size, method)
            agree("resize", f"Pillow resize {method.upper()}, f32", got, want, within=0.01)


@pytest.mark.parametrize("method", ["bilinear", "bicubic", "lanczos"])
def test_resized_levels_are_those_of_pillow(run, agree, method):
    """Pillow cuts off at 0 and 255 between its passes too, hence images that stay within."""
    for image in images("u8"):
        calm = (64 + image // 2).astype(np.uint8)
        given = image if method == "bilinear" else calm
        for size in SIZES:
            got = run("resize", given, size, method=method)
            want = pillow_resized(given, size, method)
            agree("resize", f"Pillow resize {method.upper()}, u8", got, want)


def meets_edges(old, new):
    return any((2 * i + 1) * old % (2 * new) == 0 for i in range(new))


def test_nearest_pixels_are_those_of_pillow(run, agree):
    """Where no new centre lies on an edge between old pixels: there Pillow takes either."""
    for image in images("u8"):
        for size in SIZES:
            if any(map(meets_edges, image.shape, size)):
                continue
            got = run("resize", image, size, method="nearest")
            want = pillow_resized(image, size, "nearest")
            agree("resize", "Pillow resize NEAREST, u8", got, want, within=0)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_areas_are_those_of_opencv(run, agree, dtype):
    for image in images(dtype):
        tall, wide = image.shape[:2]
        shrunk = [(-(-tall // 2), -(-wide // 2)), (-(-2 * tall // 3), -(-wide // 5)), (1, 1)]
        for size in (*shrunk, (tall * 2, wide * 3), (tall + 5, wide + 11)):
            got = run("resize", image, size, method="area")
            want = cv2.resize(image, size[::-1], interpolation=cv2.INTER_AREA)
            within = 1 if dtype == "u8" else 0.01
            agree(
                "resize", f"OpenCV INTER_AREA, {dtype}", got, want.reshape(got.shape), within=within
            )


def test_areas_of_whole_pixels_are_those_of_pillow(run, agree):
    for shape, size in (((40, 60, 4), (20, 30)), ((40, 60, 3), (10, 12)), ((30, 20), (60, 80))):
        image = picture(shape, "u8")
        want = pillow_resized(image, size, "area")
        agree("resize", "Pillow resize BOX, u8", run("resize", image, size, method="area"), want)


@pytest.mark.parametrize("method", ["bilinear", "lanczos"])
def test_premultiplied_images_are_those_of_pillow(run, agree, method):
    """Its own RGBA keeps whole levels of colours times alpha; here they are f32."""
    image = picture((37, 53, 4), "f32")
    image[..., 3] = 0.5 + 0.5 * image[..., 3]
    shown = np.dstack([image[..., :3] * image[..., 3:], image[..., 3]])
    for size in SIZES:
        got = run("resize", image, size, method=method, premultiply=True)
        *colours, alpha = np.moveaxis(pillow_resized(shown, size, method), -1, 0)
        want = np.stack([*(colour / alpha for colour in colours), alpha], -1)
        agree(
            "resize", f"Pillow resize {method.upper()}, f32, premultiplied", got, want, within=0.1
        )


def test_letterboxes_are_those_of_pillow(run, agree):
    """Where the rest is even, as of an odd one Pillow sometimes has the larger half above."""
    for shape, size in (((40, 60, 3), (60, 60)), ((48, 30, 3), (24, 41)), ((31, 31, 3), (64, 32))):
        image = picture(shape, "u8")
        got = run("letterbox", image, size, color=(0.2, 0.4, 1), method="bilinear")
        colour = (51, 102, 255)
        padded = ImageOps.pad(Image.fromarray(image), size[::-1], PILLOW["bilinear"], colour)
        agree("letterbox", "Pillow ImageOps.pad, u8", got, np.asarray(padded))


def test_crops_are_those_of_pillow(run, agree):
    for image in (picture((37, 53, 4), "u8"), picture((20, 33), "u8")):
        got = run("crop", image, (8, 11), x=5, y=9, width=11, height=8)
        want = np.asarray(Image.fromarray(image).crop((5, 9, 16, 17)))
        agree("crop", "Pillow crop, u8", got, want, within=0)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_flips_are_those_of_opencv(run, agree, dtype):
    for image in images(dtype):
        for direction, code in (("vertical", 0), ("horizontal", 1), ("both", -1)):
            got = run("flip", image, image.shape[:2], direction=direction)
            want = cv2.flip(image, code).reshape(image.shape)
            agree("flip", f"OpenCV flip, {dtype}", got, want, within=0)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_quarter_turns_are_those_of_pillow(run, agree, dtype):
    for image in images(dtype):
        for degrees in (90, 180, 270):
            want = by_channel(
                lambda plane, turn=degrees: np.asarray(
                    Image.fromarray(plane).rotate(turn, expand=1)
                ),
                image,
            )
            got = run("rotate", image, want.shape[:2], degrees=degrees, expand=True)
            agree("rotate", f"Pillow rotate by quarter turns, {dtype}", got, want, within=0)


SKIMAGE_BORDERS = {"zero": "constant", "clamp": "edge", "mirror": "reflect", "reflect": "symmetric"}


@pytest.mark.parametrize("border", SKIMAGE_BORDERS)
def test_rotations_are_those_of_scikit_image(run, agree, border):
    for image in (picture((37, 53, 3), "f32"), scene((64, 48, 4), "f32"), picture((20, 33), "f32")):
        for degrees in (13, -70.5, 200):
            got = run("rotate", image, image.shape[:2], degrees=degrees, border=border)
            mode = SKIMAGE_BORDERS[border]
            want = transform.rotate(image, degrees, order=1, mode=mode, clip=False)
            agree("rotate", "scikit-image rotate order 1, f32", got, want, within=0.05)


@pytest.mark.skipif(ROUNDS_PLACES, reason="OpenCV 4 rounds places to 1/32 of a pixel")
@pytest.mark.parametrize("method", OPENCV)
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_rotations_are_those_of_opencv(run, agree, method, dtype):
    for image in images(dtype):
        height, width = image.shape[:2]
        matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), 37, 1)
        got = run("rotate", image, (height, width), degrees=37, method=method)
        want = cv2.warpAffine(image, matrix, (width, height), flags=OPENCV[method])
        agree("rotate", f"OpenCV warpAffine {method}, {dtype}", got, want.reshape(got.shape))


@pytest.mark.parametrize("border", OPENCV_BORDERS)
@pytest.mark.parametrize("method", OPENCV)
def test_warps_are_those_of_opencv(run, agree, method, border):
    matrix = np.array([[0.9071, 0.3117, -2.4029], [-0.2713, 1.2209, 5.1013]])
    if ROUNDS_PLACES:  # so that nothing is rounded, and no place is midway between two pixels
        matrix = np.array([[29, 10, -77], [-9, 39, 163]]) / 32
        matrix[:, 2] += 1 / 64 if method == "nearest" else 0
    given = {"matrix": matrix, "method": method, "border": border, "size": (50, 40)}
    given["inverse"] = ROUNDS_PLACES
    for shape in SHAPES:
        if border == "mirror" and 1 in shape:
            continue  # OpenCV 5.0 does not come back from mirroring a line of one pixel.
        dtype = "u8" if len(shape) == 3 and shape[2] == 4 else "f32"
        for image in (picture(shape, dtype), scene(shape, dtype)):
            got = run("warp_affine", image, (40, 50), **given)
            flags, rule = OPENCV[method], OPENCV_BORDERS[border]
            flags |= cv2.WARP_INVERSE_MAP if ROUNDS_PLACES else 0
            want = cv2.warpAffine(image, matrix, (50, 40), flags=flags, borderMode=rule)
            name = f"OpenCV warpAffine {method}, {dtype}"
            agree("warp_affine", name, got, want.reshape(got.shape))


@pytest.mark.parametrize("border", SCIPY_BORDERS)
def test_warps_are_those_of_scipy(run, agree, border):
    matrix = np.array([[0.9071, 0.3117, -2.4029], [-0.2713, 1.2209, 5.1013]])
    # Rows come first there, and its matrix maps the output to the image.
    turn, shift = matrix[::-1, 1::-1], matrix[::-1, 2]
    for shape in SHAPES:
        for image in (picture(shape, "f32"), scene(shape, "f32")):
            given = {"matrix": matrix, "inverse": True, "border": border, "size": (50, 40)}
            got = run("warp_affine", image, (40, 50), **given)

            def warp_plane(plane):
                size, mode = (40, 50), SCIPY_BORDERS[border]
                exact = plane.astype(np.float64)
                return ndimage.affine_transform(exact, turn, shift, size, order=1, mode=mode)

            want = by_channel(warp_plane, image)
            agree("warp_affine", "SciPy affine_transform order 1, f32", got, want, within=0.05)
