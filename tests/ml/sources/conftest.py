"""What tests of sources get: a folder for models of their own, and a registry on loopback."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from ml.sources.made_packages import Place, serving


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that models are kept in, empty."""
    folder = tmp_path / "models"
    monkeypatch.setenv("DALA_MODELS", str(folder))
    monkeypatch.delenv("DALA_ACCEPT_LICENCE", raising=False)
    return folder


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A server that npm takes for its registry."""
    with serving() as made:
        monkeypatch.setenv("npm_config_registry", made.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield made


@pytest.fixture
def npm() -> None:
    """Leave a test out where npm is not installed."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")


@pytest.fixture
def no_npm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where npm is not installed: a path with nothing on it."""
    monkeypatch.setenv("PATH", "")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one folder that pip finds packages in."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder
