"""Where models are kept, and what is said when that cannot be."""

from __future__ import annotations

import errno
import hashlib
import os

import pytest
from ml.sources.made_packages import entry_of

from dala import errors
from dala.ml.sources import store as kept

DATA = b"a converted model"
ENTRY = entry_of("one", {"one.json": b"{}"}, sha256=hashlib.sha256(DATA).hexdigest())


def test_models_are_beside_the_compiled_kernels(tmp_path, monkeypatch):
    monkeypatch.delenv("DALA_MODELS", raising=False)
    monkeypatch.setenv("DALA_CACHE_DIR", str(tmp_path))
    assert kept.folder() == tmp_path / "models"


def test_a_folder_of_their_own_can_be_named(tmp_path, monkeypatch):
    monkeypatch.setenv("DALA_MODELS", str(tmp_path / "mine"))
    assert kept.store(ENTRY, DATA).parent == tmp_path / "mine"


def test_where_the_cache_is_off_models_need_a_folder_of_their_own(monkeypatch):
    monkeypatch.delenv("DALA_MODELS", raising=False)
    monkeypatch.setenv("DALA_CACHE_DIR", "off")
    with pytest.raises(errors.FetchError, match="Set DALA_MODELS"):
        kept.find(ENTRY)


def test_what_is_kept_is_found(models):
    assert kept.find(ENTRY) is None
    assert kept.state(ENTRY) == "missing"
    path = kept.store(ENTRY, DATA)
    assert path.read_bytes() == DATA
    assert kept.find(ENTRY) == path
    assert kept.state(ENTRY) == "here"
    assert list(models.iterdir()) == [path]


def test_another_conversion_is_another_file(models):
    other = entry_of("one", {"one.json": b"{}"}, sha256=hashlib.sha256(b"other").hexdigest())
    assert kept.store(ENTRY, DATA) != kept.store(other, b"other")
    assert kept.find(ENTRY) is not None


def test_a_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("DALA_MODELS", str(tmp_path / "file" / "models"))
    with pytest.raises(errors.FileError, match=r"file.models.*Set DALA_MODELS"):
        kept.store(ENTRY, DATA)


def test_a_full_disk_leaves_nothing_behind(models, monkeypatch):
    def full(*_, **folders):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(errors.FileError, match="No space left"):
        kept.store(ENTRY, DATA)
    assert list(models.iterdir()) == []


def test_a_folder_in_place_of_a_model_is_a_file_error(models):
    kept.path_of(ENTRY).mkdir(parents=True)
    for look in (kept.find, kept.state, kept.remove):
        with pytest.raises(errors.FileError, match=f"{ENTRY.name}-"):
            look(ENTRY)


def test_a_folder_that_cannot_be_is_one_without_models(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("DALA_MODELS", str(tmp_path / "file" / "models"))
    assert kept.find(ENTRY) is None
    assert kept.state(ENTRY) == "missing"


def test_a_lock_that_cannot_be_written_is_a_file_error(models):
    lock = models / ".dala-tests-models-1.2.3.lock"
    lock.mkdir(parents=True)
    with (
        pytest.raises(errors.FileError, match=rf"{lock.name} cannot be written.*Set DALA_MODELS"),
        kept.locked(ENTRY.package),
    ):
        pass
