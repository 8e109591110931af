"""The filters as a table of a page."""

from __future__ import annotations

from typing import Any

from dala.kernels.image.sizes import FORMS
from dala.media.filters.catalog import filters, range_of

_SHARED = ("border", "premultiply")
"""Parameters that mean the same wherever they are, which the page says once."""


def markdown() -> str:
    """Returns a table of all filters, by group."""
    rows, group = [], ""
    for name, item in filters().items():
        if item["group"] != group:
            group = item["group"]
            rows += [
                "",
                f"### {group.capitalize()}",
                "",
                "| filter | takes | makes |",
                "|---|---|---|",
            ]
        others = [
            f"**{other}**{' (or a model)' * (other in item['optional'])}"
            for other in item["inputs"][1:]
        ]
        params = [
            f"`{_argument(*each)}` {each[1]['doc']}{_allowed(*each)}"
            for each in item["params"].items()
            if each[0] not in _SHARED
        ]
        params += [f"`{_argument(*each)}`" for each in item["params"].items() if each[0] in _SHARED]
        takes = "<br>".join([*others, *params]) or "–"
        rows.append(f"| `{name}` | {takes} | {item['doc'].replace('|', '∣')} |")
    return "\n".join(rows[1:])


def _argument(name: str, param: dict[str, Any]) -> str:
    return f"{name}={param['default']!r}" if "default" in param else name


def _allowed(name: str, param: dict[str, Any]) -> str:
    """Returns what a parameter may be, in parentheses."""
    said = ""
    if "choices" in param:
        said = ", ".join(param["choices"])
    elif param["kind"] in ("number", "integer"):
        parts = ["integer" * (param["kind"] == "integer"), range_of(param)]
        said = "; ".join([", ".join(filter(None, parts)), *filter(None, [param.get("rule")])])
    elif param.get("relative"):
        said = f"or a text: {FORMS}"
    return f" ({said})" if said else ""
