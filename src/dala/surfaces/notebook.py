"""Surfaces in notebooks: a live widget, through rendercanvas and jupyter_rfb."""

from __future__ import annotations

import importlib.util
import logging
from typing import TYPE_CHECKING, Any

from dala.surfaces.windows import Window

if TYPE_CHECKING:
    from dala.surfaces.surface import Surface

_LOG = logging.getLogger("dala")
_NEEDED = ("rendercanvas", "jupyter_rfb")


class Widget(Window):
    """A widget that shows a surface wherever a notebook displays it, and stays up to date.

    Frames are sent while a cell runs. Events of the widget arrive, and are dispatched, when no
    cell runs.
    """

    def mimebundle(self) -> Any:
        """Returns what a notebook displays."""
        return self.canvas._repr_mimebundle_()

    def poll(self) -> None:
        """Does nothing: notebooks dispatch events themselves."""

    def _put_down(self, given: dict[str, Any]) -> None:
        self._tell(given)


class PixelPresenter:
    """Hands the pixels to the browser, which scales them to the widget."""

    def __init__(self, canvas: Any) -> None:
        self._context = canvas.get_bitmap_context()

    def draw(self, surface: Surface) -> None:
        self._context.set_bitmap(surface.pixels())


def open_widget(surface: Surface) -> Widget | None:
    """Returns a widget for a surface, or None, with a log entry, if widgets cannot be shown."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        _LOG.info(
            "a surface in a notebook is a still picture: %s is not installed. For a live one: "
            "pip install dala-gpu[notebook]",
            " and ".join(missing),
        )
        return None
    from rendercanvas.jupyter import JupyterRenderCanvas

    # On demand: frames presented before the widget is displayed are drawn then.
    size = surface.width, surface.height
    canvas = JupyterRenderCanvas(size=size, title=surface.title, update_mode="ondemand")
    canvas.resizable = False
    return Widget(canvas, surface, PixelPresenter(canvas))
