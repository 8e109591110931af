"""Text, pictures, masks and labels drawn over images."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from dala.errors import MediaError
from dala.gpu import compute
from dala.images.drawing import Drawing, text_margin, text_size
from dala.images.drawing_renderer import drawn
from dala.images.text_rendering import opened_font, rendered_text

H, W = 70, 90


def paper(*shape):
    return np.random.default_rng(5).integers(0, 256, shape, dtype=np.uint8)


def black():
    return np.zeros((H, W), np.float32)


def with_layer(image, method, *given, **named):
    drawing = Drawing()
    getattr(drawing, method)(*given, **named)
    return drawn(image, drawing)


# -- text ------------------------------------------------------------------------------------------


def test_text_is_what_pillow_draws(device):
    from PIL import Image, ImageDraw

    got = with_layer(black(), "draw_text", "gate 7", 6, 8, 21, (1, 1, 1))
    mask = Image.new("L", (W, H))
    ImageDraw.Draw(mask).text((6, 8), "gate 7", 255, opened_font("test", None, 21))
    np.testing.assert_allclose(got, np.asarray(mask) / 255, atol=1e-6)


def test_text_in_many_places_is_drawn_in_each(device):
    drawing = Drawing()
    places = [(3, 2), (40, 2), (3, 40), (40, 41)]
    for number, (x, y) in enumerate(places):
        drawing.draw_text(f"{number}", x, y, 25)
    got = drawn(black(), drawing)
    for number, (x, y) in enumerate(places):
        made = rendered_text("draw_text", number, 25)
        top, left = y + made.top, x + made.left
        height, width = made.coverage.shape
        part = got[top : top + height, left : left + width]
        np.testing.assert_allclose(part, made.coverage / 255, atol=1e-6)


def test_a_background_fills_the_box_that_is_told(device):
    image = np.zeros((H, 150, 3), np.uint8)
    got = with_layer(image, "draw_text", "person", 10, 12, 20, "#00ff00", "#ff0000")
    width, height = text_size("person", 20, background=True)
    red = got[..., 0] > 0
    rows, columns = np.nonzero(red | (got[..., 1] > 0))
    assert (rows.min(), rows.max() + 1) == (12, 12 + height)
    assert (columns.min(), columns.max() + 1) == (10, 10 + width)
    assert (got[12, 10:20, 0] == 255).all()
    assert (got[..., 1] == 255).any()


def test_the_box_of_a_text_is_as_high_as_its_lines():
    margin = text_margin(20)
    width, height = text_size("acne", 20)
    assert text_size("acne", 20, background=True) == (width + 2 * margin, height + 2 * margin)
    assert text_size("bAgjl", 20)[1] == height
    assert text_size("acne\nacne", 20)[1] > 1.8 * height
    assert text_size("acneacne", 20)[0] > 1.8 * width


def test_text_lies_on_whole_pixels(device):
    near = with_layer(black(), "draw_text", "x", 10.4, 9.6, 30)
    np.testing.assert_array_equal(near, with_layer(black(), "draw_text", "x", 10, 10, 30))


def test_a_text_is_rendered_once():
    assert rendered_text("draw_text", "again", 17) is rendered_text("draw_text", "again", 17)


def test_text_without_pillow_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MediaError, match=r"draw_text needs the library Pillow.*pip install"):
        Drawing().draw_text("x", 0, 0)


def test_shapes_need_no_pillow(monkeypatch):
    for name in ("PIL", "PIL.Image", "PIL.ImageColor"):
        monkeypatch.setitem(sys.modules, name, None)
    assert with_layer(black(), "fill_rect", 0, 0, 5, 5, "#ffffff")[2, 2] == 1


# -- pictures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_picture_in_its_own_size_is_copied(device, channels):
    image, picture = paper(H, W, 3), paper(30, 40, 3)
    given = {1: picture[..., 0].copy(), 3: picture, 4: np.dstack([picture, np.full((30, 40), 255)])}
    got = with_layer(image, "draw_image", given[channels].astype(np.uint8), 60, -10)
    want = image.copy()
    want[:20, 60:] = picture[10:, :30, :1] if channels == 1 else picture[10:, :30]
    np.testing.assert_array_equal(got, want)


def test_a_picture_is_stretched_as_resize_does(device):
    picture = paper(9, 11, 3)
    got = with_layer(paper(H, W, 3), "draw_image", picture, 4, 5, 55, 45)
    output = compute.buffer_zeros((45, 55, 3), "u8")
    compute.run_kernel("resize", [compute.from_numpy(picture)], output, {"method": "bilinear"})
    assert np.abs(got[5:50, 4:59].astype(int) - compute.read(output)).max() <= 1


def test_a_picture_that_shrinks_keeps_its_mean(device):
    picture = np.tile(np.array([[0, 1], [1, 0]], np.float32), (100, 100))
    got = with_layer(black(), "draw_image", picture, 10, 10, 20, 20)
    np.testing.assert_allclose(got[10:30, 10:30], 0.5, atol=1e-4)


def test_a_picture_between_pixels_covers_them_in_part(device):
    got = with_layer(black(), "draw_image", np.ones((10, 10), np.float32), 20.5, 20.25)
    np.testing.assert_allclose(got[19:22, 25], [0, 0.75, 1], atol=1e-6)
    np.testing.assert_allclose(got[25, 19:22], [0, 0.5, 1], atol=1e-6)


def test_a_transparent_pictures_color_does_not_bleed(device):
    picture = np.zeros((2, 2, 4), np.float32)
    picture[:, 0] = 1, 0, 0, 1
    picture[:, 1] = 0, 1, 0, 0
    got = with_layer(np.zeros((H, W, 3), np.float32), "draw_image", picture, 0, 0, 60, 60, 0.5)
    np.testing.assert_allclose(got[30, 5], [0.5, 0, 0], atol=1e-6)
    assert not got[..., 1].any()
    assert 0 < got[30, 30, 0] < 0.5


# -- masks and labels ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_a_mask_of_the_images_size_mixes_by_its_values(device, dtype):
    image, mask = paper(H, W, 3), paper(H, W)
    given = mask if dtype is np.uint8 else (mask / 255).astype(np.float32)
    got = with_layer(image, "fill_mask", given, (1.0, 0.0, 0.5, 0.5))
    share = mask[..., None] / 255 * 0.5
    want = image + share * (np.array([255, 0, 127.5]) - image)
    assert np.abs(got - want).max() <= 0.51


def test_a_mask_is_stretched_over_the_image_or_a_rectangle(device):
    mask = np.array([[1.0, 0.0]], np.float32)
    whole = with_layer(black(), "fill_mask", mask, 1.0)
    np.testing.assert_allclose(whole[:, 22], 1, atol=1e-5)
    np.testing.assert_allclose(whole[:, 45], 0.5 - 1 / W, atol=1e-5)
    np.testing.assert_allclose(whole[:, 68:], 0, atol=1e-5)
    part = with_layer(black(), "fill_mask", mask, 1.0, 10, 20, 40, 30)
    np.testing.assert_allclose(part[20:50, 10:20], 1, atol=1e-5)
    part[20:50, 10:50] = 0
    assert not part.any()


def test_a_mask_on_the_device_is_used_there(device):
    mask = paper(H, W)
    got = with_layer(black(), "fill_mask", compute.from_numpy(mask), 1.0)
    np.testing.assert_allclose(got, mask / 255, atol=1e-6)


def test_labels_have_the_colors_of_a_palette(device):
    labels = np.array([[0, 1], [2, 200]], np.uint8)
    image = paper(40, 60, 3)
    got = with_layer(image, "fill_labels", labels, [None, "#ff0000", "#00ff00"])
    want = image.copy()
    want[:20, 30:] = 255, 0, 0
    want[20:, :30] = 0, 255, 0
    np.testing.assert_array_equal(got, want)


def test_layers_and_shapes_keep_their_order(device):
    drawing = Drawing()
    drawing.fill_rect(0, 0, 40, 40, 0.25)
    drawing.fill_mask(np.ones((2, 2), np.float32), 0.5, 10, 10, 20, 20)
    drawing.fill_rect(20, 20, 10, 10, 1.0)
    got = drawn(black(), drawing)
    np.testing.assert_allclose([got[5, 5], got[15, 15], got[25, 25]], [0.25, 0.5, 1], atol=1e-6)
