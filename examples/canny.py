"""The outlines of a picture, by Canny's method, drawn as a blueprint.

python examples/canny.py [picture] --save outlines.png
"""

import argparse
import math

import numpy as np

import dala
from dala import filters, media
from dala.gpu import compute
from dala.media.showcase import sample

FLAT = math.tan(math.radians(22.5))
STEEP = math.tan(math.radians(67.5))
WEAK, STRONG = 1, 2


@dala.kernel
def slopes(gray):
    """Sobel's derivatives of the gray levels, to the right and down."""
    i, j = dala.position(2)
    dx, dy = 0.0, 0.0
    for k, weight in ((-1, 1.0), (0, 2.0), (1, 1.0)):
        dx += weight * (dala.f32(gray[i + k, j + 1]) - dala.f32(gray[i + k, j - 1]))
        dy += weight * (dala.f32(gray[i + 1, j + k]) - dala.f32(gray[i - 1, j + k]))
    return dx, dy


@dala.kernel(border="zero")
def ridges(dx, dy, low: float, high: float) -> dala.u8:
    """Pixels where the slope is greater than on both sides, across the edge."""
    i, j = dala.position(2)
    here = abs(dx) + abs(dy)
    if abs(dy) < FLAT * abs(dx):
        down, right = 0, 1
    elif abs(dy) > STEEP * abs(dx):
        down, right = 1, 0
    else:
        down, right = 1, (-1 if (dx < 0.0) != (dy < 0.0) else 1)
    before = abs(dx[i - down, j - right]) + abs(dy[i - down, j - right])
    after = abs(dx[i + down, j + right]) + abs(dy[i + down, j + right])
    # Of two pixels that are equally steep, the left or the upper one is it; diagonals have none.
    is_ridge = here > before and (here > after if down * right != 0 else here >= after)
    if not is_ridge or here <= low:
        return 0
    return STRONG if here > high else WEAK


@dala.kernel(border="zero")
def follow(edges):
    """Weak pixels beside strong ones become strong."""
    i, j = dala.position(2)
    near = max(edges[i + a, j + b] for a in range(-1, 2) for b in range(-1, 2))
    return near if edges == WEAK and near == STRONG else edges


@dala.kernel
def is_settled(before, after):
    height, width = before.shape
    return all(before[i, j] == after[i, j] for i in range(height) for j in range(width))


def canny(gray, low, high):
    """Returns 255 on edges and 0 elsewhere: what `cv2.Canny` gives for gray levels of 0 to 255."""
    gray = compute.from_numpy(gray)
    dx, dy = slopes(gray)
    edges = ridges(dx, dy, low, high)
    after, flag = compute.buffer_zeros(edges.shape, "u8"), compute.buffer_zeros((1,), "u8")
    # Edges are followed on the device; the host looks once in a while whether they still grow.
    steps = compute.pipeline().add(kernel=follow, inputs=[edges], output=after)
    steps.add(kernel=is_settled, inputs=[edges, after], output=flag).swap(edges, after)
    compute.until(steps, flag)
    return np.where(compute.read(edges) == STRONG, 255, 0).astype(np.uint8)


@dala.kernel
def blueprint(edges):
    i, j = dala.position(2)
    height, width = dala.shape(2)
    light = dala.hypot(i / height - 0.5, j / width - 0.5)
    paper = dala.mix(dala.vec3(0.13, 0.33, 0.62), dala.vec3(0.06, 0.19, 0.42), light)
    if (i % 24 == 0) or (j % 24 == 0):
        paper += 0.04
    # A soft pencil: beside a line there is a little of it.
    beside = sum(edges[i + a, j + b] for a in range(-1, 2) for b in range(-1, 2)) / (9.0 * 255.0)
    line = min(0.7 * edges / 255.0 + beside, 1.0)
    return dala.rgba(dala.mix(paper, dala.vec3(0.95, 0.97, 1.0), line))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("picture", nargs="?", help="a picture; one is painted if none is given")
    options.add_argument("--low", type=float, default=60.0, help="how steep an edge is at least")
    options.add_argument("--high", type=float, default=140.0, help="and somewhere along it")
    options.add_argument("--save", default="outlines.png", help="the file to write")
    given = options.parse_args()

    picture = media.load(given.picture) if given.picture else sample.picture()
    gray = filters.grayscale(filters.blur(picture[..., :3], radius=2))[..., 0]
    edges = canny(gray, given.low, given.high)
    media.save(blueprint(edges, shape=(*edges.shape, 3), dtype="u8"), given.save)


if __name__ == "__main__":
    main()
