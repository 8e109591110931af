"""Kernels that stand in no file: given with `-c`, or typed at Python's prompt."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time

import pytest

MADE = "import dala\n@dala.kernel\ndef k(x):\n    return (x *\n        2.0\n    )\nprint(k)"
RUN_BY_EXEC = "import dala\nexec('def k(x): return x')\ndala.kernel(k)"


@pytest.mark.parametrize(
    "options", [["-c", MADE], ["-Bc", MADE], ["-c" + MADE], ["-B", "-c", MADE]]
)
def test_a_kernel_given_with_c_has_its_source(options):
    printed = subprocess.check_output([sys.executable, *options], text=True)
    assert printed == "<Kernel k(x)>\n"


def test_a_function_made_by_exec_is_not_taken_for_the_text_of_c():
    ended = subprocess.run(
        [sys.executable, "-c", RUN_BY_EXEC], capture_output=True, text=True, check=False
    )
    assert "KernelSourceError: the source of kernel 'k' cannot be had" in ended.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
def test_kernels_typed_at_the_prompt_have_their_source(tmp_path):
    typed = [
        "import dala",
        "@dala.kernel",
        "def k(x):",
        "    y = x * 2.0",
        "    return (y +",
        "        1.0)",
        "",
        "def m(x):",
        "    return x - 3.0",
        "",
        "def m(x):",
        "    return x - 4.0",
        "",
        "print(k, dala.kernel(m).definition.source.lines)",
        "exit()",
    ]
    shown = _at_the_prompt(typed, {**os.environ, "HOME": str(tmp_path), "PYTHON_BASIC_REPL": "1"})
    assert "<Kernel k(x)> ['def m(x):', '    return x - 4.0']" in shown


def _at_the_prompt(lines: list[str], environment: dict[str, str]) -> str:
    """What a terminal shows when the lines are typed into Python, each after a prompt."""
    import pty

    here, there = pty.openpty()
    python = subprocess.Popen(
        [sys.executable, "-q"], stdin=there, stdout=there, stderr=there, env=environment
    )
    os.close(there)
    shown = b""
    try:
        for line in lines:
            shown += _until_prompt(here)
            os.write(here, line.encode() + b"\n")
        return (shown + _until_prompt(here)).decode()
    finally:
        python.wait(timeout=30)
        os.close(here)


def _until_prompt(terminal: int) -> bytes:
    """All that is shown up to the next prompt, or to the end."""
    shown = b""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not shown.endswith((b">>> ", b"... ")):
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                more = os.read(terminal, 65536)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            shown += more
    return shown
