"""How much of a download has come: a bar on a terminal, and nothing elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dala.ml.sources.downloads import Progress

_BAR_COLUMNS = 20


def silent(count: int, total: int) -> None:
    """For those who do not want to be told."""


@contextmanager
def bar(title: str) -> Iterator[Progress]:
    """A bar on standard error, gone when the download is over."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield silent
        return
    from rich import progress as rich

    columns = (
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(_BAR_COLUMNS),
        rich.DownloadColumn(),
        rich.TransferSpeedColumn(),
    )
    with rich.Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task(title, total=None)

        def move(count: int, total: int) -> None:
            bars.update(task, completed=min(count, total), total=total)

        yield move
