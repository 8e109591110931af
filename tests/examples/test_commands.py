"""Each example that makes a picture, run once as a command."""

import runpy
import sys
import wave
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

FOLDER = Path(__file__).parents[2] / "examples"
ARGUMENTS = {
    "canny": [],
    "clahe": ["--clip", "2"],
    "distance_transform": ["--size", "160", "100"],
    "fft_convolution": ["--radius", "5", "--size", "120", "90"],
    "integral_image": ["--focus", "0.4"],
    "k_means": ["--inks", "4"],
    "lucas_kanade": [],
    "n_body": ["--stars", "100", "--steps", "20", "--size", "160", "100"],
    "noise": ["--size", "80", "50"],
    "ray_marching": ["--size", "64", "40"],
    "spectrogram": ["--seconds", "0.3"],
}
"""Those that take a picture paint one when they are given none."""
ANIMATIONS = {"game_of_life", "heat_equation", "mandelbrot_zoom", "water_waves", "waves"}
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


def test_flow_is_of_two_pictures(tmp_path, monkeypatch, capsys):
    saved, paths = tmp_path / "flow.png", [tmp_path / "before.png", tmp_path / "after.png"]
    pixels = np.random.default_rng(1).integers(0, 256, (30, 40, 3), np.uint8)
    for path, shift in zip(paths, (0, 1), strict=True):
        Image.fromarray(np.roll(pixels, shift, axis=1)).save(path)
    run("lucas_kanade", *paths, "--save", saved, monkeypatch=monkeypatch)
    with Image.open(saved) as picture:
        assert picture.size == (40, 30)
    with pytest.raises(SystemExit):
        run("lucas_kanade", paths[0], monkeypatch=monkeypatch)
    assert "two pictures are needed, not 1" in capsys.readouterr().err


def test_a_spectrogram_is_made_of_a_file(tmp_path, monkeypatch):
    sound, saved = tmp_path / "sound.wav", tmp_path / "sound.png"
    with wave.open(str(sound), "wb") as file:
        file.setparams((2, 2, 8000, 0, "NONE", None))
        file.writeframes((8000 * np.sin(np.arange(20_000))).astype("<i2").repeat(2).tobytes())
    run("spectrogram", sound, "--seconds", "2", "--save", saved, monkeypatch=monkeypatch)
    with Image.open(saved) as picture:
        assert picture.width == (16_000 - 4096) // 300


@pytest.mark.parametrize(
    "name",
    ["canny", "clahe", "distance_transform", "fft_convolution", "integral_image", "k_means"],
)
def test_an_example_takes_a_picture_with_alpha(name, tmp_path, monkeypatch):
    given, saved = tmp_path / "given.png", tmp_path / "picture.png"
    pixels = np.random.default_rng(1).integers(0, 256, (40, 60, 4), np.uint8)
    Image.fromarray(pixels).save(given)
    run(name, given, "--save", saved, monkeypatch=monkeypatch)
    with Image.open(saved) as picture:
        assert picture.width == 60
