"""Lists the filters, or describes one, as text or JSON."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any

from rich.table import Table

from dala.cli import parameter_values
from dala.cli.filter_syntax import known_filters, params_of
from dala.media.filters.catalog import FILTERS
from dala.media.filters.catalog import filters as catalog
from dala.media.filters.model_filters import filter_kernel
from dala.media.video.filtering.video_filters import TEMPORAL, TIMED
from dala.runtime.kernels.kernel import KERNELS

OWN, TIME = "yours", "time"


def everything(own: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Returns every filter by name: its group, parameters, and a line about what it does."""
    known = catalog()
    found = {}
    for name in known_filters(own):
        doc = known[name]["doc"] if name in known else _text(name).partition("\n")[0]
        group = known[name]["group"] if name in known else OWN if name in own else TIME
        found[name] = {"group": group, "params": params_of(name, own), "doc": doc}
    return found


def described(name: str, own: Sequence[str]) -> dict[str, Any]:
    """Returns the full description of one filter."""
    params_of(name, own)
    return {**everything(own)[name], "text": _text(name)}


def lines(own: Sequence[str]) -> Iterator[str]:
    """Yields two lines for each filter: its call, and what it does."""
    for name, item in everything(own).items():
        yield _call(name, item["params"])
        yield f"    {item['doc']}"


def table(own: Sequence[str]) -> Table:
    """Returns a table of the filters by group, for a terminal."""
    made = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    made.add_column(no_wrap=True)
    made.add_column(ratio=1)
    group = ""
    for name, item in everything(own).items():
        if item["group"] != group:
            if group:
                made.add_row("")
            group = item["group"]
            made.add_row(group.capitalize(), style="bold")
        made.add_row(f"  {name}", item["doc"])
    made.add_row("")
    made.add_row("", "dala filters NAME says what one of them takes.", style="dim")
    return made


def page(name: str, item: dict[str, Any], columns: int) -> Iterator[str]:
    """Yields the description of one filter, wrapped to `columns`."""
    params = item["params"]
    yield from wrap(f"{_call(name, params)}   ({item['group']})", columns, subsequent_indent="    ")
    for paragraph in item["text"].split("\n\n"):
        yield ""
        yield from wrap(paragraph, columns, initial_indent="    ", subsequent_indent="    ")
    if params:
        yield ""
        wide = max(map(len, params))
        for key, param in params.items():
            about = f"{param['doc']}: " if "doc" in param else ""
            line = f"    {key:<{wide}}  {about}{parameter_values.allowed(param)}; {_default(param)}"
            yield from wrap(line, columns, subsequent_indent=" " * (wide + 6))
    yield ""
    yield f"    dala process SOURCE TARGET -f {_example(name, params)}"


def _call(name: str, params: dict[str, dict[str, Any]]) -> str:
    said = [
        f"{key}={_shown(param['default'])}" if "default" in param else key
        for key, param in params.items()
    ]
    return f"{name}({', '.join(said)})"


def _default(param: dict[str, Any]) -> str:
    """Returns the text for a parameter's default."""
    if "default" not in param:
        return "needed"
    rule = f"; {param['rule']}" if "rule" in param else ""
    return f"default {_shown(param['default'])}{rule}"


def _shown(default: Any) -> str:
    """Returns a default as it would be typed."""
    if default is None:
        return "auto"
    if isinstance(default, bool):
        return "yes" if default else "no"
    return f"{default:.4g}" if isinstance(default, float) else str(default)


_SAMPLES = {
    "image": "picture.png",
    "table": "warm.cube",
    "color": "#00b140",
    "matrix": "1:0:10/0:1:20",
    "size": "1280x720",
    "flag": "yes",
    "text": "Hello",
    "file": "logo.png",
    "model": "blazeface",
}


def _example(name: str, params: dict[str, dict[str, Any]]) -> str:
    """Returns an example of the filter as it is typed, with its required parameters."""
    chosen = [key for key, param in params.items() if "default" not in param] or list(params)[:1]
    said = [f"{key}={_sample(params[key])}" for key in chosen]
    return ":".join([name, ",".join(said)]) if said else name


def _sample(param: dict[str, Any]) -> str:
    kind, default = param["kind"], param.get("default")
    if kind in _SAMPLES:
        return _SAMPLES[kind]
    if "choices" in param:
        return str(next(item for item in param["choices"] if item != default))
    if default is not None:
        return _shown(default)
    if "least" in param:
        middle = (param["least"] + param["most"]) / 4
        return f"{round(middle) if kind == 'integer' else round(middle, 2):g}"
    return "1"


def _text(name: str) -> str:
    """Returns a filter's whole docstring."""
    if name in KERNELS or name in FILTERS:
        return inspect.cleandoc(filter_kernel(name).doc)
    made = TEMPORAL.get(name) or TIMED.get(name)
    return inspect.getdoc(made) or "A filter that knows of time"
