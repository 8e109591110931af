"""Desktop windows through rendercanvas, with GLFW, or with Qt in a program that uses it.

Events are processed only inside `present` and `poll`: there is no event loop besides the caller's
own. Events are queued first and dispatched afterwards, because rendercanvas would log what a
handler raises: this way it reaches the caller.
"""

from __future__ import annotations

import logging
import sys
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from dala.errors import DeviceError
from dala.surfaces.events import KINDS, NAMES, Resize, Size, translated
from dala.surfaces.pixel_stores import TextureStore
from dala.surfaces.presenters import CannotDraw, Presenter, drawn_by_gpu, shown_as_bitmap

if TYPE_CHECKING:
    from dala.surfaces.surface import Surface

_LOG = logging.getLogger("dala")
_QT = ("PySide6", "PyQt6", "PySide2", "PyQt5")


class Window:
    """A window that shows a surface, and dispatches its events."""

    def __init__(self, canvas: Any, surface: Surface, presenter: Presenter) -> None:
        self.canvas = canvas
        self._presenter = presenter
        self._surface = weakref.ref(surface)
        self._raised: BaseException | None = None
        self._happened: deque[dict[str, Any]] = deque()
        self._pointer = (0.0, 0.0)
        canvas.request_draw(self._draw)
        canvas._process_events()
        self._told_size = self.size
        canvas.add_event_handler(self._put_down, *KINDS)

    @property
    def size(self) -> Size:
        """Width and height in physical pixels."""
        width, height = self.canvas.get_physical_size()
        return width, height

    @property
    def closed(self) -> bool:
        """Whether the user or `close` has closed it."""
        return bool(self.canvas.get_closed())

    def present(self) -> None:
        """Shows the current pixels, letterboxed, and dispatches events."""
        if not self.closed:
            self.canvas.force_draw()
        self._raise_what_was_raised()
        self.poll()

    def resize(self, width: int, height: int) -> None:
        """Resizes the window to a surface's new size, unless it already has it."""
        if not self.closed and (width, height) != self.size:
            self.canvas.set_logical_size(width, height)

    def poll(self) -> None:
        """Dispatches pending events to the surface's handlers, in order."""
        if not self.closed:
            _take_events_of_qt()
            self.canvas._process_events()
            self._raise_what_was_raised()
        while self._happened:
            self._tell(self._happened.popleft())

    def close(self) -> None:
        """Closes it; does nothing if it is closed."""
        if not self.closed:
            self.canvas.close()

    def _put_down(self, given: dict[str, Any]) -> None:
        """Queues an event; called by rendercanvas."""
        self._happened.append(given)

    def _draw(self) -> None:
        """Draws the surface; called by rendercanvas, which would only log what is raised here."""
        surface = self._surface()
        if surface is None or surface.destroyed:
            return
        try:
            self._presenter.draw(surface)
        except BaseException as error:
            self._raised = error

    def _raise_what_was_raised(self) -> None:
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised

    def _tell(self, given: dict[str, Any]) -> None:
        surface = self._surface()
        if surface is None or surface.destroyed:
            return
        # Enter and leave events have no position, and a minimized window has no size.
        self._pointer = given.get("x", self._pointer[0]), given.get("y", self._pointer[1])
        located = {**given, "x": self._pointer[0], "y": self._pointer[1]}
        size = max(1, self.size[0]), max(1, self.size[1])
        picture = surface.width, surface.height
        event = translated(located, picture, size, self.canvas.get_pixel_ratio())
        if isinstance(event, Resize):
            if size == self._told_size:
                return
            self._told_size = size
        surface.emit(NAMES[type(event)], event)


def open_window(surface: Surface) -> Window:
    """Opens a window of a surface's size; raises DeviceError if that is not possible.

    If the surface's GPU cannot draw into windows of this desktop, the pixels are read back and
    shown as a bitmap, with a log entry.
    """
    if threading.current_thread() is not threading.main_thread():
        raise DeviceError(
            "no window can be opened: desktops only let the main thread of a program have windows. "
            "Make the surface there, or use kind='offscreen'."
        )
    store = surface.store
    if isinstance(store, TextureStore):
        try:
            return _opened(surface, lambda canvas: drawn_by_gpu(canvas, store))
        except CannotDraw as error:
            _LOG.warning("%s. Every frame is read back and shown as a bitmap: expect fewer.", error)
    return _opened(surface, shown_as_bitmap)


def _opened(surface: Surface, presenter_in: Callable[[Any], Presenter]) -> Window:
    canvas = _canvas(surface)
    try:
        return Window(canvas, surface, presenter_in(canvas))
    except BaseException:
        canvas.close()
        raise


def _canvas(surface: Surface) -> Any:
    size = surface.width, surface.height
    make = _canvas_maker()
    try:
        return make(size=size, title=surface.title, update_mode="manual")
    except Exception as error:
        raise DeviceError(
            f"no window can be opened: rendercanvas says {error!r}. Use kind='offscreen', which "
            f"only keeps the pixels."
        ) from error


def _canvas_maker() -> Callable[..., Any]:
    """Returns the canvas class for the program's toolkit."""
    return _glfw_canvas() if _qt_application() is None else _qt_canvas()


@cache
def _glfw_canvas() -> Callable[..., Any]:
    try:
        import glfw
        import wgpu  # noqa: F401  (by which all that is in windows of GLFW is drawn)
    except ImportError as error:
        raise DeviceError(
            f"no window can be opened: {error}: pip install dala-gpu[window]."
        ) from error
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        started = glfw.init()
    if not started:
        why = "; ".join(str(each.message) for each in said) or "it does not say why"
        raise DeviceError(
            f"no window can be opened: GLFW does not start: {why}. Is there a display, and may "
            f"this program use it?"
        )
    from rendercanvas.base import BaseCanvasGroup
    from rendercanvas.glfw import GlfwRenderCanvas

    class GlfwCanvas(GlfwRenderCanvas):  # type: ignore[misc,unused-ignore]
        """A canvas without a rendercanvas loop, which would schedule draws."""

        _rc_canvas_group = BaseCanvasGroup(None)

    return GlfwCanvas


def _qt_canvas() -> Callable[..., Any]:
    from rendercanvas.qt import QRenderWidget

    def shown(**options: Any) -> Any:
        widget = QRenderWidget(**options)
        widget.show()
        return widget

    return shown


def _qt_application() -> Any:
    """Returns the program's Qt application, if it has one."""
    for name in _QT:
        widgets = sys.modules.get(f"{name}.QtWidgets")
        if widgets is not None:
            return widgets.QApplication.instance()
    return None


def _take_events_of_qt() -> None:
    application = _qt_application()
    if application is not None:
        application.processEvents()
