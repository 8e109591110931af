"""The tiles that `dala tune` found for an adapter, kept in a file of the cache folder.

The file is JSON, and every number in it is checked against what the adapter can do. One that is
damaged, or that others own or may write, is ignored, which is told once.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dala.base.atomic_file import replace_data
from dala.base.cache_folder import folder
from dala.base.printable import printable
from dala.emit.wgsl.products import QUAD, SUMMED_IN_ORDER, ProductTile, ProductTiles

if TYPE_CHECKING:
    from dala.devices.webgpu.adapters import Adapter

VERSION = 1
MOST_BYTES = 1 << 16
MOST_ROWS = MOST_COLUMNS = 64
_FIELDS = ("rows", "columns", "down", "across", "depth", "lanes")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_told: set[Path] = set()
"""Files whose refusal was told."""


def path_of(adapter: Adapter) -> Path | None:
    """Returns where an adapter's tiles are kept; None if `DALA_CACHE_DIR` turns that off."""
    kept_in = folder()
    key = hashlib.sha256("\n".join(_facts(adapter).values()).encode()).hexdigest()[:16]
    return None if kept_in is None else kept_in / f"tiles-{key}.json"


def _facts(adapter: Adapter) -> dict[str, str]:
    return {"name": adapter.name, "api": adapter.api, "driver": adapter.driver}


def keep(adapter: Adapter, tiles: ProductTiles) -> Path:
    """Keeps tiles for the next process; raises OSError where the file cannot be written."""
    path = path_of(adapter)
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    parts = {"large": tiles.large, "small": tiles.small}
    written = {
        name: {field: getattr(tile, field) for field in _FIELDS} for name, tile in parts.items()
    }
    said = {"version": VERSION, "adapter": _facts(adapter), **written}
    replace_data(path, json.dumps(said, indent=2).encode(), permissions=0o600)
    return path


def forget(adapter: Adapter) -> bool:
    """Removes what was kept; returns whether there was something."""
    path = path_of(adapter)
    if path is None or not path.exists():
        return False
    path.unlink()
    return True


def kept(adapter: Adapter, lanes: int) -> ProductTiles | None:
    """Returns the tiles that were kept for an adapter, if there are any that can be trusted."""
    path = path_of(adapter)
    if path is None:
        return None
    try:
        text = _trusted_text(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        _tell(path, str(error))
        return None
    try:
        return _read(json.loads(text), adapter, lanes)
    except (ValueError, KeyError, TypeError) as error:
        _tell(path, f"it is damaged ({error})")
        return None


def _trusted_text(path: Path) -> str:
    """Returns the text of a small regular file that only this user may write."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            raise ValueError("it is no small file")
        if hasattr(os, "getuid") and found.st_uid != os.getuid():
            raise ValueError(f"user {found.st_uid} owns it")
        if hasattr(os, "getuid") and found.st_mode & _OTHERS_WRITE:
            raise ValueError(f"others may write it (mode {stat.S_IMODE(found.st_mode):03o})")
        return file.read().decode()


def _read(given: Any, adapter: Adapter, lanes: int) -> ProductTiles:
    if given["version"] != VERSION or given["adapter"] != _facts(adapter):
        raise ValueError("it is of another version, or for another adapter")
    return ProductTiles(
        _tile(given["large"], adapter, lanes), _tile(given["small"], adapter, lanes)
    )


def _tile(given: Any, adapter: Adapter, lanes: int) -> ProductTile:
    numbers = [given[name] for name in _FIELDS]
    if set(given) != set(_FIELDS) or not all(type(item) is int for item in numbers):
        raise ValueError(f"a tile is {', '.join(_FIELDS)}, whole numbers")
    tile = ProductTile(*numbers)
    if not is_possible(tile, adapter, lanes):
        raise ValueError(f"{tile} is none that {adapter.name} can compute")
    return tile


def is_possible(tile: ProductTile, adapter: Adapter, lanes: int) -> bool:
    """Whether an adapter can compute products in a tile."""
    sizes = (tile.rows, tile.columns, tile.down, tile.across, tile.depth)
    limits = adapter.limits
    if min(sizes) < 1 or tile.rows > MOST_ROWS or tile.columns > MOST_COLUMNS:
        return False
    if tile.columns % QUAD or tile.depth % QUAD or SUMMED_IN_ORDER % tile.depth:
        return False
    if tile.lanes:
        shape = (tile.columns, tile.down, tile.across, tile.depth)
        whole = tile.rows % lanes == 0 if lanes else False
        return tile.lanes == lanes and whole and shape == (QUAD, 1, lanes, QUAD)
    return (
        tile.down * tile.across <= limits["max-compute-invocations-per-workgroup"]
        and tile.down * tile.across <= limits["max-compute-workgroup-size-x"]
        and tile.shared_bytes <= limits["max-compute-workgroup-storage-size"]
    )


def _tell(path: Path, fault: str) -> None:
    if path not in _told:
        _told.add(path)
        warnings.warn(
            f"the tiles kept in {printable(path)} are not used, because {fault}: remove it, or "
            f"run dala tune.",
            RuntimeWarning,
            stacklevel=2,
        )
