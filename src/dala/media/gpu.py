"""Image filters on any device.

Every filter of `filters()` is a function here: `blur(image, radius=3)`. An image is an array, bytes
(followed by their width and height), a Pillow image or a Buffer, and comes back as the same kind.
Type checkers and editors read gpu.pyi, which `tools/generate` makes of the declarations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dala.media.filters.calls import (
    apply_filter,
    filter_chain,
    filter_function,
    process_frame,
    process_frame_async,
    start_pipeline,
    stop_pipeline,
)
from dala.media.filters.catalog import FILTERS, filters
from dala.media.filters.context import Context
from dala.runtime.commands.result_command import ResultCommand

__all__ = [
    "Context",
    "ResultCommand",
    "apply_filter",
    "filter_chain",
    "filters",
    "process_frame",
    "process_frame_async",
    "start_pipeline",
    "stop_pipeline",
]


def __getattr__(name: str) -> Callable[..., Any]:
    if name in FILTERS:
        return filter_function(name)
    raise AttributeError(f"module 'dala.media.gpu' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *FILTERS])
