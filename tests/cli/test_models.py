"""`dala models`: the list, and models got, found and checked."""

from __future__ import annotations

import hashlib

import pytest
from ml.sources.made_packages import entry_of, model_files, npm_archive
from typer.main import get_command

from dala.base.record import changed
from dala.cli.app import app
from dala.ml.catalog import entries as catalog
from dala.ml.sources import converting, downloads
from dala.ml.sources import store as kept

FILES = model_files("tiny", 1.0)
COMMANDS = sorted(get_command(app).commands["models"].commands)


@pytest.fixture(autouse=True)
def tiny(folder, monkeypatch):
    """A small model of the catalog, whose package is tiny.tgz; no other can be had."""
    monkeypatch.setenv("DALA_MODELS", str(folder / "models"))
    monkeypatch.delenv("DALA_ACCEPT_LICENSE", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(downloads, "CDN", "http://127.0.0.1:9")
    made = entry_of("tiny", FILES)
    made = changed(made, sha256=hashlib.sha256(converting.convert(made, FILES)).hexdigest())
    monkeypatch.setitem(catalog.MODELS, "tiny", made)
    (folder / "tiny.tgz").write_bytes(npm_archive(FILES))
    return made


def test_every_model_is_a_line_of_the_list(told):
    code, out, _ = told("models", "list")
    lines = out.splitlines()
    assert code == 0
    assert [line.split()[0] for line in lines] == ["name", *catalog.MODELS]
    assert " ".join(lines[2].split()) == "yolo_v5 detection 640×640 AGPL-3.0 29.1 MB missing"
    assert max(map(len, lines)) <= 80


def test_a_terminal_gets_the_same_as_a_table(told, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    code, out, _ = told("models", "list")
    assert code == 0
    assert "\x1b[" in out
    assert all(name in out for name in catalog.MODELS)


def test_the_list_is_an_object_with_everything_about_each(answer, tiny):
    found = {item["name"]: item for item in answer("models", "list")["models"]}
    assert set(found) == set(catalog.MODELS)
    assert found["tiny"]["state"] == "missing"
    assert found["tiny"]["path"] == str(kept.path_of(tiny))
    assert found["mobilenet_v2"]["size"] == [224, 224]


def test_a_model_is_got_from_a_file_and_then_is_here(told, answer, tiny):
    code, out, err = told("models", "get", "tiny", "--from", "tiny.tgz")
    assert (code, out) == (0, "")
    assert err == f"tiny is in {kept.path_of(tiny)}\n"
    assert told("models", "where", "tiny") == (0, f"{kept.path_of(tiny)}\n", "")
    assert answer("models", "get", "tiny") == {
        "ok": True,
        "models": [{"name": "tiny", "path": str(kept.path_of(tiny))}],
    }
    listed = {item["name"]: item["state"] for item in answer("models", "list")["models"]}
    assert listed["tiny"] == "here"


def test_quiet_prints_nothing(told):
    assert told("models", "get", "tiny", "--from", "tiny.tgz", "-q") == (0, "", "")


def test_where_a_model_is_not_here_ends_with_1(refused):
    assert "dala models get tiny" in refused("models", "where", "tiny", code=1)


def test_a_file_that_is_no_package_ends_with_1(refused, folder):
    (folder / "tiny.tgz").write_bytes(b"something else")
    assert "left as it is" in refused("models", "get", "tiny", "--from", "tiny.tgz", code=1)


def test_an_unknown_model_is_refused_with_a_hint_before_anything_is_got(refused, tiny):
    said = refused("models", "get", "tiny", "mobilnet_v2", "--from", "tiny.tgz")
    assert "Did you mean 'mobilenet_v2'?" in said
    assert kept.state(tiny) == "missing"


def test_a_license_that_binds_has_to_be_accepted(refused, told, tiny, monkeypatch):
    monkeypatch.setitem(catalog.MODELS, "tiny", changed(tiny, license="AGPL-3.0"))
    said = refused("models", "get", "tiny", "--from", "tiny.tgz")
    assert "AGPL-3.0" in said
    assert "--accept-license" in said
    assert told("models", "get", "tiny", "--from", "tiny.tgz", "--accept-license")[0] == 0


def test_the_old_spelling_of_accept_license_works_and_says_so(told, tiny, monkeypatch):
    monkeypatch.setitem(catalog.MODELS, "tiny", changed(tiny, license="AGPL-3.0"))
    code, _, err = told("models", "get", "tiny", "--from", "tiny.tgz", "--accept-licence")
    assert code == 0
    assert "--accept-licence is deprecated: use --accept-license.\n" in err
    assert "licence" not in told("models", "get", "--help")[1]


def test_the_list_has_the_license_under_its_old_key_too(answer):
    assert all(item["licence"] == item["license"] for item in answer("models", "list")["models"])


def test_check_tells_what_is_here_damaged_and_missing(told, answer, tiny):
    told("models", "get", "tiny", "--from", "tiny.tgz")
    code, out, err = told("models", "check")
    assert (code, err) == (0, "")
    assert "ok       tiny\n" in out
    assert "missing  posenet\n" in out
    kept.path_of(tiny).write_bytes(b"altered")
    code, out, err = told("models", "check")
    assert code == 1
    assert "damaged  tiny\n" in out
    assert "dala models get tiny" in err
    assert answer("models", "check", "tiny", code=1)["models"] == {"tiny": "damaged"}
    assert answer("models", "check", "posenet", code=1)["models"] == {"posenet": "missing"}


def test_what_is_damaged_is_removed_and_got_anew(told, tiny):
    told("models", "get", "tiny", "--from", "tiny.tgz")
    kept.path_of(tiny).write_bytes(b"altered")
    code, _, err = told("models", "get", "tiny")
    assert code == 1  # nothing listens there
    assert err.startswith("tiny was damaged, and has been removed.\ndala: tiny cannot be fetched")
    assert not kept.path_of(tiny).exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_into_80_columns(told, command):
    code, out, _ = told("models", command, "--help")
    assert code == 0
    assert f"Usage: dala models {command}" in out
    assert max(map(len, out.splitlines())) <= 80
