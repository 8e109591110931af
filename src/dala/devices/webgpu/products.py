"""The tiles in which an adapter computes matrix products: tuned, or by its kind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dala.devices.webgpu.kept_tiles import is_possible, kept
from dala.emit.wgsl.products import HARDWARE, ProductTile, ProductTiles

if TYPE_CHECKING:
    from dala.devices.webgpu.adapters import Adapter

_SHARED = (
    *((4, 4, 16, 16, 16), (4, 4, 8, 8, 16), (8, 4, 8, 8, 16), (8, 4, 8, 16, 16)),
    *((8, 8, 8, 8, 16), (8, 8, 16, 16, 8), (4, 8, 16, 8, 16), (4, 4, 16, 16, 32)),
)
"""Rows, columns, invocations down and across, and depth, as hand-tuned kernels have them."""
_ROWS = (4, 3, 2, 1)
"""Rows for each invocation of a subgroup."""


def lanes_of(adapter: Adapter) -> int:
    """Returns how many invocations every subgroup has, where that is certain; else 0.

    Mesa's software GPU names the bits of its vectors, of which each invocation has 32.
    """
    named = re.search(r"llvmpipe.*\b(\d+) bits", adapter.name)
    return int(named[1]) // 32 if named and "subgroup" in adapter.features else 0


def products_of(adapter: Adapter) -> ProductTiles:
    """Returns the tiles for an adapter: those that were kept, else those of its kind."""
    return kept(adapter, lanes_of(adapter)) or usual_of(adapter)


def usual_of(adapter: Adapter) -> ProductTiles:
    """Returns the tiles that suit an adapter by its kind."""
    lanes = lanes_of(adapter)
    if not lanes:
        return HARDWARE
    # Reads are loops over the invocations of a subgroup there, and workgroup memory is memory:
    # what an invocation has read, it tells the others.
    tile = ProductTile(4 * lanes, 4, 1, lanes, 4, lanes)
    return ProductTiles(tile, tile)


def candidates(adapter: Adapter) -> list[ProductTile]:
    """Returns the tiles that are worth measuring on an adapter, its usual ones first."""
    lanes, usual = lanes_of(adapter), usual_of(adapter)
    told = [ProductTile(n * lanes, 4, 1, lanes, 4, lanes) for n in _ROWS] if lanes else []
    found = [usual.large, usual.small, *told, *(ProductTile(*sizes) for sizes in _SHARED)]
    return [tile for tile in dict.fromkeys(found) if is_possible(tile, adapter, lanes)]
