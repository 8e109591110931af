"""Commands as a user types them: help, usage, lists, and how they end."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

import dala
from dala import demo, media
from dala.cli import main
from dala.cli.app import app
from dala.cli.filter_syntax import known_filters, read_filter
from dala.gpu import compute
from dala.media.filters.catalog import FILTERS
from dala.media.pictures import files

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"
COMMANDS = sorted(get_command(app).commands)


def test_the_demo_shows_a_result_a_picture_a_video_and_the_device(device, capsys, tmp_path):
    assert main(["demo", str(tmp_path / "made")]) == 0
    printed = capsys.readouterr().out
    assert compute.device_info()["name"] in printed
    assert "[5.0, 7.0, 9.0]" in printed
    picture = [line for line in printed.splitlines() if line.startswith("    ")][:20]
    assert picture[0].rstrip() == picture[-1].rstrip() != picture[10].rstrip()
    assert "@@@" in picture[10]
    assert float(printed.split("largest difference from NumPy ")[1].split()[0]) <= 1e-6
    assert "90 frames of 640 × 360" in printed
    with media.open(tmp_path / "made" / "out.mp4") as video:
        assert [item.kind for item in video.info.streams] == ["video", "audio"]


def test_the_demo_says_what_video_needs_where_it_is_not_there(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    assert main(["demo", str(tmp_path / "made")]) == 0
    assert 'pip install "dala-gpu[media]"' in capsys.readouterr().out
    assert not (tmp_path / "made").exists()


def test_devices_are_listed_and_the_default_one_is_marked(device, told, answer):
    code, out, _ = told("devices")
    lines = out.splitlines()
    assert code == 0
    assert len(lines) == len(compute.devices())
    assert [line.split()[1] for line in lines if line.startswith("*")] == [device]
    assert answer("devices")["default"] == device


def test_a_device_that_is_not_there_ends_with_1(refused, picture):
    assert "abacus" in refused("demo", "--device", "abacus", code=1)
    assert "cpu (" in refused("process", "photo.png", "out.png", "--device", "abacus", code=1)


def test_a_default_device_that_is_not_there_ends_with_1():
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


def test_kernels_are_listed_a_line_each(told, answer):
    code, out, _ = told("kernels")
    assert code == 0
    assert "scale(x, factor: number)\n    x · factor\n" in out
    assert out.count("\n") == 2 * len(compute.Kernel.list())
    assert sorted(answer("kernels")) == compute.Kernel.list()


def test_the_version_is_told(told):
    assert told("--version") == (0, f"dala {dala.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "missing command. See dala --help."),
        (["proces"], "Did you mean 'process'?"),
        (["demo", "a", "twice"], "(twice). See dala demo --help."),
        (["process", "a.png"], "missing argument 'TARGET'. See dala process --help."),
        (["process", "a.png", "b.png", "--qualty", "3"], "Did you mean --quality or --quiet?"),
        (["process", "a.png", "b.png", "--quality", "high"], "'--quality'"),
        (["kernel"], "See dala kernel --help."),
        (["batch", "a.png"], "'--out'"),
    ],
)
def test_wrong_usage_is_one_line_and_ends_with_2(refused, arguments, said):
    assert said in refused(*arguments)


def test_a_failure_with_json_is_an_object_too(told):
    code, out, err = told("process", "nowhere.png", "out.png", "--json")
    assert code == 1
    assert json.loads(out) == {"ok": False, "error": err[6:-1], "exit_code": 1}


def test_a_mistake_of_dala_itself_is_one_line(refused, monkeypatch):
    monkeypatch.setattr(compute, "device_info", lambda: 1 / 0)
    said = refused("devices", code=1)
    assert "ZeroDivisionError" in said
    assert "DALA_DEBUG=1" in said


def test_debugging_shows_where_an_error_came_from(told, monkeypatch):
    monkeypatch.setenv("DALA_DEBUG", "1")
    code, _, err = told("process", "nowhere.png", "out.png")
    assert code == 1
    assert err.startswith("Traceback")
    assert err.endswith("dala: nowhere.png is not there.\n")


@pytest.mark.parametrize("command", [*COMMANDS, "kernel check"])
def test_help_fits_into_80_columns(told, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    if command == "bench":  # whose options are its own
        return
    code, out, _ = told(*command.split(), "--help")
    assert code == 0
    assert f"Usage: dala {command}" in out
    assert max(map(len, out.splitlines())) <= 80


def test_every_command_is_on_the_page_and_every_one_of_the_page_exists():
    text = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"^(?:\$ )?dala ([a-z]+)", text, re.M)) | set(
        re.findall(r"`dala ([a-z]+)", text)
    )
    assert named == set(COMMANDS)


def test_every_option_of_the_page_exists():
    text = PAGE.read_text(encoding="utf-8")
    group = get_command(app)
    groups = ("kernel", "models")
    nested = [item for name in groups for item in group.commands[name].commands.values()]
    everything = [*group.commands.values(), *nested]
    known = {name for command in everything for item in command.params for name in item.opts}
    known |= {"--help", "--version", "--install-completion", "--show-completion"}
    assert set(re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*", text)) <= known


def test_filters_are_listed_by_name(told, answer):
    code, out, _ = told("filters")
    assert code == 0
    for name in FILTERS:
        assert re.search(rf"^{name}\(", out, re.M), name
    assert set(FILTERS) <= set(answer("filters"))


def test_one_filter_is_shown_with_its_ranges(told):
    code, out, _ = told("filters", "blend")
    assert code == 0
    assert "layer  a picture's file; needed" in out
    assert "alpha  how opaque the layer is: a number, 0 to 1; default 0.5" in out
    assert "-f blend:layer=picture.png" in out


@pytest.mark.parametrize(
    ("name", "radius", "sigma"), [("blur", "3", "1.5"), ("background_blur", "15", "7.5")]
)
def test_a_blur_tells_how_radius_and_sigma_follow_from_each_other(
    told, answer, name, radius, sigma
):
    _, out, _ = told("filters", name)
    said = " ".join(out.split())
    assert f"0 to 100; default {radius}; 3 · sigma, rounded up, where only sigma" in said
    assert f"0.1 to 50; default {sigma}; radius / 2, at least 0.5, where only the radius" in said
    params = answer("filters", name)["params"]
    assert (params["radius"]["default"], params["sigma"]["default"]) == (int(radius), float(sigma))


@pytest.mark.parametrize("name", known_filters())
def test_the_example_of_each_filter_is_one_that_is_read(told, name, monkeypatch):
    monkeypatch.setattr(files, "load", lambda path, **_: path)
    _, out, _ = told("filters", name)
    typed = out.rstrip().splitlines()[-1].split(" -f ")[1]
    assert read_filter(typed)[0] == name


def test_an_unknown_filter_is_refused_with_a_hint(refused):
    assert "Did you mean 'blur'?" in refused("filters", "blurr")


def test_the_command_line_is_loaded_only_when_it_is_used():
    program = "import sys, dala.gpu.compute, dala.media; print({'typer', 'rich'} & {*sys.modules})"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "set()\n"


def test_help_needs_no_arrays():
    program = (
        "import sys; from dala.cli import main; main(['--version']); print('numpy' in sys.modules)"
    )
    printed = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert printed.splitlines()[-1] == "False"


def test_a_shell_completes_filters_after_f():
    done = subprocess.run(
        [sys.executable, "-m", "dala"],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "_DALA_COMPLETE": "complete_bash",
            "COMP_WORDS": "dala process a b -f bl",
            "COMP_CWORD": "5",
        },
    )
    assert done.stdout.split() == ["blur", "blend"]
