"""The registry of backends, and how a device is found in them.

A backend is a kind of device. It is loaded when one of its devices, or a device by part of its
name, is asked for; `register_backend` adds others.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from dala.base.record import record
from dala.devices.device import Device
from dala.errors import ArgumentError, DeviceError


@record
class Listing:
    """An available device, opened or not."""

    id: str
    name: str
    """The name of the device; users may give part of it."""
    info: Callable[[], dict[str, Any]]
    open: Callable[[], Device]


class Backend(Protocol):
    """A kind of device; a module can be one."""

    def listings(self) -> Sequence[Listing]:
        """Returns its devices, best first; raises DeviceError if the backend cannot be used."""

    def preferred(self) -> Listing | None:
        """Returns the device to use by default, if it has one that is worth it."""


_backends: dict[str, Backend | str] = {
    "webgpu": "dala.devices.webgpu.backend",
    "cpu": "dala.devices.cpu.backend",
}
"""In order of preference; a string is a module that is not loaded yet."""
_COMPOSITE = {"parity": "dala.devices.parity"}
"""Backends whose devices are made of others, found by their own name only."""


def register_backend(name: str, backend: Backend) -> None:
    """Registers a backend; the ids of its devices begin with its name."""
    if name in _backends or name in _COMPOSITE:
        raise ArgumentError(f"a backend named {name!r} is registered already: choose another name.")
    _backends[name] = backend


def unregister_backend(name: str) -> None:
    """Removes a backend; its devices that are in use stay usable."""
    _backends.pop(name, None)


def find_listing(which: str) -> Listing:
    """Returns the device with this id, or the first one whose name contains the text."""
    wanted = which.lower()
    family = wanted.partition(":")[0]
    if family in _COMPOSITE:
        return _loaded(family).listings()[0]
    if family in _backends:
        for listing in _loaded(family).listings():
            if wanted in (listing.id, f"{listing.id}:0"):
                return listing
    there, missing = _all_listings()
    for listing in there:
        if wanted in listing.name.lower():
            return listing
    there.sort(key=lambda item: item.id)
    known = ", ".join(f"{item.id} ({item.name})" for item in there)
    raise DeviceError(
        f"no device is called {which!r}. There is {known}: give an id or part of a name."
        + "".join(f" {reason}" for reason in missing)
    )


def all_infos() -> list[dict[str, Any]]:
    """Returns the facts about each available device, the CPU first."""
    listings = _all_listings()[0]
    return [item.info() for item in sorted(listings, key=lambda item: item.id != "cpu")]


def preferred_listing() -> Listing:
    """Returns the default device: a hardware GPU, else the CPU."""
    for name in _backends:
        found = _loaded(name).preferred()
        if found is not None:
            return found
    raise DeviceError("no backend has a device.")


def _all_listings() -> tuple[list[Listing], list[str]]:
    """Returns every device in order of preference, and why some backends have none."""
    found: list[Listing] = []
    missing: list[str] = []
    for name in list(_backends):
        try:
            found += _loaded(name).listings()
        except DeviceError as error:
            missing.append(str(error))
    return found, missing


def _loaded(name: str) -> Backend:
    known = _backends.get(name) or _COMPOSITE[name]
    if not isinstance(known, str):
        return known
    module: Any = importlib.import_module(known)
    if name in _backends:
        _backends[name] = module
    return module  # type: ignore[no-any-return]
