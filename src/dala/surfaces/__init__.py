"""Surfaces: pixels on a device, shown in windows, in notebooks, or off-screen."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dala.surfaces.drawing import annotate as annotate
    from dala.surfaces.drawing import batch as batch
    from dala.surfaces.drawing import draw_circle as draw_circle
    from dala.surfaces.drawing import draw_image as draw_image
    from dala.surfaces.drawing import draw_line as draw_line
    from dala.surfaces.drawing import draw_rect as draw_rect
    from dala.surfaces.drawing import draw_round_rect as draw_round_rect
    from dala.surfaces.drawing import draw_text as draw_text
    from dala.surfaces.drawing import fill_circle as fill_circle
    from dala.surfaces.drawing import fill_rect as fill_rect
    from dala.surfaces.drawing import fill_round_rect as fill_round_rect
    from dala.surfaces.drawing import load_image as load_image
    from dala.surfaces.drawing import set_clip as set_clip
    from dala.surfaces.frame_loop import Frame as Frame
    from dala.surfaces.frame_loop import LoopStats as LoopStats
    from dala.surfaces.frame_loop import loop as loop
    from dala.surfaces.surface import Surface as Surface
    from dala.surfaces.surface_functions import clear as clear
    from dala.surfaces.surface_functions import create_surface as create_surface
    from dala.surfaces.surface_functions import destroy_surface as destroy_surface
    from dala.surfaces.surface_functions import get_pixels as get_pixels
    from dala.surfaces.surface_functions import present as present
    from dala.surfaces.surface_functions import resize_surface as resize_surface
    from dala.surfaces.surface_functions import save as save
    from dala.surfaces.surface_functions import set_pixels as set_pixels

_HOMES = {
    "Frame": "frame_loop",
    "LoopStats": "frame_loop",
    "Surface": "surface",
    "annotate": "drawing",
    "batch": "drawing",
    "clear": "surface_functions",
    "create_surface": "surface_functions",
    "destroy_surface": "surface_functions",
    "draw_circle": "drawing",
    "draw_image": "drawing",
    "draw_line": "drawing",
    "draw_rect": "drawing",
    "draw_round_rect": "drawing",
    "draw_text": "drawing",
    "fill_circle": "drawing",
    "fill_rect": "drawing",
    "fill_round_rect": "drawing",
    "get_pixels": "surface_functions",
    "load_image": "drawing",
    "loop": "frame_loop",
    "present": "surface_functions",
    "resize_surface": "surface_functions",
    "save": "surface_functions",
    "set_clip": "drawing",
    "set_pixels": "surface_functions",
}


if not TYPE_CHECKING:  # who else would take any name for one of these

    def __getattr__(name: str) -> Any:
        """Loads names on first use, so that programs that only compute do not load surfaces."""
        if name not in _HOMES:
            raise AttributeError(f"module 'dala.surfaces' has no attribute {name!r}")
        found = getattr(importlib.import_module(f"dala.surfaces.{_HOMES[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return list(_HOMES)
