"""The tiles in which an adapter computes matrix products."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dala.emit.wgsl.products import HARDWARE, ProductTile, ProductTiles

if TYPE_CHECKING:
    from dala.devices.webgpu.adapters import Adapter


def lanes_of(adapter: Adapter) -> int:
    """Returns how many invocations every subgroup has, where that is certain; else 0.

    Mesa's software GPU names the bits of its vectors, of which each invocation has 32.
    """
    named = re.search(r"llvmpipe.*\b(\d+) bits", adapter.name)
    return int(named[1]) // 32 if named and "subgroup" in adapter.features else 0


def products_of(adapter: Adapter) -> ProductTiles:
    """Returns the tiles that suit an adapter by its kind."""
    lanes = lanes_of(adapter)
    if not lanes:
        return HARDWARE
    # Reads are loops over the invocations of a subgroup there, and workgroup memory is memory:
    # what an invocation has read, it tells the others.
    tile = ProductTile(4 * lanes, 4, 1, lanes, 4, lanes)
    return ProductTiles(tile, tile)
