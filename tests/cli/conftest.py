"""What tests of the command line work on: a picture, a small clip, a folder to be in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dala import media
from dala.cli import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that commands run in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return tmp_path


@pytest.fixture
def picture(folder: Path) -> np.ndarray:
    """The pixels of photo.png, RGB."""
    pixels = np.random.default_rng(5).integers(0, 256, (30, 40, 3), np.uint8)
    media.save(pixels, folder / "photo.png")
    return pixels


@pytest.fixture
def clip(folder: Path) -> Path:
    """A clip of 64 × 48 and ten frames, each a little brighter than the one before."""
    import av

    path = folder / "clip.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(10):
            image = np.full((48, 64, 3), 60 + 10 * number, np.uint8)
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command: its exit code, standard output and standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(item) for item in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
def refused(told: Callable[..., tuple[int, str, str]]) -> Callable[..., str]:
    """Runs a command that fails: what the one line says."""

    def run(*arguments: str, code: int = 2) -> str:
        ended, out, err = told(*arguments)
        assert ended == code, err
        assert out == ""
        assert err.startswith("dala: ")
        assert err.count("\n") == 1
        assert "Traceback" not in err
        return err

    return run


@pytest.fixture
def answer(told: Callable[..., tuple[int, str, str]]) -> Callable[..., Any]:
    """Runs a command with --json: the object, and nothing else, on standard output."""

    def run(*arguments: str, code: int = 0) -> Any:
        ended, out, err = told(*arguments, "--json")
        assert ended == code, err
        assert out.count("\n") == 1
        return json.loads(out)

    return run
