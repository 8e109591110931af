"""The folder in which dala keeps what it would otherwise compute again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_OFF = ("", "0", "off", "none")


def folder() -> Path | None:
    """Returns the folder of the cache, or None if `DALA_CACHE_DIR` turns it off."""
    chosen = os.environ.get("DALA_CACHE_DIR")
    if chosen is not None:
        return None if chosen.lower() in _OFF else Path(chosen)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library/Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "dala"
