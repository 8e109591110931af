"""Colours as they are given: one reader for kernels, filters, drawing, text and commands."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import ImageColor

from dala import gpu as screen
from dala.cli.filter_syntax import read_filter
from dala.errors import ArgumentError
from dala.images.drawing import Drawing
from dala.images.drawing_renderer import drawn
from dala.kernels.image.paint import color_of, names, paint_of
from dala.media import gpu
from dala.media.video.filtering.overlays import TextLayer


def test_the_names_are_the_148_of_css_and_transparent():
    known = {name: code for name, code in names().items() if name != "transparent"}
    assert len(known) == 148
    assert known == ImageColor.colormap
    assert paint_of("x", "color", "transparent") == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("given", "levels"),
    [
        ("DarkOrange", (255, 140, 0, 255)),
        ("#fa0", (255, 170, 0, 255)),
        ("#fa08", (255, 170, 0, 136)),
        ("#FF8000", (255, 128, 0, 255)),
        ("#ff800040", (255, 128, 0, 64)),
        (0.2, (51, 51, 51, 255)),
        (1, (255, 255, 255, 255)),
        ((0.2, 0.4, 0.6), (51, 102, 153, 255)),
        ([0.2, 0.4, 0.6, 0.8], (51, 102, 153, 204)),
        (np.array([0.2, 0.4, 0.6], np.float64), (51, 102, 153, 255)),
    ],
)
def test_every_form_is_red_green_blue_and_alpha(given, levels):
    assert paint_of("x", "color", given) == pytest.approx(np.array(levels) / 255)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("gren", "'gren' is no color: .* Did you mean 'green'\\?"),
        ("Yelow", "Did you mean 'yellow'\\?"),
        ("#12345", "a code such as '#ff8000'"),
        ("", "'' is no color"),
        ((0, 255, 0), "divide levels by 255, or give '#00ff00'"),
        ((0, 255, 0, 128), "divide levels by 255, or give '#00ff0080'"),
        ((0, 1), "a code, a gray, \\(r, g, b\\) or \\(r, g, b, a\\), not \\(0, 1\\)"),
        (None, "finite number from 0 to 1, not None"),
        (3, "finite number from 0 to 1, not 3"),
    ],
)
def test_what_is_no_colour_is_refused_with_what_is_meant(given, says):
    with pytest.raises(ArgumentError, match=f"^x: color .*{says}"):
        paint_of("x", "color", given)


def test_what_shows_through_is_refused_where_nothing_does():
    assert color_of("x", "color", "#00ff00ff") == (0, 1, 0)
    with pytest.raises(ArgumentError, match=r"^x: color '#0f08' is transparent, but here"):
        color_of("x", "color", "#0f08")


@pytest.mark.parametrize("name", ["seagreen", "SeaGreen", "#2e8b57"])
def test_a_colour_is_the_same_wherever_it_is_given(device, name):
    levels = (46, 139, 87)
    image = np.full((4, 6, 3), levels, np.uint8)
    assert not gpu.chroma_key(image, name, similarity=0.01, blend=0)[..., 3].any()
    assert (gpu.letterbox(image[:2], (6, 6), color=name)[0] == levels).all()
    typed = [read_filter(f"chroma_key:{name},similarity=0.01"), read_filter("invert")]
    assert not gpu.filter_chain(image, typed)[..., 3].any()
    assert read_filter(f"text:a,box={name}")[1]["box"] == pytest.approx(np.array(levels) / 255)

    drawing = Drawing()
    drawing.fill_rect(0, 0, 6, 4, name)
    assert (drawn(np.zeros_like(image), drawing) == levels).all()
    surface = screen.create_surface(6, 4, kind="offscreen")
    screen.clear(surface, name)
    assert (screen.get_pixels(surface)[..., :3] == levels).all()


def test_text_shows_through_as_far_as_its_colours_do(device):
    image = np.full((60, 200, 3), 100, np.uint8)

    def shown(color: str) -> np.ndarray:
        layer = TextLayer("IIII", size=40, color=color, outline=0, position="center")
        step = layer.step(0.0, image.shape)
        assert step is not None
        return gpu.apply_filter(image, "overlay", **{"layer": step.others[0].pixels, **step.params})

    whole, half = (shown(color).astype(int) for color in ("#ffffff", "#ffffff80"))
    assert whole.max() == 255
    assert half.max() == pytest.approx(100 + 155 * 128 / 255, abs=1)
    np.testing.assert_allclose(half - 100, (whole - 100) * 128 / 255, atol=1)
