"""A chart of islands: how deep the water is follows from how far away the coast is.

python examples/distance_transform.py --save chart.png
python examples/distance_transform.py picture.jpg --save chart.png      what is bright is land
"""

import argparse

import dala
from dala import media

ISLANDS = 40
FAR = 1.0e9


@dala.kernel
def islands(seed: int):
    """Land where enough hills of random places and sizes add up."""
    y, x = dala.position(2)
    height, width = dala.shape(2)
    ground = 0.0
    for k in range(ISLANDS):
        center = dala.vec2(width * dala.random(seed, k, 0), height * dala.random(seed, k, 1))
        size = height * (0.02 + 0.11 * dala.random(seed, k, 2) ** 2)
        away = dala.distance(dala.vec2(x, y), center) / size
        ground += dala.exp(-away * away)
    return ground > 0.5


@dala.kernel
def bright(image: dala.Image):
    return dala.luma(image.pixel) > 0.5


@dala.kernel
def down_columns(inside):
    """The squared distance to the nearest element of the same column that is 0."""
    i, j = dala.position(2)
    height, _ = dala.shape(2)
    for step in range(height):
        if inside[i - step, j] == 0 or inside[i + step, j] == 0:
            return dala.f32(step * step)
    return FAR


@dala.kernel
def along_rows(squares):
    """The distance to the nearest element that is 0, of the squares in the same row."""
    i, j = dala.position(2)
    best, step = squares, 1
    # What lies farther away than the best so far cannot be better. Outside, the edge repeats: it is
    # taken for farther away than it is, which does no harm either.
    while step * step < best and step < squares.shape[1]:
        best = min(best, min(squares[i, j - step], squares[i, j + step]) + step * step)
        step += 1
    return dala.sqrt(best)


def distances(inside):
    """Returns how far each element that is not 0 is from the nearest that is, exactly."""
    return along_rows(down_columns(inside))


@dala.kernel
def chart(land, sea):
    """Colors by the distance to the water on land, and to the land at sea."""
    height, _ = dala.shape(2)
    if land > 0.0:
        rise = dala.smoothstep(0.0, 0.09 * height, land)
        color = dala.mix(dala.vec3(0.93, 0.86, 0.67), dala.vec3(0.55, 0.63, 0.38), rise)
        return dala.rgba(color * dala.smoothstep(-1.5, 2.0, land))
    depth = dala.smoothstep(0.0, 0.25 * height, sea)
    color = dala.mix(dala.vec3(0.66, 0.87, 0.87), dala.vec3(0.08, 0.27, 0.45), dala.sqrt(depth))
    # A line wherever the depth passes another tenth of what is shown.
    fathoms = sea / (0.02 * height)
    near_line = abs(fathoms - dala.round(fathoms)) * 0.02 * height
    line = 1.0 - dala.smoothstep(0.4, 1.1, near_line)
    return dala.rgba(color * (1.0 - 0.22 * line))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("picture", nargs="?", help="where it is bright is land")
    options.add_argument("--size", type=int, nargs=2, default=(960, 600), metavar=("W", "H"))
    options.add_argument("--seed", type=int, default=3)
    options.add_argument("--save", default="chart.png", help="the file to write")
    given = options.parse_args()

    width, height = given.size
    if given.picture:
        land = bright(media.load(given.picture))
    else:
        land = islands(given.seed, shape=(height, width))
    image = chart(distances(land), distances(~land), shape=(*land.shape, 3), dtype="u8")
    media.save(image, given.save)


if __name__ == "__main__":
    main()
