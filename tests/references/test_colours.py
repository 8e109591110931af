"""Filters of colours, held against OpenCV, Pillow, scikit-image, SciPy and published formulas."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from kernels.pictures import LUMA, in_units, picture
from kernels.test_colours import browned, darkened, hue_rotated, tone_mapped
from kernels.test_lut import curves_of, tetrahedral
from PIL import Image, ImageChops, ImageEnhance, ImageFilter
from scipy.interpolate import RegularGridInterpolator
from skimage import exposure, util

from dala.gpu import compute

SHAPES = [(37, 53, 3), (1, 1, 3), (1, 29, 3), (31, 1, 3)]
SEPIA = [[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]]


@pytest.fixture
def run(device):
    """Run a kernel on an array, and give back its output."""

    def call(kernel, inputs, shape, dtype, **params):
        output = compute.buffer_zeros(shape, dtype)
        buffers = [compute.from_numpy(item) for item in inputs]
        compute.run_kernel(kernel, buffers, output, params)
        return compute.read(output)

    return call


def scene(shape, dtype):
    """A smooth image with stripes and a bright disc."""
    height, width, channels = shape
    y, x = np.mgrid[:height, :width] / max(height, width)
    waves = [0.5 + 0.5 * np.sin(9 * x + 5 * y * k + k) for k in range(channels)]
    light = np.stack(waves, -1)
    light[:, ::7] = 1 - light[:, ::7]
    light[(x - 0.4) ** 2 + (y - 0.3) ** 2 < 0.03] = 1
    return np.rint(light * 255).astype(np.uint8) if dtype == "u8" else light.astype(np.float32)


def images(dtype, shapes=SHAPES):
    """Random and structured images of odd sizes, single pixels and lines."""
    for shape in shapes:
        yield picture(shape, dtype)
        yield scene(shape, dtype)


def from_pillow(image):
    return np.asarray(image)


def unit(image):
    """What 1 is in the image."""
    return 255 if image.dtype == np.uint8 else 1


def transformed(image, matrix, offsets=None):
    """OpenCV's transform by the matrix, with a column of offsets in 0..1."""
    if offsets is not None:
        matrix = np.column_stack([matrix, np.array(offsets) * unit(image)])
    return cv2.transform(image, np.asarray(matrix, np.float32))


# -- those of one line -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_grayscale_is_that_of_opencv_and_pillow(run, agree, dtype):
    for image in images(dtype):
        got = run("grayscale", [image], image.shape[:2], dtype)
        want = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).reshape(got.shape)
        agree("grayscale", f"OpenCV cvtColor, {dtype}", got, want)
        if dtype == "u8":
            light = from_pillow(Image.fromarray(image).convert("L"))
            agree("grayscale", "Pillow convert L", got, light)


@pytest.mark.parametrize("value", [0.2, -0.45])
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_brightness_is_a_sum_of_opencv(run, agree, dtype, value):
    for image in images(dtype):
        got = run("brightness", [image], image.shape, dtype, value=value)
        want = cv2.add(image, (value * unit(image),) * 4).reshape(image.shape)
        agree("brightness", f"OpenCV add, {dtype}", got, want)


@pytest.mark.parametrize("value", [0.3, -0.6, -1])
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_contrast_is_a_weighted_sum_of_opencv(run, agree, dtype, value):
    for image in images(dtype):
        got = run("contrast", [image], image.shape, dtype, value=value)
        want = cv2.addWeighted(image, 1 + value, image, 0, -0.5 * value * unit(image))
        agree("contrast", f"OpenCV addWeighted, {dtype}", got, want.reshape(image.shape))


@pytest.mark.parametrize("value", [-1, -0.4, 0.3])
def test_saturation_is_the_colour_enhancement_of_pillow(run, agree, value):
    for image in images("u8"):
        got = run("saturation", [image], image.shape, "u8", value=value)
        want = ImageEnhance.Color(Image.fromarray(image)).enhance(1 + value)
        agree("saturation", "Pillow ImageEnhance.Color", got, from_pillow(want))


@pytest.mark.parametrize("value", [0.5, 2.2])
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_gamma_is_that_of_scikit_image(run, agree, dtype, value):
    for image in images(dtype):
        got = run("gamma", [image], image.shape, dtype, value=value)
        want = exposure.adjust_gamma(image, 1 / value)
        agree("gamma", f"scikit-image adjust_gamma, {dtype}", got, want)


@pytest.mark.parametrize("stops", [0.7, -2])
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_exposure_is_a_product_of_opencv(run, agree, dtype, stops):
    for image in images(dtype):
        got = run("exposure", [image], image.shape, dtype, stops=stops)
        want = cv2.multiply(image, (2.0**stops,) * 4).reshape(image.shape)
        agree("exposure", f"OpenCV multiply, {dtype}", got, want)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_invert_is_that_of_pillow_and_scikit_image(run, agree, dtype):
    for image in images(dtype):
        got = run("invert", [image], image.shape, dtype)
        agree("invert", f"scikit-image invert, {dtype}", got, util.invert(image))
        if dtype == "u8":
            want = ImageChops.invert(Image.fromarray(image))
            agree("invert", "Pillow ImageChops.invert", got, from_pillow(want))


@pytest.mark.parametrize("level", [0, 99, 254])
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_threshold_is_that_of_opencv(run, agree, dtype, level):
    for colours in images(dtype):
        image = np.ascontiguousarray(colours[..., 0])
        got = run("threshold", [image], image.shape, dtype, value=level / 255)
        least = level if dtype == "u8" else np.float32(level / 255)
        _, want = cv2.threshold(image, float(least), unit(image), cv2.THRESH_BINARY)
        agree("threshold", f"OpenCV threshold, {dtype}", got, want.reshape(image.shape))


FORMULAS = [
    ("hdr", "its formula", {"exposure": 3}, lambda x: tone_mapped(x, 3)),
    ("vignette", "its formula", {}, lambda x: darkened(x, 0.5, 0.75, 0.45)),
    ("hue", "CSS hue-rotate formula", {"degrees": 200}, lambda x: hue_rotated(x, 200)),
    ("sepia", "CSS sepia formula", {"intensity": 0.6}, lambda x: browned(x, 0.6)),
]


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize(("name", "reference", "params", "formula"), FORMULAS)
def test_published_formulas_are_followed(run, agree, name, reference, params, formula, dtype):
    for image in images(dtype):
        want = formula(in_units(image)) * unit(image)
        got = run(name, [image], image.shape, dtype, **params)
        limits = (0, 255) if dtype == "u8" else (-np.inf, np.inf)
        agree(name, f"{reference}, {dtype}", got, want.clip(*limits))


# -- matrices --------------------------------------------------------------------------------------

MIX = np.array([[0.8, 0.3, -0.1], [0.05, 0.9, 0.05], [-0.2, 0.3, 1.1]])
ADDED = np.array([0.2, -0.1, 0.05])


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_matrices_are_those_of_opencv_and_pillow(run, agree, dtype):
    for image in images(dtype):
        got = run("color_matrix", [image], image.shape, dtype, matrix=MIX)
        want = transformed(image, MIX).reshape(image.shape)
        agree("color_matrix", f"OpenCV transform, 3 × 3, {dtype}", got, want)
        given = np.column_stack([MIX, ADDED])
        got = run("color_matrix", [image], image.shape, dtype, matrix=given)
        want = transformed(image, MIX, ADDED).reshape(image.shape)
        agree("color_matrix", f"OpenCV transform, 3 × 4, {dtype}", got, want)
        if dtype == "u8":
            rows = np.column_stack([MIX, ADDED * 255]).ravel().tolist()
            want = from_pillow(Image.fromarray(image).convert("RGB", rows))
            agree("color_matrix", "Pillow convert RGB, 3 × 4", got, want)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_matrices_with_alpha_are_those_of_opencv(run, agree, dtype):
    matrix = np.random.default_rng(1).uniform(-0.3, 0.8, (4, 5))
    for image in images(dtype, [(37, 53, 4), (1, 1, 4), (1, 29, 4)]):
        got = run("color_matrix", [image], image.shape, dtype, matrix=matrix)
        want = transformed(image, matrix[:, :4], matrix[:, 4]).reshape(image.shape)
        agree("color_matrix", f"OpenCV transform, 4 × 5, {dtype}", got, want)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_sepia_is_a_transform_of_opencv(run, agree, dtype):
    for image in images(dtype):
        got = run("sepia", [image], image.shape, dtype, intensity=1)
        want = transformed(image, SEPIA).reshape(image.shape)
        agree("sepia", f"OpenCV transform, {dtype}", got, want)


def white_of(temperature):
    """The Planckian locus by the cubic splines of Kim and others, for 1667 to 25000 K."""
    k = 1000 / temperature
    if temperature <= 4000:
        x = -0.2661239 * k**3 - 0.2343589 * k**2 + 0.8776956 * k + 0.179910
    else:
        x = -3.0258469 * k**3 + 2.1070379 * k**2 + 0.2226347 * k + 0.240390
    if temperature <= 2222:
        y = -1.1063814 * x**3 - 1.34811020 * x**2 + 2.18555832 * x - 0.20219683
    elif temperature <= 4000:
        y = -0.9549476 * x**3 - 1.37418593 * x**2 + 2.09137015 * x - 0.16748867
    else:
        y = 3.0817580 * x**3 - 5.87338670 * x**2 + 3.75112997 * x - 0.37001483
    xyz = [x / y, 1, (1 - x - y) / y]
    matrix = [[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.204, 1.057]]
    linear = np.array(matrix) @ xyz
    linear /= linear.max()
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


@pytest.mark.parametrize("temperature", [3200, 5000, 8000, 12_000])
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_white_balance_is_that_of_another_planckian_locus(run, agree, dtype, temperature):
    gains = white_of(6500) / white_of(temperature)
    gains /= gains @ LUMA
    for image in images(dtype):
        got = run("white_balance", [image], image.shape, dtype, temperature=temperature)
        want = transformed(image, np.diag(gains)).reshape(image.shape)
        agree("white_balance", f"Kim's Planckian locus, {dtype}", got, want)


# -- tables ----------------------------------------------------------------------------------------


def look(size):
    """A table as a colourist might make it."""
    axis = np.linspace(0, 1, size)
    blue, green, red = np.meshgrid(axis, axis, axis, indexing="ij")
    colours = [red**0.7, 0.8 * green**1.3 + 0.2 * red * blue, 1 - (1 - blue) ** 1.5]
    return np.stack(colours, -1).astype(np.float32)


@pytest.mark.parametrize("size", [2, 17, 33])
def test_trilinear_tables_are_those_of_pillow(run, agree, size):
    table = look(size)
    reference = ImageFilter.Color3DLUT(size, table.ravel().tolist())
    for image in images("u8"):
        got = run("lut", [image], image.shape, "u8", table=table, interpolation="trilinear")
        want = from_pillow(Image.fromarray(image).filter(reference))
        agree("lut", "Pillow Color3DLUT, trilinear", got, want)


@pytest.mark.parametrize("size", [2, 33])
def test_trilinear_tables_are_those_of_scipy(run, agree, size):
    axis = np.linspace(0, 1, size)
    reference = RegularGridInterpolator((axis,) * 3, look(size).astype(float))
    for image in images("f32"):
        given = {"table": look(size), "interpolation": "trilinear"}
        got = run("lut", [image], image.shape, "f32", **given)
        want = reference(image[..., ::-1].astype(float))
        agree("lut", "SciPy RegularGridInterpolator, trilinear, f32", got, want)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_tetrahedral_tables_follow_their_formula(run, agree, dtype):
    for image in images(dtype):
        got = run("lut", [image], image.shape, dtype, table=look(17))
        want = tetrahedral(in_units(image), look(17)) * unit(image)
        agree("lut", f"tetrahedral formula, {dtype}", got, want)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_curves_are_those_of_numpy(run, agree, dtype):
    table = curves_of(20).clip(0, 1)
    axis = np.linspace(0, 1, 20)
    for image in images(dtype):
        got = run("lut", [image], image.shape, dtype, table=table)
        x = in_units(image)
        curves = [np.interp(x[..., k], axis, table[:, k]) for k in range(3)]
        agree("lut", f"NumPy interp, 1D, {dtype}", got, np.stack(curves, -1) * unit(image))


# -- keys ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_a_key_follows_the_chroma_of_opencv(run, agree, dtype):
    key = np.array([[[0.1, 0.9, 0.2]]], np.float32)
    given = {"color": key.ravel().tolist(), "similarity": 0.1, "blend": 0.3}
    for image in images(dtype):
        got = run("chroma_key", [image], (*image.shape[:2], 4), dtype, **given)
        x = in_units(image).astype(np.float32)
        here, there = (cv2.cvtColor(item, cv2.COLOR_RGB2YCrCb)[..., 1:] for item in (x, key))
        apart = (here - there).astype(float)
        distance = np.sqrt((apart**2).sum(-1) / 2).reshape(image.shape[:2])
        alpha = ((distance - 0.1) / 0.3).clip(0, 1) * unit(image)
        want = np.concatenate([image, alpha[..., None]], -1)
        agree("chroma_key", f"OpenCV cvtColor YCrCb and the chromakey formula, {dtype}", got, want)
