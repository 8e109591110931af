"""The examples that move: each makes 30 frames off-screen, and a picture worth looking at."""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dala.surfaces.surface import Surface

NAMES = ("game_of_life", "heat_equation", "mandelbrot_zoom", "water_waves", "waves")
EXAMPLES = [Path(__file__).parents[2] / "examples" / f"{name}.py" for name in NAMES]


def main_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_makes_thirty_frames_that_change(path, device, tmp_path, monkeypatch, capsys):
    presented = []
    present = Surface.present

    def watched(surface):
        present(surface)
        presented.append(surface.pixels())

    monkeypatch.setattr(Surface, "present", watched)
    saved = tmp_path / "last.png"
    monkeypatch.setattr(sys, "argv", [path.name, "--frames", "30", "--save", str(saved)])
    main_of(path)()

    assert "frames=30, dropped=0" in capsys.readouterr().out
    assert len(presented) == 30
    last = np.array(Image.open(saved))
    assert (last == presented[-1]).all()
    assert (last[..., 3] == 255).all()
    assert len(np.unique(last.reshape(-1, 4), axis=0)) > 30, "the picture is nearly blank"
    changed = [(a != b).any(axis=2).mean() for a, b in pairwise(presented)]
    assert min(changed) > 0.01, "pictures do not change"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_that_nobody_could_end_is_refused(path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [path.name, "--save", "out.png"])
    with pytest.raises(SystemExit):
        main_of(path)()
    assert "say how many --frames" in capsys.readouterr().err
