"""Fault 29: entries of the disk cache that are damaged, or somebody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from dala.gpu import compute
from dala.devices.cpu.compiler import Compiler
compiled = []
original = Compiler._object
Compiler._object = lambda self, *rest: compiled.append(1) or original(self, *rest)
kernel = compute.Kernel.register("k", "def k(x): return x * 3.0 + 1.0")
x, out = compute.buffer([1.0, 2.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")
compute.run_kernel(kernel, [x], out)
assert compute.read_list(out) == [4.0, 7.0]
print(len(compiled))
"""


def compiled(cache: str) -> int:
    """How many modules a fresh process compiles."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"DALA_CACHE_DIR": cache, "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


DAMAGE = {
    "emptied": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "altered": lambda data: data[:-100] + bytes([data[-100] ^ 1]) + data[-99:],
    "another magic": lambda data: b"D" + data[1:],
    "a pickle": lambda data: b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00}\x94.",
    "longer": lambda data: data + b"\x00",
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("objects")
    assert compiled(str(folder)) == 2  # the driver of the strips, and the kernel
    assert compiled(str(folder)) == 0
    return folder


@pytest.mark.parametrize("damage", DAMAGE)
def test_29_a_damaged_entry_is_recompiled(cache, damage):
    for entry in cache.glob("*.o"):
        entry.write_bytes(DAMAGE[damage](entry.read_bytes()))
    assert compiled(str(cache)) == 2
    assert compiled(str(cache)) == 0


def test_29_an_entry_made_for_another_key_is_recompiled(cache):
    first, second = sorted(cache.glob("*.o"))
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)
    assert compiled(str(cache)) == 2


@pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give files away"
)
def test_29_an_entry_of_another_user_is_recompiled(cache):
    compiled(str(cache))
    for entry in cache.glob("*.o"):
        os.chown(entry, 12345, 12345)
    assert compiled(str(cache)) == 2


def test_29_a_folder_that_cannot_be_written_is_no_hindrance(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert compiled(str(blocked)) == 2


def test_29_the_cache_can_be_turned_off():
    assert compiled("off") == 2
