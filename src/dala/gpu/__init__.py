"""Compute on any device, and show the results.

`dala.gpu.compute` has buffers and kernels. All other names are those of `dala.surfaces`: pictures
in a window, in a notebook, or off-screen.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dala.gpu import compute as compute
    from dala.surfaces import *  # noqa: F403
else:  # type checkers would take any name for one of these

    def __getattr__(name: str) -> Any:
        """Loads names on first use, so that programs that only compute do not load surfaces."""
        if name == "compute":
            return importlib.import_module("dala.gpu.compute")
        try:
            found = getattr(importlib.import_module("dala.surfaces"), name)
        except AttributeError:
            raise AttributeError(f"module 'dala.gpu' has no attribute {name!r}") from None
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return ["compute", *dir(importlib.import_module("dala.surfaces"))]
