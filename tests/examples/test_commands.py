"""Each example that makes a picture, run once as a command."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

FOLDER = Path(__file__).parents[2] / "examples"
ARGUMENTS = {
    "canny": [],
    "clahe": ["--clip", "2"],
    "distance_transform": ["--size", "160", "100"],
    "integral_image": ["--focus", "0.4"],
    "k_means": ["--inks", "4"],
    "noise": ["--size", "80", "50"],
}
"""Those that take a picture paint one when they are given none."""
ANIMATIONS = {"game_of_life", "heat_equation", "mandelbrot_zoom", "waves"}
"""Those that tests/surfaces runs."""


def run(name, *arguments, monkeypatch):
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")


def test_every_example_is_run():
    assert {path.stem for path in FOLDER.glob("*.py")} == ARGUMENTS.keys() | ANIMATIONS


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_example_saves_a_picture(name, tmp_path, monkeypatch):
    saved = tmp_path / "picture.png"
    run(name, *ARGUMENTS[name], "--save", saved, monkeypatch=monkeypatch)
    with Image.open(saved) as opened:
        picture = np.array(opened)
    assert picture.ndim == 3
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 3


@pytest.mark.parametrize(
    "name", ["canny", "clahe", "distance_transform", "integral_image", "k_means"]
)
def test_an_example_takes_a_picture_with_alpha(name, tmp_path, monkeypatch):
    given, saved = tmp_path / "given.png", tmp_path / "picture.png"
    pixels = np.random.default_rng(1).integers(0, 256, (40, 60, 4), np.uint8)
    Image.fromarray(pixels).save(given)
    run(name, given, "--save", saved, monkeypatch=monkeypatch)
    with Image.open(saved) as picture:
        assert picture.width == 60
