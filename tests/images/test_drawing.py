"""Shapes drawn over images: against Pillow's, at edges, under clips, and in what order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PIL import Image, ImageDraw

from dala.errors import ArgumentError, DtypeError, LimitError, ShapeError
from dala.gpu import compute
from dala.images.coordinates import FARTHEST
from dala.images.drawing import Drawing
from dala.images.drawing_renderer import draw, drawn

FINE = 16
"""How much finer Pillow draws what is compared: it has no antialiasing of its own."""
TOLERANCE, JOINED_TOLERANCE = 0.1, 0.3
"""Of a pixel: the distance to an edge is not quite the area beyond it, least of all where two parts
of a polyline meet in a pixel, of which the larger counts."""
H, W = 70, 90


def paper(channels=3, dtype=np.uint8, size=(H, W)):
    shape = size if channels == 1 else (*size, channels)
    levels = np.random.default_rng(channels).integers(0, 256, shape, dtype=np.uint8)
    return levels if dtype is np.uint8 else (levels / 255).astype(dtype)


def black(size=(H, W)):
    return np.zeros(size, np.float32)


def with_shapes(image, *calls):
    """The image with shapes, each given by its method's name and arguments."""
    drawing = Drawing()
    for method, *given in calls:
        getattr(drawing, method)(*given)
    return drawn(image, drawing)


def pillow(paint):
    """How far what Pillow paints covers each pixel."""
    fine = Image.new("L", (W * FINE, H * FINE))
    paint(ImageDraw.Draw(fine))
    cells = np.asarray(fine).reshape(H, FINE, W, FINE) / 255
    return cells.mean((1, 3))


def fine_box(left, top, right, bottom):
    # Pillow's boxes end with their last pixel.
    return [left * FINE, top * FINE, right * FINE - 1, bottom * FINE - 1]


def thick_line(canvas, points, width):
    fine = [(x * FINE, y * FINE) for x, y in points]
    canvas.line(fine, 255, round(width * FINE), "curve")
    half = width * FINE / 2
    for x, y in fine:
        canvas.ellipse([x - half, y - half, x + half - 1, y + half - 1], 255)


def outline(canvas, shape, box, half, *radius):
    left, top, right, bottom = box
    grown = [item + half for item in radius], [item - half for item in radius]
    for by, corner, level in ((half, grown[0], 255), (-half, grown[1], 0)):
        edges = fine_box(left - by, top - by, right + by, bottom + by)
        getattr(canvas, shape)(edges, *[item * FINE for item in corner], fill=level)


PILLOWS = {
    "fill_circle": (
        ("fill_circle", 40.25, 31.5, 17.5, 1.0),
        lambda c: c.ellipse(fine_box(22.75, 14, 57.75, 49), 255),
    ),
    "small fill_circle": (
        ("fill_circle", 40, 30, 2.5, 1.0),
        lambda c: c.ellipse(fine_box(37.5, 27.5, 42.5, 32.5), 255),
    ),
    "draw_circle": (
        ("draw_circle", 40, 31, 20, 1.0, 3.0),
        lambda c: outline(c, "ellipse", (20, 11, 60, 51), 1.5),
    ),
    "fill_round_rect": (
        ("fill_round_rect", 10.5, 8.25, 50, 40, 11, 1.0),
        lambda c: c.rounded_rectangle(fine_box(10.5, 8.25, 60.5, 48.25), 11 * FINE, 255),
    ),
    "draw_round_rect": (
        ("draw_round_rect", 12, 8, 50, 40, 10, 1.0, 4.0),
        lambda c: outline(c, "rounded_rectangle", (12, 8, 62, 48), 2, 10),
    ),
    "draw_rect": (
        ("draw_rect", 12.25, 8.5, 50, 40, 1.0, 1.5),
        lambda c: outline(c, "rectangle", (12.25, 8.5, 62.25, 48.5), 0.75),
    ),
    "draw_line": (
        ("draw_line", 8, 10, 75, 52, 1.0, 5.0),
        lambda c: thick_line(c, [(8, 10), (75, 52)], 5),
    ),
    "draw_polyline": (
        ("draw_polyline", [(10, 10), (40, 55), (50, 12), (80, 60)], 1.0, 6.0),
        lambda c: thick_line(c, [(10, 10), (40, 55), (50, 12), (80, 60)], 6),
    ),
}


@pytest.mark.parametrize("name", PILLOWS)
def test_a_shape_covers_what_pillows_does(device, name):
    call, paint = PILLOWS[name]
    got, want = with_shapes(black(), call), pillow(paint)
    assert want.max() == 1
    difference = np.abs(got - want)
    assert difference.max() <= (JOINED_TOLERANCE if name == "draw_polyline" else TOLERANCE)
    assert difference[(want > 0) | (got > 0)].mean() < 0.02


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_rectangle_along_pixels_is_exact(device, channels, dtype):
    image, color = paper(channels, dtype), (1.0, 0.4, 0.2)
    got = with_shapes(image, ("fill_rect", 5, 7, 40, 33, color))
    light = 0.299 + 0.587 * 0.4 + 0.114 * 0.2
    levels = np.array([light] if channels == 1 else [*color, 1.0][:channels])
    want = image.copy()
    want[7:40, 5:45] = np.rint(levels * 255) if dtype is np.uint8 else levels
    np.testing.assert_allclose(got, want, rtol=0, atol=0 if dtype is np.uint8 else 1e-6)


def test_an_outline_along_pixels_is_exact(device):
    got = with_shapes(black(), ("draw_rect", 10, 10, 50, 40, 1.0, 2.0))
    want = black()
    want[9:51, 9:61] = 1
    want[11:49, 11:59] = 0
    np.testing.assert_array_equal(got, want)


def test_edges_within_pixels_cover_them_in_part(device):
    got = with_shapes(black(), ("fill_rect", 10.25, 20.5, 3, 0.25, 1.0))
    np.testing.assert_allclose(got[20, 9:15], [0, 0.1875, 0.25, 0.25, 0.0625, 0], atol=1e-6)
    assert np.count_nonzero(got) == 4


def test_a_thin_line_covers_as_much_as_it_is_wide(device):
    got = with_shapes(black(), ("draw_line", 10, 20.5, 60, 20.5, 1.0, 0.25))
    np.testing.assert_allclose(got[19:22, 30], [0, 0.25, 0], atol=1e-6)


# -- colors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_alpha_mixes_as_overlay_does(device, channels, dtype):
    image, color = paper(channels, dtype), (0.9, 0.3, 0.1, 0.35)
    got = with_shapes(image, ("fill_rect", -4, 9, 60, 100, color))
    below, output = compute.from_numpy(image), compute.buffer_zeros(image.shape, image.dtype)
    layer = compute.from_numpy(np.full((100, 60, 4), color, np.float32))
    compute.run_kernel("overlay", [below, layer], output, {"x": -4, "y": 9})
    want = compute.read(output)
    if dtype is np.uint8:
        assert np.abs(got.astype(int) - want).max() <= 1
    else:
        np.testing.assert_allclose(got, want, atol=1e-5)


def test_all_shapes_of_a_pixel_are_mixed_before_it_is_rounded(device):
    image = np.full((20, 20), 100, np.uint8)
    got = with_shapes(image, *[("fill_rect", 0, 0, 20, 20, (1, 1, 1, 0.002))] * 50)
    want = 255 - 155 * 0.998**50
    assert (got == round(want)).all()


def test_later_shapes_lie_over_earlier_ones(device):
    calls = [("fill_rect", 10, 10, 30, 30, c) for c in ("#ff0000", "#00ff00", "#0000ff")]
    np.testing.assert_array_equal(with_shapes(paper(), *calls)[20, 20], [0, 0, 255])
    np.testing.assert_array_equal(with_shapes(paper(), *calls[::-1])[20, 20], [255, 0, 0])


def test_a_polyline_that_crosses_itself_is_painted_once(device):
    cross = [(10, 10), (60, 60), (60, 10), (10, 60)]
    got = with_shapes(black(), ("draw_polyline", cross, (1, 1, 1, 0.5), 7.0))
    np.testing.assert_allclose(got.max(), 0.5, atol=1e-6)


@pytest.mark.parametrize(
    ("color", "want"),
    [
        ("#ff8000", (255, 128, 0)),
        ("#f80", (255, 136, 0)),
        ("orange", (255, 165, 0)),
        (0.2, (51, 51, 51)),
        ((0.0, 1.0, 0.2), (0, 255, 51)),
        ([0.0, 1.0, 0.2, 1.0], (0, 255, 51)),
        ("#ff800000", (7, 7, 7)),
    ],
)
def test_colors_are_names_codes_and_numbers(color, want):
    image = np.full((8, 8, 3), 7, np.uint8)
    assert tuple(with_shapes(image, ("fill_rect", 0, 0, 8, 8, color))[4, 4]) == want


# -- where -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(1, 1), (3, 200), (200, 3), (16, 32), (17, 33), (47, 61)])
def test_every_size_of_image_is_drawn_on(device, size):
    height, width = size
    got = with_shapes(black(size), ("fill_rect", 0.5, 0.5, width, height, 1.0))
    want = np.ones(size)
    want[0] *= 0.5
    want[:, 0] *= 0.5
    np.testing.assert_allclose(got, want, atol=1e-6)


def test_tiles_that_overlap_are_painted_once(device):
    # The last tiles of 40 columns begin within those before them.
    half = ("fill_rect", 0, 0, 40, 20, (1, 1, 1, 0.5))
    spot = ("fill_rect", 33, 17, 2, 2, (1, 1, 1, 0.5))
    got = with_shapes(black((20, 40)), half, spot)
    want = np.full((20, 40), 0.5)
    want[17:19, 33:35] = 0.75
    np.testing.assert_allclose(got, want, atol=1e-6)


def test_what_reaches_over_the_edge_is_cut_off(device):
    large = with_shapes(black((H + 40, W + 40)), ("fill_circle", 25, 27, 30, 1.0))
    got = with_shapes(black(), ("fill_circle", 5, 7, 30, 1.0))
    np.testing.assert_allclose(got, large[20 : H + 20, 20 : W + 20], atol=1e-5)


@pytest.mark.parametrize(
    "call",
    [
        ("fill_rect", -50, 10, 40, 20, 1.0),
        ("fill_rect", W, 10, 40, 20, 1.0),
        ("fill_circle", 20, H + 11, 10, 1.0),
        ("draw_line", -10, -10, -500, 80, 1.0, 3),
        ("draw_text", "x", W + 1, 2),
        ("draw_image", np.ones((5, 5), np.float32), -5, 0),
    ],
)
def test_what_lies_outside_changes_nothing(device, call):
    assert not with_shapes(black(), call).any()


@pytest.mark.parametrize(
    "call",
    [
        ("fill_rect", 10, 10, 0, 20, 1.0),
        ("fill_rect", 10.5, 10.5, 20, 0, 1.0),
        ("fill_circle", 20, 20, 0, 1.0),
        ("draw_circle", 20, 20, 5, 1.0, 0),
        ("draw_line", 10, 10, 50, 50, 1.0, 0),
        ("draw_rect", 10, 10, 50, 50, 1.0, 0),
        ("draw_image", np.ones((5, 5), np.float32), 2, 2, 0, 9),
        ("draw_image", np.ones((0, 5), np.float32), 2, 2),
        ("fill_rect", 10, 10, 20, 20, (1, 1, 1, 0)),
    ],
)
def test_what_has_no_size_changes_nothing(device, call):
    assert not with_shapes(black(), call).any()


def test_a_line_without_length_is_a_dot(device):
    dot = with_shapes(black(), ("draw_line", 20, 20, 20, 20, 1.0, 8.0))
    np.testing.assert_allclose(dot, with_shapes(black(), ("fill_circle", 20, 20, 4, 1.0)))


def test_nothing_outside_of_a_clip_is_changed(device):
    shapes = [
        ("fill_rect", 0, 0, W, H, 1.0),
        ("draw_text", "Hamburg", 5, 10, 30),
        ("fill_mask", np.ones((4, 4), np.float32), 1.0),
        ("draw_image", np.ones((50, 50), np.float32), 0, 0),
    ]
    for shape in shapes:
        got = with_shapes(black(), ("set_clip", 20, 15, 30, 20), shape)
        inside = got[15:35, 20:50].copy()
        got[15:35, 20:50] = 0
        assert inside.any()
        assert not got.any()


def test_a_clip_ends_where_it_is_set_anew(device):
    got = with_shapes(
        black(),
        ("set_clip", 0, 0, 10, 10),
        ("set_clip", 20, 20, 10.5, 10),
        ("fill_rect", 0, 0, W, H, 0.5),
        ("set_clip",),
        ("fill_rect", 60, 60, 1, 1, 1.0),
    )
    assert (got[5, 5], got[25, 25], got[25, 30], got[60, 60]) == (0, 0.5, 0.25, 1)


def test_ten_thousand_shapes_are_drawn_in_order(device):
    random = np.random.default_rng(3)
    corners, levels = random.integers(-3, (W, H), (10_000, 2)), random.random(10_000)
    want, drawing = black(), Drawing()
    for (x, y), level in zip(corners.tolist(), levels.astype(np.float32).tolist(), strict=True):
        drawing.fill_rect(x, y, 5, 4, level)
        want[max(y, 0) : max(y + 4, 0), max(x, 0) : max(x + 5, 0)] = level
    np.testing.assert_allclose(drawn(black(), drawing), want, atol=1e-6)


def test_more_shapes_than_are_listed_at_a_time_are_drawn(monkeypatch):
    calls = [("draw_circle", 45, 35, k / 3, (1, 1, 1, 0.1), 2.0) for k in range(90)]
    want = with_shapes(black(), *calls)
    monkeypatch.setattr("dala.images.drawing_tiles.MOST_ENTRIES", 50)
    np.testing.assert_allclose(with_shapes(black(), *calls), want, atol=1e-5)


def test_pixels_without_shapes_stay_as_they_are(device):
    image = np.full((H, W), np.nan, np.float32)
    got = with_shapes(image, ("draw_rect", 5, 5, 70, 60, 0.5, 2.0))
    assert np.isnan(got[30, 40])


# -- onto what -------------------------------------------------------------------------------------


def test_a_drawing_goes_onto_the_image_itself_or_into_another(device):
    drawing = Drawing()
    drawing.fill_circle(40, 30, 20, "#ff0000")
    image = compute.from_numpy(paper())
    output = compute.buffer_zeros(image.shape, "u8")
    draw(image, drawing, output)
    np.testing.assert_array_equal(compute.read(image), paper())
    draw(image, drawing)
    np.testing.assert_array_equal(compute.read(image), compute.read(output))
    assert (compute.read(image) != paper()).any()


def test_an_image_is_given_back_as_what_it_was():
    drawing = Drawing()
    drawing.fill_rect(0, 0, 9, 9, "#ff0000")
    given = paper()
    for image in (given, Image.fromarray(given), compute.from_numpy(given)):
        made = drawn(image, drawing)
        assert type(made) is type(image)
        np.testing.assert_array_equal(np.asarray(image), given)
        assert tuple(np.asarray(made)[4, 4]) == (255, 0, 0)


def test_an_empty_drawing_changes_nothing(device):
    np.testing.assert_array_equal(drawn(paper(), Drawing()), paper())


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e30, FARTHEST + 1, "5", None])
@pytest.mark.parametrize(
    ("method", "before", "after", "name"),
    [
        ("fill_rect", (), (1, 2, 3, 0.5), "x"),
        ("fill_rect", (1, 2), (3, 0.5), "width"),
        ("fill_circle", (1, 2), (0.5,), "radius"),
        ("draw_line", (1, 2, 3, 4, 0.5), (), "line_width"),
        ("draw_text", ("x",), (2,), "x"),
        ("set_clip", (1, 2), (3,), "width"),
    ],
)
def test_numbers_that_are_none_are_refused(method, before, after, name, number):
    with pytest.raises(ArgumentError, match=f"{method}: {name} is"):
        getattr(Drawing(), method)(*before, number, *after)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (("fill_rect", 0, 0, -1, 5, 1.0), ArgumentError, "width is a finite number from 0"),
        (("fill_rect", 0, 0, 5, 5, "no color"), ArgumentError, "'no color' is no color"),
        (("fill_rect", 0, 0, 5, 5, (1, 2)), ArgumentError, r"\(r, g, b\)"),
        (
            ("fill_rect", 0, 0, 5, 5, (0, 0, 2)),
            ArgumentError,
            r"from 0 to 1, not \(0, 0, 2\): divide",
        ),
        (("draw_polyline", [], 1.0), ArgumentError, "points is empty"),
        (("draw_polyline", [(1, 2, 3)], 1.0), ArgumentError, r"a point is \(x, y\)"),
        (("draw_text", "", 0, 0), ArgumentError, "text is what to show"),
        (("draw_text", "x" * 2001, 0, 0), LimitError, "2,001 characters"),
        (("draw_text", "x", 0, 0, 2), ArgumentError, "size is 4 to 1000 pixels, not 2"),
        (
            ("draw_text", "\U0001f600", 0, 0),
            ArgumentError,
            r"no \S+ \(U\+1F600\)",
        ),
        (("fill_mask", paper(), 1.0), ShapeError, r"mask is \(70, 90, 3\)"),
        (("fill_mask", black(), 1.0, 5, 5), ArgumentError, "give all, or none"),
        (("fill_labels", black(), []), DtypeError, "labels are u8"),
        (("fill_labels", paper(1), [0.5] * 257), ArgumentError, "labels end at 255"),
        (("draw_image", "photo.png", 0, 0), ArgumentError, "an image is an array"),
        (("draw_image", paper(), 0, 0, 5, 5, 2), ArgumentError, "alpha is"),
    ],
)
def test_mistakes_are_refused(call, error, says):
    method, *given = call
    with pytest.raises(error, match=f"{method}: .*{says}"):
        getattr(Drawing(), method)(*given)


def test_images_that_do_not_fit_are_refused():
    image = compute.from_numpy(paper())
    with pytest.raises(ShapeError, match="draw: the input is"):
        draw(image, Drawing(), compute.buffer_zeros((3, 4), "u8"))
    with pytest.raises(ArgumentError, match="same dtype on the same device"):
        draw(image, Drawing(), compute.buffer_zeros(image.shape, "f32"))
    with pytest.raises(ShapeError, match="which is not an image"):
        draw(compute.buffer_zeros((4, 4, 2), "u8"), Drawing())
    with pytest.raises(ArgumentError, match="a Drawing is needed"):
        draw(image, [])


def test_a_drawing_on_top_of_another_looks_as_if_drawn_after_it(device):
    lower = [("fill_rect", 3, 3, 60, 40, "#ff000080"), ("draw_text", "below", 5, 5)]
    upper = [
        ("draw_polyline", [(5, 5), (60, 50), (80, 10)], (0.0, 0.5, 1.0, 0.5), 9),
        ("draw_text", "above", 20, 20, 20),
        ("draw_image", paper(4, size=(20, 30)), 40, 30),
        ("fill_circle", 50, 40, 12.5, "#00ff0080"),
    ]
    first, second = Drawing(), Drawing()
    for drawing, calls in ((first, lower), (second, upper)):
        for method, *given in calls:
            getattr(drawing, method)(*given)
    alone = drawn(paper(), second)
    first.add(second)
    first.fill_rect(0, 0, 20, 20, "#0000ff")
    want = with_shapes(paper(), *lower, *upper, ("fill_rect", 0, 0, 20, 20, "#0000ff"))
    np.testing.assert_array_equal(drawn(paper(), first), want)
    assert len(first) == 7
    np.testing.assert_array_equal(drawn(paper(), second), alone)


@pytest.mark.parametrize("radius", [100.0, 250.5])
def test_a_large_circle_has_no_gaps(device, radius):
    got = with_shapes(black((600, 600)), ("draw_circle", 300, 300, radius, 1.0, 4))
    for angle in np.linspace(0, 2 * math.pi, 720):
        x, y = int(300 + radius * math.cos(angle)), int(300 + radius * math.sin(angle))
        assert got[y, x] == 1, (x, y)


@pytest.mark.parametrize("place", [(30, 40), (319, 250), (-7, -9)], ids=["inside", "end", "begin"])
@pytest.mark.parametrize(
    ("channels", "dtype"), [(1, np.uint8), (3, np.uint8), (4, np.uint8), (3, np.float32)]
)
def test_little_on_a_large_image_is_drawn_as_on_a_part_of_it(device, channels, dtype, place):
    image = paper(channels, dtype, (260, 330))
    x, y = place
    layer = paper(4, size=(8, 9))

    def made(image, left, top):
        drawing = Drawing()
        drawing.fill_circle(x + 6.5 - left, y + 7 - top, 6, (1, 0.5, 0.2, 0.7))
        drawing.draw_image(layer, x + 3 - left, y + 2 - top, 12, 11)
        return drawn(image, drawing)

    rows, columns = (slice(max(at - 3, 0), at + 20) for at in (y, x))
    want = image.copy()
    want[rows, columns] = made(image[rows, columns].copy(), columns.start, rows.start)
    np.testing.assert_allclose(made(image, 0, 0), want, atol=1 if dtype is np.uint8 else 1e-6)
    assert (want != image).any()
