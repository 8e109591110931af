"""Images that are cut out, turned over, rotated and warped, against positions found in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernels.pictures import SHAPES, check, in_units, picture

from dala import errors
from dala.devices import CPU
from dala.gpu import compute
from dala.runtime.kernels.kernel import KERNELS

BORDERS = ["clamp", "mirror", "reflect", "wrap", "zero"]
METHODS = ["nearest", "bilinear", "bicubic"]


def place(index, size, border):
    """The pixel that a border rule answers with, and whether there is one."""
    if border == "clamp":
        return index.clip(0, size - 1)
    if border == "wrap":
        return index % size
    if border == "reflect":
        turned = index % (2 * size)
        return np.minimum(turned, 2 * size - 1 - turned)
    if border == "mirror":
        turned = index % max(1, 2 * (size - 1))
        return np.minimum(turned, max(0, 2 * (size - 1)) - turned)
    return index.clip(0, size - 1)


def read(x, down, across, border):
    height, width = x.shape[:2]
    found = x[place(down, height, border), place(across, width, border)]
    if border != "zero":
        return found
    inside = (down >= 0) & (down < height) & (across >= 0) & (across < width)
    return found * inside.reshape(inside.shape + (1,) * (x.ndim - 2))


def cubic(t, a=-0.75):
    near = lambda d: (a + 2) * d**3 - (a + 3) * d**2 + 1  # noqa: E731
    far = lambda d: a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a  # noqa: E731
    return {-1: far(1 + t), 0: near(t), 1: near(1 - t), 2: far(2 - t)}


def sampled(x, down, across, method, border):
    """The image at positions, an element at a time."""
    if method == "nearest":
        whole = [np.floor(place + 0.5).astype(int) for place in (down, across)]
        return read(x, *whole, border)
    above, before = np.floor(down).astype(int), np.floor(across).astype(int)
    taps = cubic if method == "bicubic" else lambda t: {0: 1 - t, 1: t}
    rows, columns = taps(down - above), taps(across - before)
    total = 0
    for i, row in rows.items():
        for j, column in columns.items():
            weight = (row * column).reshape(down.shape + (1,) * (x.ndim - 2))
            total = total + weight * read(x, above + i, before + j, border)
    return total


def warped(x, matrix, size, method, border):
    """The image at where a matrix sends each position of the output."""
    y, x_ = np.mgrid[: size[0], : size[1]].astype(np.float64)
    (a, b, c), (d, e, f) = matrix
    return sampled(x, d * x_ + e * y + f, a * x_ + b * y + c, method, border)


def turning(degrees, shape, size):
    """The matrix that maps an output of a size to the image it is rotated from."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    turn = np.array([[cos, -sin], [sin, cos]])
    middle = np.array([shape[1] - 1, shape[0] - 1]) / 2
    return np.column_stack([turn, middle - turn @ (np.array([size[1] - 1, size[0] - 1]) / 2)])


# -- pixels moved as they are ----------------------------------------------------------------------


def test_crops_are_rectangles(run):
    for shape in SHAPES:
        for dtype in ("u8", "f32"):
            image = picture(shape, dtype)
            np.testing.assert_array_equal(run("crop", [image], shape, dtype), image)
            tall, wide = -(-shape[0] // 2), -(-shape[1] // 2)
            top, left = shape[0] - tall, shape[1] - wide
            want = image[top:, left:]
            got = run("crop", [image], want.shape, dtype, x=left, y=top)
            np.testing.assert_array_equal(got, want)
            got = run("crop", [image], want.shape, dtype, width=wide, height=tall)
            np.testing.assert_array_equal(got, image[:tall, :wide])


@pytest.mark.parametrize("direction", ["horizontal", "vertical", "both"])
def test_flips_turn_images_over(run, direction):
    down = slice(None, None, 1 if direction == "horizontal" else -1)
    across = slice(None, None, 1 if direction == "vertical" else -1)
    for shape in SHAPES:
        for dtype in ("u8", "f32"):
            image = picture(shape, dtype)
            got = run("flip", [image], shape, dtype, direction=direction)
            np.testing.assert_array_equal(got, image[down, across])


def test_quarter_turns_move_pixels_as_they_are(run):
    for shape in SHAPES:
        image = picture(shape, "u8" if len(shape) == 3 else "f32")
        for turns in (-1, 0, 1, 2, 3, 6):
            want = np.rot90(image, turns)
            dtype = "u8" if len(shape) == 3 else "f32"
            got = run("rotate", [image], want.shape, dtype, degrees=90 * turns, expand=True)
            np.testing.assert_array_equal(got, want)
    square = picture((6, 6, 3), "f32")
    np.testing.assert_array_equal(
        run("rotate", [square], square.shape, "f32", degrees=90.0), np.rot90(square)
    )


@pytest.mark.parametrize(
    ("kernel", "params", "size"),
    [
        ("crop", {"x": 2, "y": 3}, (6, 19)),
        ("flip", {}, (9, 21)),
        ("flip", {"direction": "vertical"}, (9, 21)),
        ("flip", {"direction": "both"}, (9, 21)),
        ("rotate", {"degrees": 90, "expand": True}, (21, 9)),
        ("rotate", {"degrees": 20}, (9, 21)),
        ("warp_affine", {"matrix": [[1, 0.5, 0], [0, 1, 2]]}, (9, 21)),
    ],
)
def test_moved_images_convert_between_dtypes(run, kernel, params, size):
    for channels in ((), (4,)):
        whole = picture((9, 21, *channels), "u8")
        exact = in_units(whole).astype(np.float32)
        want = run(kernel, [exact], (*size, *channels), "f32", **params)
        check(run(kernel, [whole], want.shape, "f32", **params), want)
        check(run(kernel, [exact], want.shape, "u8", **params), want)


def test_flips_are_made_in_place(device):
    image = picture((9, 21, 4), "u8")
    for direction, want in (("vertical", image[::-1]), ("horizontal", image[:, ::-1])):
        buffer = compute.from_numpy(image)
        compute.run_kernel("flip", [buffer], buffer, {"direction": direction})
        np.testing.assert_array_equal(compute.read(buffer), want)


# -- pixels interpolated ---------------------------------------------------------------------------


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("method", METHODS)
def test_rotations_sample_between_pixels(run, method, border):
    for shape in ((23, 37, 3), (1, 5)):
        image = picture(shape, "f32")
        # No position of these lies half-way between two pixels.
        for degrees in (17, -101.3):
            want = warped(
                in_units(image), turning(degrees, shape, shape), shape[:2], method, border
            )
            given = {"degrees": degrees, "method": method, "border": border}
            got = run("rotate", [image], shape, "f32", **given)
            check(got, want, tolerance=3e-5)


@pytest.mark.parametrize("method", METHODS)
def test_warps_follow_their_matrix(run, method):
    matrix = np.array([[1.3071, 0.2117, -2.4029], [-0.3713, 0.8209, 5.1013]])
    forth = np.linalg.inv(np.vstack([matrix, [0, 0, 1]]))[:2]
    for shape in SHAPES:
        dtype = "u8" if len(shape) == 3 else "f32"
        image = picture(shape, dtype)
        want = warped(in_units(image), matrix, (19, 31), method, "clamp")
        given = {"method": method, "border": "clamp", "size": (31, 19)}
        got = run("warp_affine", [image], want.shape, dtype, matrix=forth, **given)
        check(got, want, tolerance=3e-5)
        back = {"matrix": matrix.tolist(), "inverse": True, **given}
        check(run("warp_affine", [image], want.shape, dtype, **back), want, tolerance=3e-5)


def test_whole_steps_are_exact_for_every_border(run):
    image = picture((5, 7), "f32")
    for border in BORDERS:
        for method in ("nearest", "bilinear"):
            given = {"matrix": [[1, 0, 9], [0, 1, -8]], "method": method, "border": border}
            got = run("warp_affine", [image], image.shape, "f32", **given)
            down, across = np.mgrid[8:13, -9:-2]
            np.testing.assert_array_equal(got, read(image, down, across, border))


def test_expanded_rotations_hold_the_whole_image(run):
    image = np.ones((21, 34), np.float32)
    shape = KERNELS["rotate"].output_shape([image.shape], {"degrees": 30, "expand": True})
    assert shape == (math.ceil(34 * 0.5 + 21 * 0.8660254), math.ceil(34 * 0.8660254 + 21 * 0.5))
    got = run("rotate", [image], shape, "f32", degrees=30, expand=True)
    check(
        got,
        warped(image, turning(30, image.shape, shape), shape, "bilinear", "zero"),
        tolerance=3e-5,
    )
    assert got.sum() == pytest.approx(image.sum(), rel=0.01)


@pytest.mark.parametrize("kernel", ["rotate", "warp_affine"])
def test_colours_of_transparent_pixels_do_not_show(run, kernel):
    image = picture((20, 30, 4), "f32")
    image[:10, :, 3] = 0
    matrix = turning(25, image.shape, image.shape)
    given = {"degrees": 25} if kernel == "rotate" else {"matrix": matrix, "inverse": True}
    x = in_units(image)
    shown = np.dstack([x[..., :3] * x[..., 3:], x[..., 3]])
    whole = warped(shown, matrix, image.shape[:2], "bilinear", "zero")
    opaque = whole[..., 3:] > 1e-3
    got = run(kernel, [image], image.shape, "f32", premultiply=True, **given)
    colours = whole[..., :3] / np.where(opaque, whole[..., 3:], 1)
    check(np.where(opaque, got[..., :3], 0), np.where(opaque, colours, 0), tolerance=1e-3)
    check(got[..., 3], whole[..., 3], tolerance=3e-5)


def test_positions_out_of_reach_are_outside(run):
    image = picture((5, 7), "f32")
    for far in (1e12, 1e300):
        given = {"matrix": [[1, 0, far], [0, 1, 0]], "inverse": True}
        assert not run("warp_affine", [image], image.shape, "f32", **given).any()
        got = run("warp_affine", [image], image.shape, "f32", border="clamp", **given)
        np.testing.assert_array_equal(got, np.repeat(image[:, -1:], 7, 1))


def test_moved_images_without_pixels_stay_so(run):
    empty = np.zeros((0, 5, 3), np.uint8)
    unit = [[1, 0, 0], [0, 1, 0]]
    assert run("crop", [empty], empty.shape, "u8").size == 0
    assert run("crop", [np.zeros((4, 5), np.uint8)], (0, 2), "u8", x=3, y=4, height=0).size == 0
    assert run("flip", [empty], empty.shape, "u8").size == 0
    assert run("flip", [empty], empty.shape, "u8", direction="vertical").size == 0
    assert run("rotate", [empty], empty.shape, "u8", degrees=30).size == 0
    assert run("rotate", [empty], (5, 0, 3), "u8", degrees=90, expand=True).size == 0
    assert run("warp_affine", [empty], empty.shape, "u8", matrix=unit).size == 0


def test_parameters_may_change_without_compiling(monkeypatch):
    image = compute.from_numpy(picture((30, 40, 4), "u8"))
    same = compute.buffer_zeros((30, 40, 4), "u8")
    part = compute.buffer_zeros((10, 10, 4), "u8")

    def run_all(value):
        compute.run_kernel(
            "crop", [image], part, {"x": value, "y": value, "width": 10, "height": 10}
        )
        compute.run_kernel("rotate", [image], same, {"degrees": 7 * value + 1})
        compute.run_kernel("rotate", [image], same, {"degrees": 360 * value + 180})
        compute.run_kernel("warp_affine", [image], same, {"matrix": [[1, value, 0], [0, 1, value]]})

    run_all(2)
    monkeypatch.setattr(CPU, "load", lambda task: pytest.fail(f"{task.name} is compiled again"))
    run_all(3)


# -- mistakes --------------------------------------------------------------------------------------

IMAGE = ((4, 6, 3), "u8")
UNIT = {"matrix": [[1, 0, 0], [0, 1, 0]]}


@pytest.mark.parametrize(
    ("kernel", "params", "error", "words"),
    [
        ("crop", {"x": -1}, errors.ShapeError, "crop: 7 × 4 pixels at x = -1, y = 0 are not all"),
        ("crop", {"width": 7}, errors.ShapeError, "inside the image, which is 6 × 4"),
        ("crop", {"y": 3, "height": 2}, errors.ShapeError, "6 × 2 pixels at x = 0, y = 3"),
        ("crop", {"y": 9}, errors.ShapeError, "6 × -5 pixels at x = 0, y = 9"),
        ("crop", {"x": 1.5}, errors.ArgumentError, "crop: x is an integer, not 1.5"),
        ("crop", {"height": "all"}, errors.ArgumentError, "crop: height is an integer"),
        ("crop", {"x": 2}, errors.ShapeError, "makes the output (4, 4, 3), but it is (4, 6, 3)"),
        ("flip", {"direction": "up"}, errors.ArgumentError, "give horizontal, vertical, both"),
        ("rotate", {"degrees": math.nan}, errors.ArgumentError, "degrees is a finite number"),
        ("rotate", {"degrees": "a bit"}, errors.ArgumentError, "degrees is a finite number"),
        ("rotate", {"degrees": 1, "expand": 1}, errors.ArgumentError, "True or False, not 1"),
        ("rotate", {"degrees": 90, "expand": True}, errors.ShapeError, "the output (6, 4, 3)"),
        ("rotate", {"degrees": 1, "method": "area"}, errors.ArgumentError, "give nearest, bilin"),
        ("rotate", {"degrees": 1, "border": "black"}, errors.ArgumentError, "give clamp, mirror"),
        ("rotate", {}, errors.ArgumentError, "degrees"),
        ("warp_affine", {"matrix": np.eye(3)}, errors.ArgumentError, "matrix is 2 × 3 finite"),
        ("warp_affine", {"matrix": "turn"}, errors.ArgumentError, "numbers, not 'turn'"),
        ("warp_affine", {"matrix": [[1, 0], [0]]}, errors.ArgumentError, "is 2 × 3 finite"),
        ("warp_affine", {"matrix": [[1, 2, 0], [2, 4, 0]]}, errors.ArgumentError, "onto a line"),
        ("warp_affine", {"inverse": None, **UNIT}, errors.ArgumentError, "True or False, not None"),
        ("warp_affine", {"size": (2, 2), **UNIT}, errors.ShapeError, "the output (2, 2, 3)"),
        ("warp_affine", {"size": 2, "shape": 2, **UNIT}, errors.ArgumentError, "give one of them"),
        ("warp_affine", {"method": "cubic", **UNIT}, errors.ArgumentError, "method 'cubic' is not"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(fail, kernel, params, error, words):
    assert words in fail(error, kernel, [IMAGE], IMAGE, **params)


@pytest.mark.parametrize(
    ("kernel", "params"),
    [("crop", {}), ("flip", {}), ("rotate", {"degrees": 5}), ("warp_affine", UNIT)],
)
def test_buffers_that_do_not_fit_are_refused(fail, kernel, params):
    for shape, dtype in (((4, 6, 2), "u8"), ((4,), "u8"), ((4, 6), "s32")):
        for image, output in (((shape, dtype), IMAGE), (IMAGE, (shape, dtype))):
            said = fail(errors.ShapeError, kernel, [image], output, **params)
            assert "which is not an image" in said
    assert "the same channels" in fail(errors.ShapeError, kernel, [IMAGE], ((4, 6), "u8"), **params)
    empty = ((0, 6, 3), "u8")
    assert "no pixels" in fail(errors.ShapeError, kernel, [empty], IMAGE, **params)


def test_the_shape_of_the_output_follows_from_the_parameters():
    shapes = [(4, 6, 3)]
    assert KERNELS["crop"].output_shape(shapes, {"x": 2, "height": 3}) == (3, 4, 3)
    assert KERNELS["rotate"].output_shape(shapes, {"degrees": 45}) == (4, 6, 3)
    assert KERNELS["rotate"].output_shape(shapes, {"degrees": 45, "expand": True}) == (8, 8, 3)
    assert KERNELS["warp_affine"].output_shape(shapes, {**UNIT, "size": (9, 5)}) == (5, 9, 3)
    assert KERNELS["warp_affine"].output_shape(shapes, {**UNIT, "shape": (9, 5)}) == (9, 5, 3)
    for kernel, params in (("crop", {}), ("rotate", {"degrees": 1}), ("warp_affine", UNIT)):
        with pytest.raises(errors.ShapeError, match="images are"):
            KERNELS[kernel].output_shape([(4,)], params)
