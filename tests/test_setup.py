"""How ./dala and ./test set themselves up: what is installed, when, and what is shown of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PIP = """Obtaining file:///somewhere
Collecting numpy<3,>=2.0 (from dala-gpu==0.1.0)
  Downloading numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl (16.6 MB)
  Using cached rich-15.0.0-py3-none-any.whl (243 kB)
Processing /somewhere/llvmlite-0.50.0-cp311-cp311-manylinux_2_28_x86_64.whl (from dala-gpu==0.1.0)
Installing collected packages: numpy, rich, llvmlite, dala-gpu
Successfully installed numpy-2.4.6"""
PYTHON = f"""#!/bin/sh
# Stands for the Python of .venv: notes what pip is told, and installs nothing.
case "$*" in
    *"-m pip install"*) echo "$*" >>"$NOTES"; cat <<'END'
{PIP}
END
    exit "${{PIP_ENDS:-0}}" ;;
    *"-m dala"*) echo "dala was run" ;;
esac
"""


@pytest.fixture
def clone(tmp_path):
    """A clone, in a folder with a space in its name, whose .venv is there but has nothing in it."""
    folder = tmp_path / "my clone"
    (folder / ".ci").mkdir(parents=True)
    (folder / ".venv" / "bin").mkdir(parents=True)
    for name in ("dala", ".ci/setup", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    python = folder / ".venv" / "bin" / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    return folder


def run(clone: Path, *arguments: str, code: int = 0, **variables: str) -> tuple[list[str], str]:
    """What pip was told to install, and what was shown on standard error."""
    notes = clone.parent / "notes"
    notes.unlink(missing_ok=True)
    done = subprocess.run(
        [clone / "dala", *arguments],
        cwd=clone,
        env={**os.environ, "NOTES": str(notes), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert done.stdout == ("" if code else "dala was run\n")
    told = notes.read_text().splitlines() if notes.exists() else []
    return [line.partition("--editable ")[2] for line in told], done.stderr


def test_a_command_has_what_commands_take_and_shows_how_far_it_is(clone):
    told, said = run(clone, "demo")
    assert told == [".[gpu,media]"]
    lines = said.splitlines()
    assert lines[0] == "dala: setting up .venv for command (once)"
    assert lines[1:5] == [
        "dala:   numpy 16.6 MB",
        "dala:   rich 243 kB",
        "dala:   llvmlite",
        "dala:   installing 4 packages",
    ]
    assert lines[5].startswith("dala: .venv has ")


def test_what_is_there_is_not_installed_again(clone):
    run(clone, "demo")
    assert run(clone, "process", "a.png", "b.png", "-f", "blur:3") == ([], "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "mobilenet_v2", "a.jpg"],
        ["models", "list"],
        ["process", "a.png", "b.png", "-f", "detect:model=yolo_v5"],
        ["batch", "a", "--out", "b", "-f", "background_blur:radius=12"],
        ["run", "look.toml", "a.png", "b.png"],
    ],
)
def test_what_runs_models_is_installed_when_it_is_first_used(clone, arguments):
    run(clone, "demo")
    (clone / "look.toml").write_text('[[filters]]\nname = "detect"\n')
    assert run(clone, *arguments)[0] == [".[gpu,media,ml]"]
    assert run(clone, *arguments)[0] == []
    assert run(clone, "demo")[0] == []


def test_a_list_of_other_filters_takes_no_models(clone):
    run(clone, "demo")
    (clone / "look.toml").write_text('[[filters]]\nname = "blur"\n')
    assert run(clone, "run", "look.toml", "a.png", "b.png")[0] == []


def test_benchmarks_have_their_peers(clone):
    assert run(clone, "bench", "videos")[0] == [".[dev]"]
    assert run(clone, "predict", "mobilenet_v2", "a.jpg")[0] == []
    assert run(clone, "demo")[0] == []


def test_a_changed_project_is_installed_anew_as_far_as_it_was(clone):
    run(clone, "bench")
    with (clone / "pyproject.toml").open("a") as file:
        file.write("\n# changed\n")
    assert run(clone, "demo")[0] == [".[dev]"]
    assert run(clone, "demo")[0] == []


def test_what_fails_is_said_and_tried_again(clone):
    told, said = run(clone, "demo", code=1, PIP_ENDS="1")
    assert told == [".[gpu,media]"]
    assert said.endswith("dala: could not install the dependencies; pip says why above\n")
    assert run(clone, "demo")[0] == [".[gpu,media]"]
