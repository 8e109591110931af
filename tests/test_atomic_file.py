"""Files that appear complete or not at all, and what a failure leaves behind."""

import os
import stat
import sys
from pathlib import Path

import pytest

from dala import errors
from dala.base import atomic_file
from dala.base.file_path import checked_path

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs the file system of Linux")


def names_in(folder):
    return [item.name for item in folder.iterdir()]


@pytest.fixture
def calls(monkeypatch):
    """The system calls that decide what survives a power failure, in their order."""
    made = []
    sync, replace = os.fsync, os.replace

    def recorded_sync(descriptor):
        made.append("sync")
        sync(descriptor)

    def recorded_replace(*paths, **options):
        made.append("rename")
        replace(*paths, **options)

    monkeypatch.setattr(os, "fsync", recorded_sync)
    monkeypatch.setattr(os, "replace", recorded_replace)
    return made


def test_data_is_written_and_nothing_else_is_left(tmp_path):
    atomic_file.write_atomically(tmp_path / "a.bin", b"data")
    assert (tmp_path / "a.bin").read_bytes() == b"data"
    assert names_in(tmp_path) == ["a.bin"]


def test_a_failed_write_keeps_the_previous_content(tmp_path, monkeypatch):
    target = tmp_path / "a.bin"
    target.write_bytes(b"before")

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(errors.FileError, match=r"a\.bin cannot be written: No space left"):
        atomic_file.write_atomically(target, b"after")
    assert target.read_bytes() == b"before"
    assert names_in(tmp_path) == ["a.bin"]


def test_a_failed_block_keeps_the_previous_content(tmp_path):
    target = tmp_path / "a.mp4"
    target.write_bytes(b"before")

    def interrupted_write():
        with atomic_file.atomic_path(target) as temporary:
            temporary.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted_write()
    assert target.read_bytes() == b"before"
    assert names_in(tmp_path) == ["a.mp4"]


def replace_data(target):
    atomic_file.write_atomically(target, b"after")


def replace_path(target):
    with atomic_file.atomic_path(target) as temporary:
        temporary.write_bytes(b"after")


@pytest.mark.parametrize("write", [replace_data, replace_path])
def test_a_replaced_file_is_on_the_disk_before_its_name(tmp_path, calls, write):
    target = tmp_path / "a.bin"
    target.write_bytes(b"before")
    write(target)
    assert target.read_bytes() == b"after"
    assert calls == ["sync", "rename"]


@pytest.mark.parametrize("write", [replace_data, replace_path])
def test_a_new_file_is_not_waited_for(tmp_path, calls, write):
    write(tmp_path / "a.bin")
    assert calls == ["rename"]


@pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="needs files by an open folder")
def test_a_file_in_an_open_folder_is_written_there_wherever_its_path_leads_now(tmp_path):
    (tmp_path / "opened").mkdir()
    folder = os.open(tmp_path / "opened", os.O_RDONLY)
    try:
        (tmp_path / "opened").rename(tmp_path / "moved")
        atomic_file.replace_data(Path("a.o"), b"data", permissions=0o600, folder=folder)
        atomic_file.replace_data(Path("a.o"), b"more", permissions=0o600, folder=folder)
    finally:
        os.close(folder)
    assert (tmp_path / "moved" / "a.o").read_bytes() == b"more"
    assert stat.S_IMODE((tmp_path / "moved" / "a.o").stat().st_mode) == 0o600
    assert names_in(tmp_path / "moved") == ["a.o"]


def test_a_temporary_folder_lies_beside_its_target(tmp_path):
    made = atomic_file.create_temporary_folder(tmp_path / "frames")
    assert made.is_dir()
    assert made.parent == tmp_path


def test_a_temporary_folder_that_cannot_be_made_is_an_error_that_names_the_target(tmp_path):
    with pytest.raises(errors.FileError, match=r"frames cannot be written: No such file"):
        atomic_file.create_temporary_folder(tmp_path / "absent" / "frames")


def test_temporary_names_are_unpredictable_hidden_and_keep_the_suffix(tmp_path):
    names = {atomic_file.temporary_path(tmp_path / "clip.mp4").name for _ in range(100)}
    assert len(names) == 100
    assert all(name.startswith(".clip.") and name.endswith(".partial.mp4") for name in names)


@ON_LINUX
def test_a_link_placed_at_the_temporary_name_is_not_followed(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    guessed = tmp_path / ".guessed"
    guessed.symlink_to(victim)
    monkeypatch.setattr(atomic_file, "temporary_path", lambda target: guessed)
    with pytest.raises(errors.FileError, match="File exists"):
        atomic_file.write_atomically(tmp_path / "a.bin", b"data")
    assert guessed.is_symlink()
    assert victim.read_bytes() == b"precious"


@ON_LINUX
def test_a_name_as_long_as_the_file_system_allows_can_be_written(tmp_path):
    target = tmp_path / ("ö" * 125 + ".png")
    atomic_file.write_atomically(target, b"data")
    assert target.read_bytes() == b"data"


@ON_LINUX
def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "inside").mkdir()
    target = tmp_path / "inside" / "a.bin"
    target.write_bytes(b"before")
    link = tmp_path / "link"
    link.symlink_to(target)
    atomic_file.write_atomically(link, b"after")
    assert link.is_symlink()
    assert target.read_bytes() == b"after"


@ON_LINUX
def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        atomic_file.write_atomically(tmp_path / "a.bin", b"data")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.bin").stat().st_mode) == 0o640


@ON_LINUX
def test_a_device_is_written_to_and_not_replaced():
    atomic_file.write_atomically(Path("/dev/null"), b"data")
    assert not Path("/dev/null").is_file()


def test_a_folder_is_refused_by_name(tmp_path):
    with pytest.raises(errors.FileError, match="cannot be written"):
        atomic_file.write_atomically(tmp_path, b"data")


@pytest.mark.parametrize("given", ["", 5, None, b"a.png"])
def test_what_is_no_path_is_refused(given):
    with pytest.raises(errors.ArgumentError, match="a picture file is named by a string or a path"):
        checked_path("a picture file", given)


def test_a_path_with_a_nul_character_is_refused():
    with pytest.raises(errors.ArgumentError, match="cannot name a folder: it contains a NUL"):
        checked_path("a folder", "a\0b")
