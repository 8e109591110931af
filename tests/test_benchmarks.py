"""The benchmarks where peers are not installed: rows say so, and the rest is measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WITHOUT = """
import sys
sys.modules.update(dict.fromkeys({modules!r}))
sys.argv[1:] = {arguments!r}
from benchmarks.__main__ import main
main()
"""


def bench(*arguments: str, without: list[str] | None = None, **variables: str) -> str:
    program = WITHOUT.format(modules=without or [], arguments=[*arguments, "--quick"])
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_a_program_that_is_not_installed_is_a_row_that_says_so():
    lines = bench("video", "video-plain", PATH="/nowhere").splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["video", "video-plain"]
    for line in lines:
        assert "not measured: ffmpeg is not installed: apt install ffmpeg" in line


@pytest.mark.parametrize("rows", [["filters"], ["video-loop"], ["pipeline", "mobilenet"]])
def test_a_library_that_is_not_installed_is_a_row_that_says_so(rows):
    lines = bench(*rows, without=["cv2"]).splitlines()[1:]
    assert lines
    for line in lines:
        assert "not measured: OpenCV is not installed: " in line
        assert "pip install opencv-python-headless" in line


def test_what_a_row_of_models_needs_is_said():
    said = bench("mobilenet", "load-model", without=["onnxruntime"])
    assert said.count("not measured: ONNX Runtime is not installed") == 2


@pytest.mark.slow
def test_rows_that_need_nothing_are_measured_beside_those_that_do():
    found = json.loads(bench("pipeline", "submit", "--json", without=["cv2"]))
    assert "missing" in found["pipeline"]
    assert found["submit"]["ours_s"] > 0


def test_a_mistake_of_a_row_is_still_an_error():
    program = (
        "from benchmarks.peers import measured\n"
        "def make(): import dala.no_such_module\n"
        "measured('x', make, 1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "no_such_module" in done.stderr
