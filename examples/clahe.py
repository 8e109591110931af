"""Details out of haze: contrast-limited adaptive histogram equalization (CLAHE).

Each tile of the picture gets a table that spreads its own levels from black to white, and a pixel
takes what the tables of the four nearest tiles say of it.

python examples/clahe.py [picture] --clip 3 --save clear.png
"""

import argparse

import numpy as np

import dala
from dala import media
from dala.gpu import compute
from dala.media.showcase import sample

TILES = 8
LEVELS = 256


@dala.kernel(border="mirror")
def extend(levels):
    """The picture, and as much of its mirror image as fills its last tiles."""
    i, j = dala.position(2)
    return levels[i, j]


@dala.kernel
def count_levels(levels, out: dala.Out):
    """How often each level is in each tile."""
    i, j = dala.position(2)
    height, width = dala.shape(2)
    out.add((i * TILES // height, j * TILES // width, levels), 1)


@dala.kernel
def count_excess(counts, limit: int) -> dala.s32:
    """How many pixels of each tile are over the limit of their level."""
    i, j = dala.position(2)
    return sum(max(dala.s32(counts[i, j, level]) - limit, 0) for level in range(LEVELS))


@dala.kernel
def tables(counts, excess, limit: int, area: int) -> dala.u8:
    """What each level of a tile becomes: the share of its pixels that are not brighter."""
    i, j, level = dala.position(3)
    darker = sum(min(dala.s32(counts[i, j, k]), limit) for k in range(level + 1))
    # What was cut off is dealt to all levels alike, and the rest to some at even distances.
    each, rest = excess[i, j] // LEVELS, excess[i, j] % LEVELS
    darker += each * (level + 1)
    if rest > 0:
        darker += min(level // max(LEVELS // rest, 1) + 1, rest)
    return 255.0 * darker / area


@dala.kernel
def look_up(levels, table, tile_height: int, tile_width: int) -> dala.u8:
    i, j = dala.position(2)
    y, x = i / tile_height - 0.5, j / tile_width - 0.5
    top, left = dala.floor(y), dala.floor(x)
    row, column = int(top), int(left)
    # Beside the outermost tiles the clamped border repeats them.
    above = dala.mix(table[row, column, levels], table[row, column + 1, levels], x - left)
    below = dala.mix(table[row + 1, column, levels], table[row + 1, column + 1, levels], x - left)
    return dala.mix(above, below, y - top)


def clahe(levels, clip):
    """Returns gray levels equalized tile by tile, as OpenCV does with 8 by 8 tiles."""
    levels = compute.from_numpy(levels)
    # Where one axis does not divide into tiles, OpenCV makes those of both a pixel larger.
    extra = any(extent % TILES for extent in levels.shape)
    tile_height, tile_width = (extent // TILES + extra for extent in levels.shape)
    area = tile_height * tile_width
    limit = max(int(clip * area / LEVELS), 1)
    whole = extend(levels, shape=(TILES * tile_height, TILES * tile_width))
    counts = count_levels(whole, shape=(TILES, TILES, LEVELS), dtype="u32")
    excess = count_excess(counts, limit, shape=(TILES, TILES))
    table = tables(counts, excess, limit, area, shape=(TILES, TILES, LEVELS))
    return compute.read(look_up(levels, table, tile_height, tile_width))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("picture", nargs="?", help="a picture; one is painted if none is given")
    options.add_argument("--clip", type=float, default=3.0, help="how steep a table may become")
    options.add_argument("--save", default="clear.png", help="the file to write")
    given = options.parse_args()

    if given.picture:
        picture = media.load(given.picture)[..., :3]
    else:
        picture = (100 + 0.3 * sample.picture()[..., :3]).astype(np.uint8)  # on a misty morning
    channels = (picture[..., channel] for channel in range(3))
    clear = np.dstack([clahe(channel, given.clip) for channel in channels])
    if not given.picture:  # half of it, to see what the other half was like
        half = picture.shape[1] // 2
        clear[:, :half] = picture[:, :half]
    media.save(clear, given.save)


if __name__ == "__main__":
    main()
