"""Every filter, as its kernel declares it: for command lines, pages, documentation and stubs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dala.kernels  # noqa: F401  (has the filters declared)
from dala.kernels.base import builtin
from dala.kernels.base.limits import Limit
from dala.kernels.base.parameters import DeclaredParameter
from dala.media.filters.model_filters import filter_kernel, filter_params, optional_images
from dala.ml.models.annotation import DETECT

GROUPS = ("color", "smoothing", "detail", "compositing", "geometry", "models")
"""In the order in which they are listed."""


def _grouped() -> dict[str, str]:
    found = {name: kernel.group for name, kernel in (*builtin.FILTERS.items(), ("detect", DETECT))}
    return dict(sorted(found.items(), key=lambda item: (GROUPS.index(item[1]), item[0])))


FILTERS = _grouped()
"""The group of each filter, by name, in the order in which they are listed."""


def filters() -> dict[str, dict[str, Any]]:
    """Returns every filter by name: its group, its images, its parameters, and what it does.

    A parameter has a kind (number, integer, choice, flag, color, matrix, table, size, shape,
    model), what it does (`doc`), a `unit` where it is in one, a default unless it must be given,
    and `least` and `most`, between which a slider would go, or `choices`. What is beyond its
    `limits` (`least` or `above`, and `most`) is refused. A `relative` size may be a text such as
    "50%". A `rule` says what it is instead of the default where others are given without it.
    `optional` are the images that it can do without.

    >>> from dala.media import gpu
    >>> gpu.filters()["gamma"]["params"]["value"]["limits"]
    {'above': 0}
    """
    return {name: _described(name, group) for name, group in FILTERS.items()}


def range_of(param: Mapping[str, Any]) -> str:
    """Returns what a described number can be, and what it usually is, in words; "" for any number.

    >>> range_of(filters()["gamma"]["params"]["value"])
    'above 0, usually 0.1 to 5'
    """
    usual = f"usually {param['least']:g} to {param['most']:g}" if "least" in param else ""
    if "limits" not in param:
        return usual
    limit = str(Limit.described(param["limits"]))
    return limit if usual in ("", f"usually {limit}") else f"{limit}, {usual}"


def _described(name: str, group: str) -> dict[str, Any]:
    kernel = filter_kernel(name)
    return {
        "group": group,
        "inputs": list(kernel.inputs),
        "optional": list(optional_images(name)),
        "params": {
            # A kernel that was registered in place of a filter declares none.
            item.name: item.about.describe()
            if isinstance(item, DeclaredParameter)
            else {"kind": "any"} | ({} if item.required else {"default": item.default})
            for item in filter_params(name)
        },
        "doc": kernel.describe()["doc"],
    }
