"""The names of the kernel language, for the kernels in here: the package itself lies above them."""

from __future__ import annotations

from typing import Any

from dala.lang.language_names import NAMES


def __getattr__(name: str) -> Any:
    try:
        return NAMES[name]
    except KeyError:
        raise AttributeError(f"the kernel language has no name {name!r}") from None
