"""What shells are told, so that they complete commands, options and filters."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

INSTALLED = {
    "bash": ".bash_completions/dala.sh",
    "zsh": ".zfunc/_dala",
    "fish": ".config/fish/completions/dala.fish",
}
BY_NAME = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
"""Has the shell be named, so that there need not be one around the command."""


def run(home: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dala", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(home), **variables},
    )


@pytest.mark.parametrize("shell", INSTALLED)
def test_show_completion_prints_a_script_and_ends_with_0(tmp_path, shell):
    done = run(tmp_path, "--show-completion", shell, **BY_NAME)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_DALA_COMPLETE" in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("shell", INSTALLED)
def test_install_completion_writes_the_script_and_ends_with_0(tmp_path, shell):
    shown = run(tmp_path, "--show-completion", shell, **BY_NAME).stdout
    done = run(tmp_path, "--install-completion", shell, **BY_NAME)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{shell} completion installed in {tmp_path}" in done.stdout
    assert (tmp_path / INSTALLED[shell]).read_text().strip() == shown.strip()


@pytest.mark.parametrize("shell", INSTALLED)
def test_the_shell_around_the_command_is_found(tmp_path, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    # With a second command after it, so that the shell stays and does not become the first.
    command = f'"{sys.executable}" -m dala --install-completion; echo "code $?"'
    if shell == "fish":
        command = command.replace("$?", "$status")
    done = subprocess.run(
        [shell, "-c", command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert "code 0" in done.stdout
    assert done.stderr == ""
    assert (tmp_path / INSTALLED[shell]).is_file()


def test_a_shell_that_is_not_known_is_refused_with_its_name(tmp_path):
    done = run(tmp_path, "--show-completion", "tcsh", **BY_NAME)
    assert done.returncode == 2
    assert done.stderr.startswith("dala: ")
    assert "tcsh" in done.stderr


def test_the_script_of_bash_has_filters_and_their_parameters_completed(tmp_path):
    run(tmp_path, "--install-completion", "bash", **BY_NAME)
    ask = """
        source ~/.bashrc
        COMP_WORDS=(dala process a.png b.png -f "$1") COMP_CWORD=5
        _dala_completion dala
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    # The script starts the command by its name, through env, so there is a file of that name.
    command = tmp_path / "dala"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dala "$@"\n')
    command.chmod(0o755)
    for word, expected in (("sep", "sepia"), ("flip:direction=v", "vertical")):
        done = subprocess.run(
            ["bash", "-c", ask, "bash", word],
            capture_output=True,
            text=True,
            check=True,
            env={
                **os.environ,
                "HOME": str(tmp_path),
                "PATH": f"{tmp_path}:{os.environ['PATH']}",
            },
        )
        assert done.stderr == ""
        assert expected in done.stdout
