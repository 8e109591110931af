"""Portable GPU compute for Python: kernels written once as Python functions, run on any device.

The names of the kernel language live here. Buffers and launches are in `dala.compute`, image
filters in `dala.filters`, models in `dala.models`, windows in `dala.surfaces`, files and video in
`dala.media`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_MODULES = ("compute", "errors", "filters", "gpu", "media", "ml", "models", "surfaces")
_DECORATORS = ("function", "kernel")

if TYPE_CHECKING:
    from dala import compute as compute
    from dala import errors as errors
    from dala import filters as filters
    from dala import gpu as gpu
    from dala import media as media
    from dala import ml as ml
    from dala import models as models
    from dala import surfaces as surfaces
    from dala._typing import *  # noqa: F403
    from dala.runtime.kernels.kernel import function as function
    from dala.runtime.kernels.kernel import kernel as kernel
else:  # type checkers would take any name for one of these

    def __getattr__(name: str) -> Any:
        """Names are loaded when they are first used, so that importing dala stays cheap."""
        if name in _DECORATORS:
            found: Any = getattr(importlib.import_module("dala.runtime.kernels.kernel"), name)
        elif name in (*_MODULES, "lang"):
            found = importlib.import_module(f"dala.{name}")
        else:
            names = importlib.import_module("dala.lang.language_names").NAMES
            if name not in names:
                raise AttributeError(f"module 'dala' has no attribute {name!r}")
            found = names[name]
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    names = importlib.import_module("dala.lang.language_names").NAMES
    return sorted([*names, *_MODULES, *_DECORATORS, "__version__"])
