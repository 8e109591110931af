"""The functions of `dala.gpu` that create, fill, present and save surfaces."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from dala.devices import current_device
from dala.errors import ArgumentError, DeviceError
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.arguments import Params
from dala.runtime.kernels.kernel import Kernel
from dala.surfaces.surface import Surface, require_surface

KINDS = ("auto", "window", "offscreen", "notebook")
_LOG = logging.getLogger("dala")


def create_surface(
    width: int,
    height: int,
    title: str = "dala",
    kind: Literal["auto", "window", "offscreen", "notebook"] = "auto",
) -> Surface:
    """Creates a surface of that size on the current device, filled with transparent black.

    `kind` is "window", "notebook" or "offscreen". "auto" is a notebook widget inside a notebook, a
    window if one can be opened, else off-screen; see `surface.kind` and `surface.why`.
    """
    if kind not in KINDS:
        raise ArgumentError(f"create_surface: kind {kind!r} is not one of {', '.join(KINDS)}.")
    if not isinstance(title, str):
        raise ArgumentError(f"create_surface: title is a text, not {title!r}.")
    surface = Surface(current_device(), width, height, title)
    if kind == "auto":
        _show_where_possible(surface)
    elif kind == "window":
        _open_window(surface)
    elif kind == "notebook":
        _open_widget(surface)
    return surface


def resize_surface(surface: Surface, width: int, height: int) -> None:
    """Resizes a surface; every pixel becomes transparent black."""
    require_surface(surface).resize(width, height)


def destroy_surface(surface: Surface) -> None:
    """Closes a surface's window and frees its memory; does nothing if it is destroyed."""
    require_surface(surface).destroy()


def set_pixels(surface: Surface, pixels: Any) -> None:
    """Replaces all pixels with a u8 array (height, width, 4), its bytes, or a buffer."""
    require_surface(surface).set_pixels(pixels)


def get_pixels(surface: Surface) -> np.ndarray:
    """Returns the pixels of a surface as a new u8 array, (height, width, 4)."""
    return require_surface(surface).pixels()


def clear(surface: Surface, color: Any = (0.0, 0.0, 0.0, 0.0)) -> None:
    """Fills the surface with a color: numbers from 0 to 1, a name, or a code such as "#ff8000"."""
    require_surface(surface).clear(color)


def present(surface: Surface) -> None:
    """Shows the current pixels; does nothing off-screen."""
    require_surface(surface).present()


def save(surface: Surface, path: str | os.PathLike[str], *, quality: int | None = None) -> None:
    """Writes a surface to a picture file, in the format of its suffix."""
    from dala.media.pictures.files import save as save_picture

    save_picture(require_surface(surface).pixels(), path, quality=quality)


def run_to_surface(
    kernel: str | Kernel,
    inputs: Sequence[Buffer],
    output: Buffer,
    surface: Surface,
    params: Params | None = None,
) -> None:
    """Computes `output`, u8 (height, width, 4), with a kernel, and shows it on the surface.

    Both hold the pixels afterwards. On a GPU the copy is part of the same submission, and the
    pixels never leave the device; on the CPU there is one copy.
    """
    found = kernel if isinstance(kernel, Kernel) else Kernel.lookup(kernel)
    require_surface(surface).run(found, inputs, output, params)


def _show_where_possible(surface: Surface) -> None:
    """Opens a notebook widget or a window if possible, else logs why not."""
    if in_notebook():
        _open_widget(surface)
        return
    try:
        _open_window(surface)
    except DeviceError as error:
        surface.why = str(error)
        _LOG.info("%s", error)


def _open_window(surface: Surface) -> None:
    missing = missing_for_windows()
    if missing:
        raise DeviceError(
            f"no window can be opened: {missing}, or use kind='offscreen', which only keeps the "
            f"pixels."
        )
    from dala.surfaces.windows import open_window

    surface._canvas = open_window(surface)
    surface.kind = "window"


def _open_widget(surface: Surface) -> None:
    from dala.surfaces.notebook import open_widget

    surface._canvas = open_widget(surface)
    surface.kind = "notebook"


def missing_for_windows() -> str:
    """Returns what is missing for opening a window, or an empty string."""
    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        return "there is no display: set DISPLAY or WAYLAND_DISPLAY, as a desktop or Xvfb does"
    if importlib.util.find_spec("rendercanvas") is None:
        return "the library rendercanvas is not installed: pip install dala-gpu[window]"
    return ""


def in_notebook() -> bool:
    """Returns whether this process runs a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
