"""No range in pyproject.toml admits a release that is known to be harmful."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
ADVISORIES = tomllib.loads((ROOT / "tests/advisories.toml").read_text())
CASES = [
    pytest.param(name, advisory, id=f"{name} {advisory['ids'][0]}")
    for name, found in ADVISORIES.items()
    for advisory in found
]


def requirements() -> Iterator[Requirement]:
    """All that the package and its extras ask for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for group in (project["dependencies"], *project["optional-dependencies"].values()):
        yield from map(Requirement, group)


def admitted(allowed: SpecifierSet, advisory: Any) -> Version | None:
    """A release with the fault that the range lets in; None if it keeps all of them out."""
    candidates = [Version(item) for item in advisory.get("releases", ())]
    if "fixed" in advisory:
        # Where two ranges meet, the first of their common releases is where one of them begins.
        floors = [Version(item.version) for item in allowed if item.operator in (">=", "==", "~=")]
        lowest = max([Version(advisory["introduced"]), *floors])
        candidates += [lowest, Version(f"{lowest}.post1")]  # the next one, where it is left out
    return next(
        (item for item in candidates if item in allowed and has_fault(item, advisory)), None
    )


def has_fault(release: Version, advisory: Any) -> bool:
    if "fixed" in advisory:
        return Version(advisory["introduced"]) <= release < Version(advisory["fixed"])
    return release in map(Version, advisory["releases"])


@pytest.mark.parametrize(("name", "advisory"), CASES)
def test_no_range_admits_a_release_that_is_known_to_be_harmful(name: str, advisory: Any):
    asked = [item for item in requirements() if canonicalize_name(item.name) == name]
    assert asked, f"{name} is not needed any more: take it out of the list."
    for item in asked:
        found = admitted(item.specifier, advisory)
        assert found is None, f"{item} admits {found}: {advisory['ids']}, {advisory['what']}."


@pytest.mark.parametrize(("name", "advisory"), CASES)
def test_what_is_installed_is_not_known_to_be_harmful(name: str, advisory: Any):
    try:
        here = Version(metadata.version(name))
    except metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    assert not has_fault(here, advisory)


@pytest.mark.parametrize(
    ("allowed", "lets_in"),
    [
        (">=1.2,<2", "1.2"),
        (">=1.5,<2", None),
        (">=1.0,<1.1", None),
        (">=0.5,<2", "1.1"),
        (">=0.5,<2,!=1.1", "1.1.post1"),
        ("", "1.1"),
        ("<1.1", None),
    ],
)
def test_a_range_that_admits_a_harmful_release_is_found(allowed: str, lets_in: str | None):
    found = admitted(SpecifierSet(allowed), {"introduced": "1.1", "fixed": "1.5"})
    assert found == (None if lets_in is None else Version(lets_in))


@pytest.mark.parametrize(
    ("allowed", "lets_in"), [(">=1", "1.3"), (">=1,!=1.3", None), (">=2", None)]
)
def test_a_range_that_admits_one_harmful_release_is_found(allowed: str, lets_in: str | None):
    found = admitted(SpecifierSet(allowed), {"releases": ["1.3"]})
    assert found == (None if lets_in is None else Version(lets_in))


def test_every_dependency_has_a_floor():
    for item in requirements():
        if item.name != "dala-gpu":
            assert ">=" in {part.operator for part in item.specifier}, f"{item} has no floor."
