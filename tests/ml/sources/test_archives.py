"""Archives of packages: the wanted files and nothing else, or an error that says what is wrong."""

from __future__ import annotations

import gzip
import io
import tarfile

import numpy as np
import pytest
from ml.sources.made_packages import entry_of, npm_archive, wheel

from dala import errors
from dala.ml.sources import archives

FILES = {"models/a.json": b'{"a": 1}', "models/a.bin": bytes(range(256)) * 40}
WANTED = entry_of("a", FILES).package.files
REMEDY = "Try again."


def test_files_of_an_npm_package_are_read(tmp_path):
    path = tmp_path / "a.tgz"
    path.write_bytes(npm_archive({"README.md": b"hello", **FILES}))
    assert archives.read_files(path, WANTED, REMEDY) == FILES


def test_files_of_a_wheel_are_read(tmp_path):
    name, data = wheel({"other.py": b"", **FILES})
    path = tmp_path / name
    path.write_bytes(data)
    assert archives.read_files(path, WANTED, REMEDY) == FILES


def test_nothing_of_an_archive_is_written_anywhere(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    path = inside / "a.tgz"
    path.write_bytes(npm_archive({"../../escaped": b"1", **FILES}))
    archives.read_files(path, WANTED, REMEDY)
    assert sorted(tmp_path.rglob("*")) == [inside, path]


@pytest.mark.parametrize("kind", ["tgz", "whl"])
@pytest.mark.parametrize("part", range(8))
def test_a_cut_archive_is_refused(tmp_path, kind, part):
    data = npm_archive(FILES) if kind == "tgz" else wheel(FILES)[1]
    path = tmp_path / f"a.{kind}"
    path.write_bytes(data[: len(data) * part // 8])
    with pytest.raises(errors.IntegrityError, match=r"Try again\."):
        archives.read_files(path, WANTED, REMEDY)


def test_an_altered_byte_is_noticed_wherever_it_is(tmp_path):
    data = npm_archive(FILES)
    path = tmp_path / "a.tgz"
    for place in range(10, len(data) - 8, len(data) // 40):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
        try:
            found = archives.read_files(path, WANTED, REMEDY)
        except errors.IntegrityError:
            continue
        assert found == FILES  # it was in what nobody reads


def test_another_file_under_the_same_name_is_refused_with_both_hashes(tmp_path):
    path = tmp_path / "a.tgz"
    other = FILES["models/a.bin"][::-1]
    path.write_bytes(npm_archive({**FILES, "models/a.bin": other}))
    with pytest.raises(errors.IntegrityError) as caught:
        archives.read_files(path, WANTED, REMEDY)
    assert WANTED[1].sha256 in str(caught.value)
    assert entry_of("b", {"b": other}).package.files[0].sha256 in str(caught.value)


def test_a_file_of_another_size_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "a.tgz"
    path.write_bytes(npm_archive({**FILES, "models/a.bin": b"0" * 20_000}))
    with pytest.raises(errors.IntegrityError, match="20000 bytes, not the 10240"):
        archives.read_files(path, WANTED, REMEDY)


def test_a_link_in_place_of_a_file_is_refused(tmp_path):
    path = tmp_path / "a.tgz"
    rest = {"models/a.json": FILES["models/a.json"]}
    path.write_bytes(npm_archive(rest, links={"models/a.bin": "/etc/hostname"}))
    with pytest.raises(errors.IntegrityError, match=r"models/a\.bin is a link"):
        archives.read_files(path, WANTED, REMEDY)


def test_a_missing_file_is_named(tmp_path):
    path = tmp_path / "a.tgz"
    path.write_bytes(npm_archive({"models/a.json": FILES["models/a.json"]}))
    with pytest.raises(errors.IntegrityError, match=r"has no file models/a\.bin"):
        archives.read_files(path, WANTED, REMEDY)


def test_an_archive_that_claims_to_be_huge_is_refused_by_its_headers(tmp_path):
    member = tarfile.TarInfo("package/other.bin")
    member.size = 2**40
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        archive.addfile(member)
    path = tmp_path / "a.tgz"
    path.write_bytes(buffer.getvalue())
    with pytest.raises(errors.IntegrityError, match="unpacks to more than"):
        archives.read_files(path, WANTED, REMEDY)


def test_an_archive_that_is_not_there_is_a_file_error(tmp_path):
    with pytest.raises(errors.FileError, match=r"a\.tgz cannot be read"):
        archives.read_files(tmp_path / "a.tgz", WANTED, REMEDY)


def test_an_archive_whose_notes_go_on_and_on_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_BYTES", 2**20)
    notes = tarfile.TarInfo("notes")
    notes.type, notes.size = tarfile.XHDTYPE, 2**22
    path = tmp_path / "a.tgz"
    path.write_bytes(gzip.compress(notes.tobuf(tarfile.USTAR_FORMAT) + bytes(notes.size)))
    with pytest.raises(errors.IntegrityError, match="unpacks to more than 1,048,576 bytes"):
        archives.read_files(path, WANTED, REMEDY)


def test_an_encrypted_wheel_is_refused(tmp_path):
    data = bytearray(wheel(FILES)[1])
    for start, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(start) + flags] |= 1
    path = tmp_path / "a.whl"
    path.write_bytes(data)
    with pytest.raises(errors.IntegrityError, match=r"encrypted.*Try again"):
        archives.read_files(path, WANTED, REMEDY)


def test_a_wheel_with_bytes_changed_at_random_is_read_or_refused(tmp_path):
    data, random = wheel(FILES)[1], np.random.default_rng(7)
    path = tmp_path / "a.whl"
    for _ in range(500):
        changed = bytearray(data)
        for place in random.integers(0, len(data), 4):
            changed[place] = random.integers(256)
        # A name that is said to be UTF-8, and is not.
        changed[data.rindex(b"PK\1\2") + 9] |= 8
        path.write_bytes(changed)
        try:
            assert archives.read_files(path, WANTED, REMEDY) == FILES
        except errors.DalaError:
            continue
