"""What was measured on: the processor, its threads, and the versions of all who took part."""

from __future__ import annotations

import datetime
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks import THREADS
from benchmarks.peers import PACKAGES


def processor() -> str:
    """The name of the processor, as its maker gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def versions() -> dict[str, str]:
    """The peers that are installed."""
    found = {"NumPy": version("numpy")}
    for name, package in PACKAGES.values():
        try:
            found[name] = version(package)
        except PackageNotFoundError:
            continue
    return found


def not_installed() -> list[str]:
    return [name for name, _ in PACKAGES.values() if name not in versions()]


def said(names: set[str]) -> str:
    """A line about this machine, today, and the versions of those who are named."""
    taken = [f"{name} {number}" for name, number in versions().items() if name in names]
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return (
        f"Measured on {today} with {THREADS} threads of {processor()}, Python "
        f"{platform.python_version()}, dala {version('dala-gpu')}"
        + (f" against {', '.join(taken)}." if taken else ".")
    )
