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


def ran(cache: str) -> subprocess.CompletedProcess[str]:
    """A fresh process that compiles two modules, unless it finds them."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "DALA_CACHE_DIR": cache, "DALA_DEVICE": "cpu"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )


def compiled(cache: str) -> int:
    """How many modules a fresh process compiles."""
    return int(ran(cache).stdout)


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


# -- what others may have put there --------------------------------------------------------------

MODES = pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no such modes here")


@MODES
def test_29_entries_are_for_their_owner_alone(cache):
    compiled(str(cache))
    assert {entry.stat().st_mode & 0o777 for entry in cache.iterdir()} == {0o600}
    assert len(list(cache.iterdir())) == 2  # and nothing is left of how they were written


@MODES
@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_29_an_entry_that_others_may_write_is_recompiled(cache, mode):
    compiled(str(cache))
    for entry in cache.glob("*.o"):
        entry.chmod(mode)
    assert compiled(str(cache)) == 2
    assert compiled(str(cache)) == 0


@MODES
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757, 0o1777])
def test_29_a_folder_that_others_may_write_is_not_used_and_this_is_told_once(tmp_path, mode):
    folder = tmp_path / "objects"
    folder.mkdir()
    assert compiled(str(folder)) == 2
    entries = {entry: entry.read_bytes() for entry in folder.iterdir()}
    folder.chmod(mode)
    done = ran(str(folder))
    assert int(done.stdout) == 2
    assert done.stderr.count("compiled kernels are neither read from") == 1
    assert f"others may write it (mode {mode:o})" in done.stderr
    assert {entry: entry.read_bytes() for entry in folder.iterdir()} == entries
    folder.chmod(0o755)
    assert ran(str(folder)).stderr == ""
    assert compiled(str(folder)) == 0


@pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give folders away"
)
def test_29_a_folder_of_another_user_is_not_used(tmp_path):
    folder = tmp_path / "objects"
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    done = ran(str(folder))
    assert int(done.stdout) == 2
    assert "user 12345 owns it" in done.stderr
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_29_a_pipe_in_the_place_of_an_entry_is_not_waited_for(cache):
    compiled(str(cache))
    for entry in cache.glob("*.o"):
        entry.unlink()
        os.mkfifo(entry)
    assert compiled(str(cache)) == 2
    assert all(entry.is_file() for entry in cache.glob("*.o"))


@MODES
def test_29_a_link_in_the_place_of_an_entry_is_not_followed(cache, tmp_path):
    compiled(str(cache))
    for entry in cache.glob("*.o"):
        entry.rename(tmp_path / entry.name)
        entry.symlink_to(tmp_path / entry.name)
    assert compiled(str(cache)) == 2
    assert not any(entry.is_symlink() for entry in cache.glob("*.o"))


@MODES
def test_29_a_folder_may_itself_be_a_link(cache, tmp_path):
    compiled(str(cache))
    (tmp_path / "link").symlink_to(cache)
    assert compiled(str(tmp_path / "link")) == 0


@MODES
def test_29_a_command_tells_of_such_a_folder_in_one_line(tmp_path):
    folder = tmp_path / "objects"
    folder.mkdir()
    folder.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-m", "dala", "doctor"],
        env={**os.environ, "DALA_CACHE_DIR": str(folder), "DALA_DEVICE": "cpu"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    told = [line for line in done.stderr.splitlines() if "compiled kernels" in line]
    assert len(told) == 1
    assert told[0].startswith("dala: compiled kernels are neither read from")
    assert "others may write it (mode 777)" in done.stdout
