"""Portable GPU compute for Python: kernels written once as Python functions, run on any device.

The names of the kernel language live here; buffers and launches are in `dala.gpu.compute`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dala._typing import *  # noqa: F403
    from dala.runtime.kernels.kernel import function as function
    from dala.runtime.kernels.kernel import kernel as kernel


def __getattr__(name: str) -> Any:
    """Names are loaded when they are first used, so that importing dala stays cheap."""
    if name in ("kernel", "function"):
        found: Any = getattr(importlib.import_module("dala.runtime.kernels.kernel"), name)
    elif name in ("errors", "gpu", "lang", "media", "ml"):
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
    return sorted({*globals(), *names, "kernel", "function", "errors", "gpu", "media", "ml"})
