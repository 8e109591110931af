"""Window events, as handlers of `surface.on` get them, in the picture's coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dala.base.record import value

Size = tuple[int, int]


@value
class Resize:
    """The window was resized, in physical pixels; the surface keeps its size.

    A handler that wants them to be the same calls `surface.resize(event.width, event.height)`.
    """

    width: int
    height: int


@value
class Key:
    """A key was pressed or released: `action` is "down" or "up".

    `key` is a letter or digit, or a name as browsers have it: "ArrowUp", "Enter", "Escape".
    `modifiers` are among "Shift", "Control", "Alt" and "Meta".
    """

    action: str
    key: str
    modifiers: tuple[str, ...] = ()


@value
class Pointer:
    """The pointer moved, or was used, at a position in the picture.

    `action` is "move", "down", "up", "double_click", "wheel", "enter" or "leave". `x` and `y` are
    in pixels of the surface, whatever the size of the window; outside the picture they are out of
    its range. "enter" and "leave" have the last known position. `button` is the one that was
    pressed or released, 1 for the left one, and `buttons` are all that are down. `dx` and `dy` are
    the scroll distance of a wheel, about 100 for a notch.
    """

    action: str
    x: float
    y: float
    button: int = 0
    buttons: tuple[int, ...] = ()
    modifiers: tuple[str, ...] = ()
    dx: float = 0.0
    dy: float = 0.0


@value
class Close:
    """The window was closed by its user."""


Event = Resize | Key | Pointer | Close
NAMES: dict[type, str] = {Resize: "resize", Key: "key", Pointer: "pointer", Close: "close"}
"""The names of events in `surface.on`."""
_KEYS = {"key_down": "down", "key_up": "up"}
_POINTERS = {
    "pointer_move": "move",
    "pointer_down": "down",
    "pointer_up": "up",
    "pointer_enter": "enter",
    "pointer_leave": "leave",
    "double_click": "double_click",
    "wheel": "wheel",
}
KINDS = ("resize", "close", *_KEYS, *_POINTERS)
"""The rendercanvas events that are translated."""


@value
class Box:
    """A rectangle in a window, in physical pixels."""

    x: int
    y: int
    width: int
    height: int


def fitted(picture: Size, window: Size) -> Box:
    """Returns where a picture lies in a window: letterboxed, centered, never distorted."""
    scale = min(window[0] / picture[0], window[1] / picture[1])
    width, height = (max(1, round(extent * scale)) for extent in picture)
    return Box((window[0] - width) // 2, (window[1] - height) // 2, width, height)


def translated(given: Mapping[str, Any], picture: Size, window: Size, ratio: float) -> Event:
    """Returns our event for rendercanvas's, whose coordinates are points of `ratio` pixels."""
    kind = given["event_type"]
    if kind == "resize":
        return Resize(*window)
    if kind == "close":
        return Close()
    modifiers = tuple(given.get("modifiers", ()))
    if kind in _KEYS:
        return Key(_KEYS[kind], given["key"], modifiers)
    box = fitted(picture, window)
    return Pointer(
        _POINTERS[kind],
        (given["x"] * ratio - box.x) * picture[0] / box.width,
        (given["y"] * ratio - box.y) * picture[1] / box.height,
        given.get("button", 0),
        tuple(given.get("buttons", ())),
        modifiers,
        given.get("dx", 0.0),
        given.get("dy", 0.0),
    )
