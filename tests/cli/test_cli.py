"""The command line, as a user types it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import dala
from dala.cli import main
from dala.gpu import compute


def test_the_demo_shows_a_result_a_picture_and_the_device(device, capsys):
    assert main(["demo"]) == 0
    printed = capsys.readouterr().out
    assert compute.device_info()["name"] in printed
    assert "[5.0, 7.0, 9.0]" in printed
    picture = [line for line in printed.splitlines() if line.startswith("    ")]
    assert len(picture) == 20
    assert picture[0].rstrip() == picture[-1].rstrip() != picture[10].rstrip()
    assert "@@@" in picture[10]
    assert float(printed.split("largest difference from NumPy ")[1]) <= 1e-6


def test_devices_are_listed_and_the_default_one_is_marked(device, capsys):
    assert main(["devices"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(compute.devices())
    assert [line.split()[1] for line in lines if line.startswith("*")] == [device]


def test_a_device_that_is_not_there_ends_with_1_and_one_line():
    done = subprocess.run(
        [sys.executable, "-m", "dala", "demo"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "DALA_DEVICE": "abacus"},
    )
    assert done.returncode == 1
    assert done.stderr.startswith("dala: ")
    assert "abacus" in done.stderr
    assert done.stderr.count("\n") == 1


def test_kernels_are_listed_a_line_each(capsys):
    assert main(["kernels"]) == 0
    printed = capsys.readouterr().out
    assert "scale(x, factor: number)\n    x · factor\n" in printed
    assert printed.count("\n") == 2 * len(compute.Kernel.list())


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"dala {dala.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["teleport"], ["demo", "twice"]])
def test_wrong_usage_ends_with_2(arguments, capsys):
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    printed = capsys.readouterr()
    assert "usage: dala" in printed.out + printed.err


def test_a_broken_pipe_ends_with_141_and_no_traceback():
    program = f"{sys.executable} -m dala demo | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.count("\n") == 1
    assert done.returncode == 141
    assert "Traceback" not in done.stderr
