"""Presenters draw a surface into a canvas: with the GPU that holds it, or as a bitmap."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dala.devices.webgpu.adapters import quiet
from dala.errors import DeviceError, DeviceLostError
from dala.surfaces.events import Size, fitted
from dala.surfaces.pixel_stores import TextureStore

if TYPE_CHECKING:
    from dala.devices.webgpu.device import WebGpu
    from dala.surfaces.surface import Surface

_DRAW_TEXTURE = """
@group(0) @binding(0) var picture: texture_2d<f32>;
@group(0) @binding(1) var nearby: sampler;
struct Corner { @builtin(position) place: vec4<f32>, @location(0) at: vec2<f32> }

@vertex fn corner(@builtin(vertex_index) number: u32) -> Corner {
    let at = vec2<f32>(f32((number << 1u) & 2u), f32(number & 2u));
    return Corner(vec4<f32>(at * vec2<f32>(2.0, -2.0) + vec2<f32>(-1.0, 1.0), 0.0, 1.0), at);
}

@fragment fn pixel(given: Corner) -> @location(0) vec4<f32> {
    return vec4<f32>(textureSample(picture, nearby, given.at).rgb, 1.0);
}
"""


class CannotDraw(DeviceError):
    """The GPU that holds a surface cannot draw into windows of this desktop."""


class Presenter(Protocol):
    """Draws a surface into a canvas; called while the canvas is being drawn."""

    def draw(self, surface: Surface) -> None:
        """Draws the current pixels, letterboxed on opaque black."""


class TexturePresenter:
    """Draws a surface's texture in a render pass on the device that holds it."""

    def __init__(self, context: Any, device: WebGpu) -> None:
        self._context = context
        self._device = device
        gpu = device.gpu
        with device.guard(), device.lock:
            # A non-sRGB format shows the pixels unconverted.
            best: str = context.get_preferred_format(gpu.adapter)
            form = best.removesuffix("-srgb")
            context.configure(device=gpu, format=form)
            module = gpu.create_shader_module(code=_DRAW_TEXTURE)
            self._pipeline = gpu.create_render_pipeline(
                layout="auto",
                vertex={"module": module, "entry_point": "corner"},
                fragment={"module": module, "entry_point": "pixel", "targets": [{"format": form}]},
                primitive={"topology": "triangle-list"},
            )
            self._sampler = gpu.create_sampler(mag_filter="nearest", min_filter="linear")
        self._view: Any = None
        self._group: Any = None

    def draw(self, surface: Surface) -> None:
        store, device = surface.store, self._device
        assert isinstance(store, TextureStore)
        device.check()
        with device.guard(), device.lock:
            device.flush()  # submits earlier commands first
            screen = self._context.get_current_texture()
            encoder = device.gpu.create_command_encoder()
            attachment = {
                "view": screen.create_view(),
                "load_op": "clear",
                "store_op": "store",
                "clear_value": (0.0, 0.0, 0.0, 1.0),
            }
            drawn = encoder.begin_render_pass(color_attachments=[attachment])
            box = fitted((surface.width, surface.height), screen.size[:2])
            drawn.set_viewport(box.x, box.y, box.width, box.height, 0.0, 1.0)
            drawn.set_pipeline(self._pipeline)
            drawn.set_bind_group(0, self._bound(store.texture.view))
            drawn.draw(3)
            drawn.end()
            device.submit([encoder.finish()])

    def _bound(self, view: Any) -> Any:
        """Returns the bind group for a texture view, which changes when the surface is resized."""
        if view is not self._view:
            entries = [
                {"binding": 0, "resource": view},
                {"binding": 1, "resource": self._sampler},
            ]
            layout = self._pipeline.get_bind_group_layout(0)
            self._group = self._device.gpu.create_bind_group(layout=layout, entries=entries)
            self._view = view
        return self._group


class BitmapPresenter:
    """Hands the pixels to the canvas as a bitmap."""

    def __init__(self, canvas: Any) -> None:
        self._canvas = canvas
        # Canvases without native bitmaps open a GPU for them.
        with quiet() if "wgpu" in sys.modules else nullcontext():
            self._context = canvas.get_bitmap_context()

    def draw(self, surface: Surface) -> None:
        self._context.set_bitmap(letterboxed(surface.pixels(), self._canvas.get_physical_size()))


def letterboxed(pixels: np.ndarray, size: Size) -> np.ndarray:
    """Returns the pixels letterboxed on opaque black, scaled by nearest neighbor, alpha ignored.

    If the size is the same, the given array itself is made opaque: pass a copy.
    """
    height, width = pixels.shape[:2]
    if (width, height) == size:
        pixels[..., 3] = 255
        return pixels
    box = fitted((width, height), size)
    rows = (2 * np.arange(box.height) + 1) * height // (2 * box.height)
    columns = (2 * np.arange(box.width) + 1) * width // (2 * box.width)
    framed = np.zeros((size[1], size[0], 4), np.uint8)
    framed[box.y : box.y + box.height, box.x : box.x + box.width] = pixels[rows][:, columns]
    framed[..., 3] = 255
    return framed


def drawn_by_gpu(canvas: Any, store: TextureStore) -> Presenter:
    """Returns a presenter for a texture; raises CannotDraw if its GPU cannot draw here."""
    device = store.texture.device
    try:
        return TexturePresenter(canvas.get_wgpu_context(), device)
    except DeviceLostError:
        raise
    except (RuntimeError, ValueError) as error:
        raise CannotDraw(
            f"{device.id} ({device.name}) cannot draw into this window: {error}"
        ) from error


def shown_as_bitmap(canvas: Any) -> Presenter:
    """Returns a presenter for any surface; raises DeviceError if the canvas has no bitmaps."""
    try:
        return BitmapPresenter(canvas)
    except (RuntimeError, TypeError) as error:
        raise DeviceError(
            f"no window can be opened: what is in it is drawn through WebGPU, and that "
            f"fails: {error}"
        ) from error
