"""Matrices, white balance, chroma keys and gradients, against their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.pictures import LUMA, SHAPES, check, in_units, picture

from dala import errors
from dala.gpu import compute
from dala.lang.lower import Definition
from dala.runtime.kernels.kernel import Kernel

MIX = [[0.8, 0.3, -0.1], [0.05, 0.9, 0.05], [-0.2, 0.3, 1.1]]
SHIFTED = [[0.8, 0.3, -0.1, 0.2], [0.05, 0.9, 0.05, -0.1], [-0.2, 0.3, 1.1, 0]]
WITH_ALPHA = [
    [0.8, 0.3, -0.1, 0.2, 0.1],
    [0.05, 0.9, 0.05, -0.3, 0],
    [-0.2, 0.3, 1.1, 0, -0.25],
    [0.1, -0.2, 0.3, 0.7, 0.05],
]


def channels_of(x):
    """The image as (r, g, b, a, 1)."""
    if x.ndim == 2:
        x = np.repeat(x[..., None], 3, -1)
    ones = np.ones((*x.shape[:2], 5 - x.shape[2]))
    return np.concatenate([x, ones], -1)


def mixed(image, matrix):
    """What a matrix makes of an image, as its last column and its fourth row say."""
    x, given = in_units(image), np.array(matrix, float)
    full = np.eye(4, 5)
    full[: len(given), :3] = given[:, :3]
    if given.shape[1] > 3:
        full[: len(given), 4] = given[:, -1]
    if len(given) == 4:
        full[:, 3] = given[:, 3]
    made = channels_of(x) @ full.T
    return made[..., :3] @ LUMA if x.ndim == 2 else made[..., : x.shape[2]]


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("matrix", [MIX, SHIFTED, WITH_ALPHA])
def test_a_matrix_is_applied_to_each_pixel(run, matrix, dtype):
    for shape in SHAPES:
        image = picture(shape, dtype)
        got = run("color_matrix", [image], shape, dtype, matrix=matrix)
        check(got, mixed(image, matrix), tolerance=2e-6)


def test_a_matrix_of_ones_on_its_diagonal_changes_nothing(run):
    image = picture((33, 65, 4), "u8")
    for shape in ((3, 3), (3, 4), (4, 5)):
        got = run("color_matrix", [image], image.shape, "u8", matrix=np.eye(*shape))
        np.testing.assert_array_equal(got, image)


def test_a_matrix_is_a_list_a_tuple_or_an_array(run):
    image = picture((6, 9, 3), "u8")
    want = run("color_matrix", [image], image.shape, "u8", matrix=SHIFTED)
    for given in (tuple(map(tuple, SHIFTED)), np.array(SHIFTED), np.float32(SHIFTED)):
        got = run("color_matrix", [image], image.shape, "u8", matrix=given)
        np.testing.assert_array_equal(got, want)


# -- white balance ---------------------------------------------------------------------------------


def white_of(temperature):
    """Krystek's u and v, through x, y and XYZ; as sRGB stores it, the brightest channel at 1."""
    t = temperature
    u = (0.860117757 + 1.54118254e-4 * t + 1.28641212e-7 * t * t) / (
        1 + 8.42420235e-4 * t + 7.08145163e-7 * t * t
    )
    v = (0.317398726 + 4.22806245e-5 * t + 4.20481691e-8 * t * t) / (
        1 - 2.89741816e-5 * t + 1.61456053e-7 * t * t
    )
    x, y = 3 * u / (2 * u - 8 * v + 4), 2 * v / (2 * u - 8 * v + 4)
    matrix = [[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.204, 1.057]]
    linear = np.array(matrix) @ [x / y, 1, (1 - x - y) / y]
    linear = linear / linear.max()
    return np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)


def gains_of(temperature, tint):
    gains = white_of(6500) / white_of(temperature) / [1, 2**tint, 1]
    return gains / (gains @ LUMA)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize(("temperature", "tint"), [(3200, 0), (12_000.5, 0.25), (6500, -1)])
def test_white_balance_multiplies_each_channel(run, temperature, tint, dtype):
    for shape in SHAPES:
        image = picture(shape, dtype)
        got = run("white_balance", [image], shape, dtype, temperature=temperature, tint=tint)
        check(got, mixed(image, np.diag(gains_of(temperature, tint))), tolerance=2e-6)


@pytest.mark.parametrize("params", [{}, {"temperature": 6500, "tint": 0}])
def test_the_white_of_6500_kelvin_is_left_alone(run, params):
    for dtype in ("u8", "f32"):
        image = picture((9, 21, 4), dtype)
        got = run("white_balance", [image], image.shape, dtype, **params)
        np.testing.assert_array_equal(got, image)


@pytest.mark.parametrize("temperature", [2000, 2856, 4000, 9300, 40_000])
def test_the_white_of_the_light_becomes_as_neutral_as_that_of_6500_kelvin(run, temperature):
    image = (0.5 * white_of(temperature)).astype(np.float32).reshape(1, 1, 3)
    got = run("white_balance", [image], image.shape, "f32", temperature=temperature)[0, 0]
    np.testing.assert_allclose(got / got.max(), white_of(6500), rtol=1e-5)


def test_a_higher_temperature_is_warmer_and_a_higher_tint_more_magenta(run):
    image = np.full((1, 1, 3), 0.5, np.float32)
    red, green, blue = run("white_balance", [image], image.shape, "f32", temperature=9000)[0, 0]
    assert red > green > blue
    red, green, blue = run("white_balance", [image], image.shape, "f32", tint=0.5)[0, 0]
    assert red == blue > green


# -- chroma keys -----------------------------------------------------------------------------------

GREEN = (0.1, 0.9, 0.2)


def chroma(rgb):
    light = rgb @ LUMA
    return np.stack([(rgb[..., 2] - light) / 1.772, (rgb[..., 0] - light) / 1.402], -1)


def keyed(image, colour, similarity, blend):
    x = channels_of(in_units(image))[..., :4]
    apart = chroma(x[..., :3]) - chroma(np.array(colour, float))
    distance = np.sqrt((apart**2).sum(-1) / 2)
    if blend:
        x[..., 3] *= ((distance - similarity) / blend).clip(0, 1)
    else:
        x[..., 3] *= distance > similarity
    return x


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize(("similarity", "blend"), [(0.1, 0.05), (0.2, 0.4), (0.0, 1.0), (0.15, 0)])
def test_alpha_follows_the_distance_of_chroma(run, similarity, blend, dtype):
    for shape in SHAPES:
        if len(shape) == 3:
            image = picture(shape, dtype)
            made = (*shape[:2], 4)
            given = {"color": GREEN, "similarity": similarity, "blend": blend}
            got = run("chroma_key", [image], made, dtype, **given)
            check(got, keyed(image, GREEN, similarity, blend), tolerance=1e-5)
            np.testing.assert_array_equal(got[..., :3], image[..., :3])


def test_a_key_has_defaults_and_converts_between_dtypes(run):
    for given, made in (("u8", "f32"), ("f32", "u8")):
        image = picture((9, 21, 3), given)
        got = run("chroma_key", [image], (9, 21, 4), made, color=GREEN)
        check(got, keyed(image, GREEN, 0.1, 0.05), tolerance=1e-5)


def test_the_key_itself_is_gone_and_other_colours_stay(run):
    image = np.array([[[0, 255, 0], [0, 250, 4], [0, 0, 255], [255, 255, 255]]], np.uint8)
    got = run("chroma_key", [image], (1, 4, 4), "u8", color="#00ff00")
    np.testing.assert_array_equal(got[..., 3], [[0, 0, 255, 255]])
    got = run("chroma_key", [image], (1, 4, 4), "u8", color="#00ff00", similarity=0, blend=0)
    np.testing.assert_array_equal(got[..., 3], [[0, 255, 255, 255]])


@pytest.mark.parametrize("colour", ["#3366FF", "#36f", [0.2, 0.4, 1], np.array([0.2, 0.4, 1.0])])
def test_a_colour_is_three_numbers_or_a_text(run, colour):
    image = picture((6, 9, 3), "u8")
    got = run("chroma_key", [image], (6, 9, 4), "u8", color=colour, blend=0.5)
    check(got, keyed(image, (0.2, 0.4, 1), 0.1, 0.5), tolerance=1e-5)


def test_a_key_makes_an_image_with_alpha():
    kernel = Kernel.lookup("chroma_key")
    for channels in (3, 4):
        assert kernel.output_shape([(5, 7, channels)], {"color": GREEN}) == (5, 7, 4)
    with pytest.raises(errors.ShapeError, match=r"the image is \(5, 7\), but only"):
        kernel.output_shape([(5, 7)], {"color": GREEN})


# -- gradients -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("shape", [(48, 64, 4), (5, 7, 3), (5, 7), (1, 1, 4), (1, 9, 3), (0, 4, 4)])
def test_a_gradient_rises_from_0_to_1(run, shape, dtype):
    got = run("generate_gradient", [], shape, dtype)
    height, width = shape[:2]
    want = np.ones((height, width, 4))
    want[..., 0] = np.arange(width) / max(width - 1, 1)
    want[..., 1] = np.arange(height)[:, None] / max(height - 1, 1)
    want[..., 2] = 0.5
    check(got, want[..., :3] @ LUMA if len(shape) == 2 else want[..., : shape[2]])


# -- all of them -----------------------------------------------------------------------------------

OTHERS = [
    ("color_matrix", {"matrix": MIX}, {"matrix": np.eye(3)}),
    ("color_matrix", {"matrix": SHIFTED}, {"matrix": np.eye(3, 4)}),
    ("color_matrix", {"matrix": WITH_ALPHA}, {"matrix": np.eye(4, 5)}),
    ("white_balance", {"temperature": 3000}, {"temperature": 8000, "tint": 0.5}),
    ("chroma_key", {"color": GREEN}, {"color": (0, 0, 1), "similarity": 0.3, "blend": 0}),
]


@pytest.mark.parametrize(("name", "params", "others"), OTHERS)
def test_other_values_are_not_compiled_anew(run, monkeypatch, name, params, others):
    image = picture((4, 5, 4), "u8")
    first = run(name, [image], image.shape, "u8", **params)
    monkeypatch.setattr(Definition, "lower", lambda *_: pytest.fail("it was compiled again"))
    assert (run(name, [image], image.shape, "u8", **others) != first).any()


def test_colours_are_graded_in_place(device, run):
    image = picture((9, 21, 4), "u8")
    for name, params, _ in OTHERS:
        buffer = compute.from_numpy(image)
        compute.run_kernel(name, [buffer], buffer, params)
        want = run(name, [image], image.shape, "u8", **params)
        np.testing.assert_array_equal(compute.read(buffer), want)


def test_images_without_pixels_stay_so(run):
    for name, params, _ in OTHERS:
        assert run(name, [np.zeros((0, 5, 4), np.uint8)], (0, 5, 4), "u8", **params).size == 0


IMAGE = ((4, 4, 4), "u8")


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("color_matrix", {}, "parameter 'matrix' is missing"),
        ("color_matrix", {"matrix": np.eye(4)}, "matrix is 3 × 3, 3 × 4 or 4 × 5 numbers, a row "),
        ("color_matrix", {"matrix": np.eye(4)}, "that it makes, not of shape (4, 4)."),
        ("color_matrix", {"matrix": [[1, 2], [3]]}, "not [[1, 2], [3]]."),
        ("color_matrix", {"matrix": "sepia"}, "not 'sepia'."),
        ("color_matrix", {"matrix": np.full((3, 3), np.nan)}, "matrix is of finite numbers, not"),
        ("white_balance", {"temperature": 1500}, "is a finite number from 2000 to 40000, not 1500"),
        ("white_balance", {"temperature": "warm"}, "temperature is a finite number from"),
        ("white_balance", {"tint": 2}, "white_balance: tint is a finite number from -1 to 1, not"),
        ("chroma_key", {}, "parameter 'color' is missing"),
        ("chroma_key", {"color": "gren"}, "color 'gren' is no color: give a name such as"),
        ("chroma_key", {"color": "#00ff0"}, "color '#00ff0' is no color"),
        ("chroma_key", {"color": "#0f08"}, "color '#0f08' is transparent, but here it is opaque"),
        ("chroma_key", {"color": (0, 255, 0)}, "not (0, 255, 0): divide levels by 255, or give '#"),
        ("chroma_key", {"color": (0, 1)}, "not (0, 1)"),
        ("chroma_key", {"color": GREEN, "similarity": -1}, "similarity is a finite number from 0"),
        ("chroma_key", {"color": GREEN, "blend": 1.5}, "blend is a finite number from 0 to 1, not"),
        ("generate_gradient", {"angle": 3}, "generate_gradient takes no parameters"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(fail, name, params, words):
    inputs = [] if name == "generate_gradient" else [IMAGE]
    assert words in fail(errors.ArgumentError, name, inputs, IMAGE, **params)


@pytest.mark.parametrize(("name", "params"), [(name, params) for name, params, _ in OTHERS])
def test_buffers_that_do_not_fit_are_refused(fail, name, params):
    for shape, dtype in (((4, 4, 2), "u8"), ((4,), "u8"), ((4, 4), "s32")):
        found = fail(errors.ShapeError, name, [(shape, dtype)], IMAGE, **params)
        assert "which is not an image" in found
    assert "(4, 5, 4)" in fail(errors.ShapeError, name, [IMAGE], ((4, 5, 4), "u8"), **params)


def test_a_key_into_an_image_without_alpha_is_refused(fail):
    rgb, gray = ((4, 4, 3), "u8"), ((4, 4), "u8")
    given = {"color": GREEN}
    found = fail(errors.ShapeError, "chroma_key", [rgb], rgb, **given)
    assert "the output is (4, 4, 3): give one with alpha, (4, 4, 4)." in found
    found = fail(errors.ShapeError, "chroma_key", [gray], IMAGE, **given)
    assert "the image is (4, 4), but only (height, width, 3) and (height, width, 4)" in found
