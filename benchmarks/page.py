"""docs/performance.md: every row that was measured, the losses among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks import machine
from benchmarks.harness import Missing, Outcome, Result, show_bar, show_seconds

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"


def write(groups: Mapping[str, Mapping[str, Outcome]], lines: Mapping[str, list[str]]) -> None:
    """Put these groups into the page, each with its summary; all else stays as it was."""
    page = PAGE.read_text(encoding="utf-8")
    for name, results in groups.items():
        page = placed(page, name, section(name, results, lines.get(name, [])))
    PAGE.write_text(page, encoding="utf-8")


def placed(page: str, name: str, text: str) -> str:
    """The page with a text between the marks of that name; at its end where it has none."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, mark, rest = page.partition(begin)
    after = rest.partition(end)[2] if mark else "\n"
    gap = "" if mark else "\n"
    return f"{before}{gap}{begin}\n{text}\n{end}{after}"


def section(name: str, results: Mapping[str, Outcome], lines: Iterable[str]) -> str:
    found = [item for item in results.values() if isinstance(item, Result)]
    missing = [item for item in results.values() if isinstance(item, Missing)]
    taken = {part for item in found for part in (*item.others, item.work)}
    known = {each for each in machine.versions() if any(each in part for part in taken)}
    text = [f"## {name.capitalize()}", "", machine.said(known), ""]
    text += [f"- {line.partition(': ')[2]}" for line in lines]
    text += ["", *table(results)] if lines else table(results)
    if missing:
        text += ["", "Not measured: " + "; ".join(f"{x.work} ({x.missing})" for x in missing) + "."]
    return "\n".join(text)


def table(results: Mapping[str, Outcome]) -> list[str]:
    """A line for each row; a ratio is bold where its bar does not hold."""
    lines = [
        "| row | dala | peer | ratio | middle half | bar | within |",
        "|---|---|---|---|---|---|---|",
    ]
    for item in results.values():
        if isinstance(item, Result):
            lines.append("| " + " | ".join(cells(item)) + " |")
    return lines


def cells(item: Result) -> list[str]:
    low, high = item.spread
    within = "" if item.within is None else f"{item.within:.2g}"
    if item.ours_s is None:
        return [item.work, f"{high:g}", "", "", f"{low:g} – {high:g}", f"≤ {item.bar:g}", within]
    ours = show_seconds(item.ours_s)
    if item.ratio is None or item.peer_s is None:
        spread = f"{show_seconds(low)} – {show_seconds(high)}"
        return [item.work, ours, "", "", spread, f"≤ {show_bar(item.bar)}", within]
    ratio = f"{item.ratio:.2f}" if item.holds else f"**{item.ratio:.2f}**"
    peer = f"{show_seconds(item.peer_s)} {item.peer_name}".strip()
    return [item.work, ours, peer, ratio, f"{low:.2f} – {high:.2f}", f"≤ {item.bar:.2f}", within]
