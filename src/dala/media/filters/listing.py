"""The filters as a table of a page."""

from __future__ import annotations

from typing import Any

from dala.kernels.image.sizes import FORMS
from dala.media.filters.catalog import filters, range_of

_ORDERS = {"size": "(width, height)", "shape": "(height, width)"}


def markdown() -> str:
    """A table of all filters, by group."""
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
        params = [f"`{_argument(*each)}`{_allowed(*each)}" for each in item["params"].items()]
        takes = "<br>".join([*others, *params]) or "–"
        rows.append(f"| `{name}` | {takes} | {item['doc'].replace('|', '∣')} |")
    return "\n".join(rows[1:])


def _argument(name: str, param: dict[str, Any]) -> str:
    return f"{name}={param['default']!r}" if "default" in param else name


def _allowed(name: str, param: dict[str, Any]) -> str:
    """What a parameter may be, unless every filter that has it takes the same."""
    if name == "border" or param["kind"] == "flag":
        return ""
    if "choices" in param:
        return f" {', '.join(param['choices'])}"
    if param["kind"] in ("number", "whole"):
        rule = f"; {param['rule']}" if "rule" in param else ""
        return f" {'whole, ' * (param['kind'] == 'whole')}{range_of(param)}{rule}"
    if param["kind"] in _ORDERS:
        texts = f", or a text: {FORMS}" if param.get("relative") else ""
        return f" {_ORDERS[param['kind']]}{texts}"
    return "" if param["kind"] == name else f" {param['kind']}"
