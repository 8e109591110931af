"""The gallery's HTML page, with inline style and script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

from dala.base.record import record
from dala.media.filters.catalog import range_of
from dala.media.showcase.gallery_style import SCRIPT, STYLE

MARK = '<meta name="generator" content="dala gallery">'
"""The mark by which a page is recognized as a gallery."""


@record
class Card:
    """A filter on the page; sizes are (width, height), pictures are files next to the page."""

    name: str
    group: str
    doc: str
    inputs: tuple[str, ...]
    used: Mapping[str, Any]
    params: Mapping[str, Mapping[str, Any]]
    before: str
    after: str
    size: tuple[int, int]
    frame: tuple[int, int]


def page(cards: Sequence[Card], *, version: str, device: str) -> str:
    """Returns the page's HTML, with all texts escaped."""
    groups: dict[str, list[Card]] = {}
    for card in cards:
        groups.setdefault(card.group, []).append(card)
    links = "".join(
        f'<a href="#group-{_anchor(group)}">{escape(group)} <span>{len(inside)}</span></a>'
        for group, inside in groups.items()
    )
    sections = "".join(_section(group, inside) for group, inside in groups.items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{MARK}
<title>dala · filters</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>Every filter, before and after</h1>
<p>{len(cards)} filters of <code>dala.media.gpu</code>, each on the sample picture that dala paints
itself. Drag across a picture, or focus it and use the arrow keys.</p>
<p class="made">Rendered by dala {escape(version)} on {escape(device)}.</p>
</header>
<nav aria-label="Groups"><div>{links}</div>
<input id="find" type="search" placeholder="Find a filter" aria-label="Find a filter">
<button id="look" type="button" aria-label="Switch between light and dark">◐</button></nav>
<main>{sections}
<p id="none" hidden>No filter of that name.</p>
</main>
<footer>The pictures are WebP files next to this page; nothing is loaded from elsewhere.</footer>
<script>{SCRIPT}</script>
</body>
</html>
"""


def _section(group: str, cards: Sequence[Card]) -> str:
    inside = "".join(_card(card) for card in cards)
    anchor = _anchor(group)
    return (
        f'\n<section id="group-{anchor}" aria-labelledby="title-{anchor}">'
        f'<h2 id="title-{anchor}">{escape(group)}</h2><div class="grid">{inside}</div></section>'
    )


def _card(card: Card) -> str:
    name, doc = escape(card.name), escape(card.doc)
    width, height = card.frame
    scale = min(1.0, width / card.size[0], height / card.size[1])
    shown = f"width:{100 * scale * card.size[0] / width:.2f}%"
    note, at = "", 50
    if card.size != card.frame:
        note = f'<p class="note">{width} × {height} becomes {card.size[0]} × {card.size[1]}</p>'
        at = 10  # what is smaller would be half hidden
    find = escape(f"{card.name} {card.group} {card.doc}".lower())
    return f"""
<article id="{_anchor(card.name)}" data-find="{find}">
<figure style="aspect-ratio:{width}/{height}">
<img class="after" src="{_link(card.after)}" alt="{name}: after" loading="lazy" style="{shown}">
<div class="before"><img src="{_link(card.before)}" alt="{name}: before" loading="lazy"></div>
<input type="range" min="0" max="100" value="{at}" step="0.5" aria-label="{name}: before and after">
<i aria-hidden="true"></i><b>before</b><b>after</b>
</figure>
<h3><a href="#{_anchor(card.name)}">{name}</a></h3>
<p>{doc}</p>{note}
<pre><code>{escape(call_text(card))}</code></pre>{_params(card)}
</article>"""


def call_text(card: Card) -> str:
    """Returns the call that produces the picture, as Python source."""
    given = list(card.inputs)
    keywords = {}
    for name, value in card.used.items():
        if name.isidentifier() and name not in _KEYWORDS:
            given.append(f"{name}={_value_text(value)}")
        else:
            keywords[name] = value
    if keywords:
        inside = ", ".join(f'"{name}": {_value_text(value)}' for name, value in keywords.items())
        given.append(f"**{{{inside}}}")
    return f"{card.name}({', '.join(given)})"


_KEYWORDS = frozenset({"from", "in", "is", "lambda"})


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return repr(value)


def _params(card: Card) -> str:
    if not card.params:
        return ""
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(_range_text(about))}</td>"
        f"<td>{escape(_default_text(about))}</td></tr>"
        for name, about in card.params.items()
    )
    return (
        "\n<details><summary>Parameters</summary><table><thead><tr><th>name</th><th>values</th>"
        f"<th>default</th></tr></thead><tbody>{rows}</tbody></table></details>"
    )


def _range_text(about: Mapping[str, Any]) -> str:
    if "choices" in about:
        return ", ".join(map(str, about["choices"]))
    if about["kind"] in ("number", "integer"):
        return range_of(about)
    return {"flag": "True or False"}.get(about["kind"], str(about["kind"]))


def _default_text(about: Mapping[str, Any]) -> str:
    if "default" not in about:
        return "must be given"
    value = about["default"]
    shown = f"{value:.4g}" if isinstance(value, float) else "–" if value is None else str(value)
    return f"{shown}; {about['rule']}" if "rule" in about else shown


def _anchor(text: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower())


def _link(name: str) -> str:
    return escape(quote(name))
