"""Surfaces: RGBA pixels on a device, shown in a window, in a notebook, or off-screen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from dala.devices import Device
from dala.errors import (
    ArgumentError,
    DeviceError,
    DeviceLostError,
    DtypeError,
    FreedError,
    ShapeError,
)
from dala.images.frames import flat_bytes
from dala.kernels.image.paint import paint_of
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.arguments import Params
from dala.runtime.kernels.kernel import Kernel
from dala.surfaces.pixel_stores import Store, checked_size, store_for

Kind = Literal["window", "offscreen", "notebook"]
EVENTS = ("resize", "key", "pointer", "close")


class Canvas(Protocol):
    """What shows a surface: a window or a notebook's widget."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in physical pixels."""

    @property
    def closed(self) -> bool:
        """Whether the user or `close` has closed it."""

    def present(self) -> None:
        """Shows the surface's current pixels."""

    def resize(self, width: int, height: int) -> None:
        """Adapts to the surface's new size."""

    def poll(self) -> None:
        """Dispatches pending events to the surface's handlers."""

    def close(self) -> None:
        """Closes it; does nothing if it is closed."""


class Overlay(Protocol):
    """A pending drawing over a surface's pixels."""

    def draw(self, surface: Surface) -> None:
        """Draws it, using `surface.buffer()` and `surface.show(buffer)`."""


class Surface:
    """u8 RGBA pixels on a device, and the window or widget that shows them.

    `kind` is "window", "notebook" or "offscreen"; `why` says why "auto" became off-screen.
    `pending` is drawn before the pixels are read or shown, and dropped when all of them are
    replaced. `kept` is the drawing state.
    """

    def __init__(self, device: Device, width: int, height: int, title: str = "dala") -> None:
        self._size = checked_size("create_surface", device, width, height)
        self.title = title
        self.kind: Kind = "offscreen"
        self.why = ""
        self.pending: Overlay | None = None
        self.kept: object | None = None
        self._device = device
        self._store: Store | None = store_for(device, *self._size)
        self._canvas: Canvas | None = None
        self._handlers: dict[str, list[Callable[[Any], object]]] = {}

    @property
    def device(self) -> str:
        """The id of the device that holds the pixels."""
        return self._device.id

    @property
    def width(self) -> int:
        return self._size[0]

    @property
    def height(self) -> int:
        return self._size[1]

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of its pixels as an array or buffer."""
        return self.height, self.width, 4

    @property
    def destroyed(self) -> bool:
        return self._store is None

    @property
    def closed(self) -> bool:
        """Whether it was destroyed, or its window was closed."""
        return self.destroyed or (self._canvas is not None and self._canvas.closed)

    @property
    def store(self) -> Store:
        """The storage of the pixels; raises FreedError if the surface was destroyed."""
        if self._store is None:
            raise FreedError(
                f"{self!r} cannot be used: it was destroyed. Destroy a surface after its last use, "
                f"or make another with create_surface()."
            )
        return self._store

    # -- pixels ----------------------------------------------------------------------------------

    def pixels(self) -> np.ndarray:
        """Returns the pixels as a new u8 array, (height, width, 4)."""
        return self._drawn().read()

    def buffer(self) -> Buffer:
        """Returns the pixels as a buffer on the surface's device.

        On the CPU it shares the surface's memory; of a texture it is a copy on the device.
        """
        return self._drawn().buffer()

    def set_pixels(self, pixels: Any) -> None:
        """Replaces all pixels with a u8 array (height, width, 4), its bytes, or a buffer."""
        if isinstance(pixels, Buffer):
            self._fill("set_pixels", pixels)
            return
        store = self.store
        store.write(self._array("set_pixels", pixels))
        self.pending = None

    def show(self, buffer: Buffer) -> None:
        """Replaces all pixels with a buffer's, by one copy on the device."""
        self._fill("show", buffer)

    def run(
        self,
        kernel: Kernel,
        inputs: Sequence[Buffer],
        output: Buffer,
        params: Params | None = None,
    ) -> None:
        """Computes the output with a kernel, and replaces all pixels with it."""
        self.check_buffer("run_to_surface", output)
        self.settle()  # a kernel may read the surface's own buffer
        self.store.run(kernel, inputs, output, params)

    def clear(self, color: Any = (0.0, 0.0, 0.0, 0.0)) -> None:
        """Fills the surface with a color: numbers in 0..1, a name, or a code such as "#ff8000"."""
        store = self.store
        store.clear(paint_of("clear", "color", color))
        self.pending = None

    def settle(self) -> None:
        """Draws what is pending."""
        pending, self.pending = self.pending, None
        if pending is not None:
            pending.draw(self)

    def check_buffer(self, what: str, buffer: Any) -> None:
        """Raises unless it is a buffer of the surface's shape on its device."""
        _ = self.store
        if not isinstance(buffer, Buffer):
            raise ArgumentError(
                f"{what}: what is shown is a Buffer of u8 {self.shape}, not "
                f"{type(buffer).__name__}: set_pixels() takes arrays."
            )
        self._check_kind(what, buffer.dtype, buffer.shape)
        there, here = buffer.memory.device, self._device
        if there is here:
            return
        for gone, device in (("the buffer", there), ("the surface", here)):
            if device.lost:
                raise DeviceLostError(
                    f"{what}: {gone} was on {device.id}, which was lost with all that it held: "
                    f"make it again."
                )
        raise DeviceError(
            f"{what}: the buffer is on {there.id}, but the surface is on {here.id}: move it with "
            f"buffer.to({here.id!r}), or make the surface in `with compute.device({there.id!r})`."
        )

    def _array(self, what: str, pixels: Any) -> np.ndarray:
        """Returns the given pixels as a contiguous array of the surface's shape."""
        if isinstance(pixels, bytes | bytearray | memoryview):
            flat = flat_bytes(pixels)
            if flat.size != math.prod(self.shape):
                raise ShapeError(
                    f"{what}: {flat.size:,} bytes were given, but {self!r} has {self.width} × "
                    f"{self.height} pixels of 4 bytes: {math.prod(self.shape):,}."
                )
            return flat
        if not isinstance(pixels, np.ndarray):
            raise ArgumentError(
                f"{what}: pixels are an array of u8 {self.shape}, their bytes or a Buffer, not "
                f"{type(pixels).__name__}: give np.asarray(pixels)."
            )
        dtype = "u8" if pixels.dtype == np.uint8 else str(pixels.dtype)
        self._check_kind(what, dtype, pixels.shape)
        return np.ascontiguousarray(pixels)

    def _check_kind(self, what: str, dtype: str, shape: tuple[int, ...]) -> None:
        if shape != self.shape:
            raise ShapeError(
                f"{what}: the pixels are {shape}, but {self!r} takes {self.shape}: (height, width, "
                f"4)."
            )
        if dtype != "u8":
            raise DtypeError(
                f"{what}: the pixels are {dtype}, but {self!r} takes u8 in 0..255: convert them, "
                f"or have the kernel write into a buffer of u8."
            )

    def _fill(self, what: str, buffer: Buffer) -> None:
        self.check_buffer(what, buffer)
        self.store.fill(buffer.memory)
        self.pending = None

    def _drawn(self) -> Store:
        store = self.store
        self.settle()
        return store

    # -- showing ---------------------------------------------------------------------------------

    def resize(self, width: int, height: int) -> None:
        """Resizes the surface; every pixel becomes transparent black, as in a new one.

        Does nothing if it has that size.
        """
        _ = self.store
        size = checked_size("resize_surface", self._device, width, height)
        if size == self._size:
            return
        self._store = store_for(self._device, *size)
        self._size = size
        self.pending = None
        if self._canvas is not None:
            self._canvas.resize(*size)

    def present(self) -> None:
        """Shows the current pixels; does nothing off-screen."""
        self._drawn()
        if self._canvas is not None and not self._canvas.closed:
            self._canvas.present()

    def destroy(self) -> None:
        """Closes its window and frees its memory; does nothing if it is destroyed."""
        canvas, self._canvas = self._canvas, None
        self._store = self.pending = self.kept = None
        if canvas is not None:
            canvas.close()

    def on(self, event: str, handler: Callable[[Any], object]) -> None:
        """Calls `handler(event)` when the window is resized or closed, or a key or pointer used.

        `event` is "resize", "key", "pointer" or "close".
        """
        _ = self.store
        if event not in EVENTS:
            raise ArgumentError(f"on: event {event!r} is not one of {', '.join(EVENTS)}.")
        if not callable(handler):
            raise ArgumentError(f"on: a handler is a function of an event, not {handler!r}.")
        self._handlers.setdefault(event, []).append(handler)

    def emit(self, event: str, given: Any) -> None:
        """Calls the handlers of an event, in the order in which they were added."""
        for handler in list(self._handlers.get(event, ())):
            handler(given)

    def _repr_png_(self) -> bytes:
        from dala.images.text_rendering import require_pillow
        from dala.media.pictures.codec import encode

        require_pillow("a surface in a notebook")
        return encode(self.pixels(), "PNG", "a surface", None)[0]

    def _repr_mimebundle_(self, **given: Any) -> Any:
        """Returns a live widget if the notebook has one, else a still picture."""
        display = getattr(self._canvas, "mimebundle", None)
        return None if self.destroyed or display is None else display()

    def __repr__(self) -> str:
        state = ", destroyed" if self.destroyed else ", closed" if self.closed else ""
        return f"<Surface {self.width} × {self.height} {self.kind} {self.device}{state}>"


def require_surface(given: Any) -> Surface:
    """Returns the surface; raises ArgumentError for anything else."""
    if isinstance(given, Surface):
        return given
    raise ArgumentError(
        f"a surface is needed, but {type(given).__name__} was given: make one with "
        f"create_surface(width, height)."
    )
