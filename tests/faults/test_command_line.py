"""Fault 47: a command that cannot go on ends with its code, one line, and no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

DALA = [sys.executable, "-m", "dala"]
SOURCES = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize(
    "arguments",
    [
        ["process", "nowhere.mp4", "out.mp4"],
        ["process", "nowhere.png", "out.png", "-f", "blur"],
        ["run", "nowhere.toml", "a.png", "b.png"],
        ["kernel", "check", "nowhere.py"],
        ["batch", "nowhere/*.png", "--out", "out"],
        ["process", "a.png", "b.png", "-k", "nowhere.py"],
    ],
)
def test_47_a_missing_file_ends_with_1_and_one_line(arguments, capsys, tmp_path, monkeypatch):
    from dala.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("dala: ")
    assert "nowhere" in printed.err
    assert printed.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["filters", "filters blur", "demo", "--help", "kernels --json"])
def test_47_a_broken_pipe_ends_with_141_and_says_nothing(command):
    reading, writing = os.pipe()
    os.close(reading)  # as `head -n 1` does, sooner or later
    try:
        done = subprocess.run(
            [*DALA, *command.split()], stdout=writing, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(writing)
    assert done.returncode == 141
    assert done.stderr == b""


def write_long_clip(path: Path, frames: int) -> None:
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        image = np.zeros((48, 64, 3), np.uint8)
        for _ in range(frames):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


SLOWLY = """
import time
import dala.cli.progress as progress
progress.LINE_EVERY_S = 0.0
told = progress.Report.__call__
def slowly(self, step):
    told(self, step)
    time.sleep(0.1 if step.frames > {fast} else 0)
progress.Report.__call__ = slowly
from dala.cli import main
raise SystemExit(main({arguments!r}))
"""


def interrupted(folder: Path, arguments: list[str], frames: int) -> tuple[int, list[str]]:
    """The exit code, and the lines printed after Ctrl-C was typed once so many frames were made."""
    program = SLOWLY.format(fast=frames, arguments=arguments)
    running = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    assert running.stderr is not None
    lines: list[str] = []
    for line in running.stderr:
        lines.append(line)
        if f": {frames + 2} of " in line:
            break
    time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, rest = running.communicate(timeout=60)
    said = [line for line in rest.splitlines() if " frames, " not in line]
    return running.returncode, said


def test_47_ctrl_c_ends_with_130_one_line_and_no_half_file(tmp_path):
    write_long_clip(tmp_path / "clip.mp4", 60)
    code, said = interrupted(tmp_path, ["process", "clip.mp4", "out.mp4", "-f", "invert"], 3)
    assert code == 130, said
    assert said == ["dala: interrupted; nothing was written."]
    assert not (tmp_path / "out.mp4").exists()


def test_47_ctrl_c_says_how_to_resume_where_that_can_be(tmp_path):
    from dala.cli import main
    from dala.media.video.writing.segments import FRAMES_IN_SEGMENT

    frames = FRAMES_IN_SEGMENT + 40
    write_long_clip(tmp_path / "clip.mp4", frames)
    arguments = ["process", "clip.mp4", "out.mp4", "-f", "invert"]
    (tmp_path / "out.mp4").write_bytes(b"an older one")
    code, said = interrupted(tmp_path, [*arguments, "-y"], FRAMES_IN_SEGMENT + 2)
    assert code == 130, said
    kept = f"dala: interrupted; {FRAMES_IN_SEGMENT} frames are kept: "
    assert said == [kept + "the same command with --resume goes on after them."]
    assert (tmp_path / "out.mp4").read_bytes() == b"an older one"
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert main([*arguments, "--resume", "--quiet"]) == 0
    finally:
        os.chdir(here)
    assert (tmp_path / "out.mp4").read_bytes() != b"an older one"
    assert [item.name for item in tmp_path.iterdir() if item.name.startswith(".")] == []
