"""The backends that are known, and how a device is found among theirs.

A backend is a kind of devices. It is loaded when somebody asks for one of its devices, or for a
device by part of a name; a third one joins by `register_backend`.
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
    """A device that there is, whether it was opened or not."""

    id: str
    name: str
    """What it calls itself; users may give part of it."""
    info: Callable[[], dict[str, Any]]
    open: Callable[[], Device]


class Backend(Protocol):
    """A kind of devices; a module can be one."""

    def listings(self) -> Sequence[Listing]:
        """Its devices, best first; a DeviceError says why it cannot be used."""

    def preferred(self) -> Listing | None:
        """The device that is taken unasked, if it has one that is worth that."""


_backends: dict[str, Backend | str] = {
    "webgpu": "dala.devices.webgpu.backend",
    "cpu": "dala.devices.cpu.backend",
}
"""In the order in which they are preferred; a text is a module that is not loaded yet."""
_COMPOSITE = {"parity": "dala.devices.parity"}
"""Backends whose devices are made of others, and are found by their own name only."""


def register_backend(name: str, backend: Backend) -> None:
    """Have the devices of a backend found from now on; their ids begin with its name."""
    if name in _backends or name in _COMPOSITE:
        raise ArgumentError(f"a backend named {name!r} is registered already: choose another name.")
    _backends[name] = backend


def unregister_backend(name: str) -> None:
    """Forget a backend; its devices that are in use stay so."""
    _backends.pop(name, None)


def find_listing(which: str) -> Listing:
    """The device of that id, or the first that has the text as part of its name."""
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
    """What is known about each device that there is, the CPU first."""
    listings = _all_listings()[0]
    return [item.info() for item in sorted(listings, key=lambda item: item.id != "cpu")]


def preferred_listing() -> Listing:
    """The device that is used unless told otherwise: a hardware GPU, else the CPU."""
    for name in _backends:
        found = _loaded(name).preferred()
        if found is not None:
            return found
    raise DeviceError("no backend has a device.")


def _all_listings() -> tuple[list[Listing], list[str]]:
    """Every device, those preferred first, and why some backends have none."""
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
