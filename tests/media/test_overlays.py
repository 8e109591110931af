"""Text and pictures over frames: where, when and how they are seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dala import errors, media
from dala.devices import current_device
from dala.gpu import compute
from dala.images import text_rendering
from dala.images.frames import frame_of
from dala.media.filters.chain import Chains
from dala.media.video.filtering.overlays import ImageLayer, TextLayer
from dala.media.video.filtering.placement import POSITIONS

H, W = 60, 100


def background(channels=3, dtype=np.uint8):
    shape = (H, W) if channels == 1 else (H, W, channels)
    levels = np.random.default_rng(channels).integers(60, 180, shape, dtype=np.uint8)
    if channels == 4:
        levels[..., 3] = 255
    return levels if dtype is np.uint8 else (levels / 255).astype(dtype)


def shown(image, layer, time_s=0.0):
    step = layer.step(time_s, image.shape)
    return image if step is None else Chains().run(frame_of("image", image), [step], None)


def box_of(changed):
    """Where an image has changed: first and last row, first and last column."""
    rows, columns = np.nonzero(changed)
    return rows.min(), rows.max(), columns.min(), columns.max()


MARK = np.full((10, 20, 4), 255, np.uint8)
MARK[..., :3] = (255, 0, 40)


# -- pictures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("position", POSITIONS)
def test_a_named_place_keeps_its_margin(position):
    image = background()
    got = shown(image, ImageLayer(MARK, position=position, margin=3))
    top, bottom, left, right = box_of((got != image).any(-1))
    rows = (3, 12) if "top" in position else (47, 56) if "bottom" in position else (25, 34)
    columns = (3, 22) if "left" in position else (77, 96) if "right" in position else (40, 59)
    assert ((top, bottom), (left, right)) == (rows, columns)


def test_the_margin_goes_with_the_height_unless_it_is_given():
    step = ImageLayer(MARK, position="top_left").step(0.0, (300, 400, 3))
    assert (step.params["x"], step.params["y"]) == (10, 10)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_picture_is_mixed_in_by_alpha_and_opacity(device, channels, dtype):
    image = background(channels, dtype)
    mark = MARK.copy()
    mark[:, 10:, 3] = 100
    got = shown(image, ImageLayer(mark, position=(95, -4), opacity=0.5)).astype(float)
    unit = 255 if dtype is np.uint8 else 1
    want = image.astype(float) / unit
    light = np.array([0.299, 0.587, 0.114]) @ (mark[0, 0, :3] / 255)
    color = light if channels == 1 else mark[0, 0, :3] / 255
    part = want[:6, 95:] if channels != 4 else want[:6, 95:, :3]
    part += 0.5 * (color - part)
    np.testing.assert_allclose(got / unit, want, atol=0.51 / 255)


def test_a_picture_is_scaled_once(device):
    layer = ImageLayer(MARK, scale=0.5, position="top-left")
    first, second = (layer.step(time_s, (H, W, 3)).others[0].pixels for time_s in (0.0, 1.0))
    assert first is second
    assert first.shape == (5, 10, 4)
    assert first.memory.device is current_device()
    np.testing.assert_array_equal(np.asarray(first), MARK[:5, :10])


def test_each_device_has_a_layer_of_its_own(webgpu):
    layer = ImageLayer(compute.from_numpy(MARK))
    there = layer.step(0.0, (H, W, 3)).others[0].pixels
    with compute.device("cpu"):
        here = layer.step(0.0, (H, W, 3)).others[0].pixels
    assert (there.device, here.device) == (webgpu, "cpu")


def test_pictures_come_from_files_arrays_and_pillow(tmp_path):
    path = tmp_path / "mark.png"
    media.save(MARK, path)
    image = background()
    want = shown(image, ImageLayer(MARK))
    for source in (path, str(path), Image.fromarray(MARK)):
        np.testing.assert_array_equal(shown(image, ImageLayer(source)), want)


def test_what_happens_to_the_array_afterwards_does_not_matter():
    mark = MARK.copy()
    layer = ImageLayer(mark)
    mark[:] = 0
    np.testing.assert_array_equal(shown(background(), layer), shown(background(), ImageLayer(MARK)))


# -- time ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [lambda **k: ImageLayer(MARK, **k), lambda **k: TextLayer("x", **k)]
)
def test_a_layer_is_there_from_its_start_until_before_its_end(make):
    layer = make(start=1.0, end=2.5)
    seen = [layer.step(time_s, (H, W, 3)) is not None for time_s in (0.0, 0.999, 1.0, 2.4, 2.5, 9)]
    assert seen == [False, False, True, True, False, False]
    assert make().step(1e9, (H, W, 3)) is not None
    assert make(opacity=0).step(0.0, (H, W, 3)) is None


# -- text ------------------------------------------------------------------------------------------


def text(*given, **params):
    """The layer of a text: its colors, and its alpha, both in 0..1."""
    layer = TextLayer(*given, **params).step(0.0, (H, W, 3)).others[0].pixels
    pixels = np.asarray(layer) / 255
    return pixels[..., :3], pixels[..., 3]


def test_text_has_the_color_that_was_asked_for_up_to_its_edges():
    colors, alpha = text("Hi", size=30, color=(1, 0.5, 0), outline=0)
    assert alpha.max() == 1
    assert ((alpha > 0.1) & (alpha < 0.9)).any()
    np.testing.assert_allclose(colors[alpha > 0], [[1, 0.5, 0]] * (alpha > 0).sum(), atol=0.003)


def test_text_is_cut_to_what_is_seen_of_it():
    _, alpha = text("Hi", size=30, outline=0)
    assert all(side.any() for side in (alpha[0], alpha[-1], alpha[:, :4], alpha[:, -4:]))
    assert 18 <= alpha.shape[0] <= 30


def test_an_outline_lies_around_the_letters_and_below_them():
    _, letters = text("I", size=40, outline=0)
    colors, alpha = text("I", size=40, outline=4, outline_color="red")
    assert alpha.shape == (letters.shape[0] + 8, letters.shape[1] + 8)
    inside = np.pad(letters, 4) == 1
    np.testing.assert_array_equal(colors[inside], np.ones((inside.sum(), 3)))
    outside = (alpha == 1) & (np.pad(letters, 4) == 0)
    assert outside.any()
    np.testing.assert_array_equal(colors[outside], [[1, 0, 0]] * outside.sum())


def test_a_box_lies_below_all_of_it_and_replaces_the_outline():
    colors, alpha = text("I", size=30, box="#0000ff", box_opacity=0.6)
    assert alpha.min() == pytest.approx(0.6)
    assert alpha.max() == 1
    np.testing.assert_array_equal(colors[0, 0], [0, 0, 1])
    assert (colors[alpha == 1] == 1).all()


def test_letters_are_a_twentieth_of_the_frame_unless_a_size_is_given():
    layer = TextLayer("Hg", outline=0)
    small, large = (layer.step(0.0, (h, 500, 3)).others[0].shape for h in (400, 800))
    assert large[0] == pytest.approx(2 * small[0], abs=3)
    again = layer.step(0.0, (400, 300, 4)).others[0]
    assert again.pixels is layer.step(5.0, (400, 500, 3)).others[0].pixels


def test_lines_lie_below_each_other_on_the_side_of_the_place():
    left, right = (text("iiiiiiii\ni", size=20, position=side)[1] for side in ("left", "right"))
    below = slice(left.shape[0] * 3 // 4, None)
    assert left[below, :5].any()
    assert not left[below, -5:].any()
    assert right[below, -5:].any()
    assert not right[below, :5].any()


def test_text_is_seen_on_black_and_on_white(device):
    for level in (0, 255):
        image = np.full((H, W, 3), level, np.uint8)
        got = shown(image, TextLayer("Text", size=24))
        assert (got != image).any(-1).sum() > 100


def test_the_font_of_a_file_is_used(tmp_path):
    font = tmp_path / "mine.ttf"
    font.write_bytes(
        (Path(text_rendering.__file__).parent / "fonts" / "DejaVuSans.ttf").read_bytes()
    )
    _, own = text("Äß", size=20, font=font)
    _, usual = text("Äß", size=20)
    assert own.any()
    np.testing.assert_array_equal(own, usual)


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"position": "middle"}, "position 'middle' is not known: give .* top-left, top, .*"),
        ({"position": (1.5, 2)}, "position is an integer, not 1.5"),
        ({"margin": -1}, "margin is 0 to 1048576 pixels, not -1"),
        ({"opacity": 2}, "opacity is a finite number from 0 to 1, not 2"),
        ({"start": 2, "end": 2}, "it ends at 2 s, but begins at 2 s"),
        ({"start": None}, "start is a finite number, not None"),
    ],
)
@pytest.mark.parametrize("kind", [ImageLayer, TextLayer])
def test_wrong_places_and_times_are_refused(kind, params, told):
    with pytest.raises(errors.ArgumentError, match=told):
        kind(MARK if kind is ImageLayer else "x", **params)


@pytest.mark.parametrize(
    ("error", "params", "told"),
    [
        (errors.ArgumentError, {"text": ""}, "text is what to show, not ''"),
        (errors.ArgumentError, {"text": None}, "text is what to show, not None"),
        (errors.LimitError, {"text": "x" * 3000}, "3,000 characters are more than the 2,000"),
        (
            errors.ArgumentError,
            {"text": "aЖ日"},
            r"the built-in .* has no 日 \(U\+65E5\): give font=",
        ),
        (
            errors.ArgumentError,
            {"text": "日本語中文字体測試"},
            r"has no 中 \(.* and 1 more: give font=",
        ),
        (errors.ArgumentError, {"size": 3}, "size is 4 to 1000 pixels, not 3"),
        (errors.ArgumentError, {"outline": -1}, "outline is 0 to 1000 pixels, not -1"),
        (errors.ArgumentError, {"color": "whitish"}, "color 'whitish' is no color: give a name"),
        (errors.ArgumentError, {"color": (1, 2)}, "color is a color's name, a code, a gray"),
        (errors.ArgumentError, {"box": 3}, "box is a finite number from 0 to 1, not 3"),
        (errors.ArgumentError, {"font": 7}, "font is the path of a font's file, not 7"),
        (errors.FileError, {"font": "no.ttf"}, "there is no font no.ttf"),
        (errors.MediaError, {"font": __file__}, "is no font: "),
    ],
)
def test_wrong_text_is_refused_before_any_frame(error, params, told):
    with pytest.raises(error, match=told):
        TextLayer(**{"text": "x", **params})


@pytest.mark.parametrize(
    ("error", "params", "told"),
    [
        (errors.ArgumentError, {"scale": 0}, "scale is a finite number above 0, not 0"),
        (errors.LimitError, {"scale": 1e6}, "is more than 67,108,864 pixels: make it smaller"),
        (errors.FileError, {"source": "no.png"}, "no.png"),
        (errors.ArgumentError, {"source": 5}, "an image is an array"),
        (errors.ArgumentError, {"source": MARK[:0]}, "a picture of 20 × 0 has no pixels"),
    ],
)
def test_wrong_pictures_are_refused_before_any_frame(error, params, told):
    with pytest.raises(error, match=told):
        ImageLayer(**{"source": MARK, **params})


def test_text_too_large_for_memory_is_refused():
    layer = TextLayer("W" * 2000, size=1000)
    with pytest.raises(errors.LimitError, match="is more than 67,108,864 pixels"):
        layer.step(0.0, (H, W, 3))
