"""What moved between two pictures, and where to: optical flow by Lucas and Kanade.

Hues are directions, and what moved farther is brighter.

python examples/lucas_kanade.py before.png after.png --save flow.png
python examples/lucas_kanade.py --save flow.png          of a picture that turns
"""

import argparse
import math

import numpy as np

import dala
from dala import filters, media
from dala.gpu import compute
from dala.media.showcase import sample

RADIUS = 7
"""What is found again are windows of (2 · radius + 1)² pixels."""
STEPS, LEVELS = 6, 4


@dala.kernel(border="mirror")
def halve(x):
    """The picture in half its size, blurred as much as that takes."""
    i, j = dala.position(2)
    total = 0.0
    for a, down in enumerate((1.0, 4.0, 6.0, 4.0, 1.0)):
        for b, right in enumerate((1.0, 4.0, 6.0, 4.0, 1.0)):
            total += down * right * x[2 * i + a - 2, 2 * j + b - 2]
    return total / 256.0


@dala.function
def slope(x, i, j):
    """How much the picture changes to the right, and down."""
    return 0.5 * dala.vec2(x[i, j + 1] - x[i, j - 1], x[i + 1, j] - x[i - 1, j])


@dala.kernel
def follow(before, after, coarse: dala.Array[dala.vec2]):
    """Where the window around each pixel has gone, from a guess at half the size."""
    i, j = dala.position(2)
    # What the window's slopes tell of each direction: a flat window tells nothing.
    told = 0.001 * dala.identity(2)
    for a in range(-RADIUS, RADIUS + 1):
        for b in range(-RADIUS, RADIUS + 1):
            d = slope(before, i + a, j + b)
            told += dala.mat2(d.x * d.x, d.x * d.y, d.x * d.y, d.y * d.y)
    solve = dala.inverse(told)
    flow = 2.0 * coarse[i // 2, j // 2]
    for _ in range(STEPS):
        wrong = dala.vec2(0.0)
        for a in range(-RADIUS, RADIUS + 1):
            for b in range(-RADIUS, RADIUS + 1):
                found = after.sample(i + a + flow.y, j + b + flow.x)
                wrong += slope(before, i + a, j + b) * (before[i + a, j + b] - found)
        flow += solve @ wrong
    return flow


def optical_flow(before, after):
    """Returns how far each pixel has moved, (height, width, 2): to the right, then down."""
    pyramid = [(compute.from_numpy(before), compute.from_numpy(after))]
    for _ in range(LEVELS - 1):
        shape = [(extent + 1) // 2 for extent in pyramid[-1][0].shape]
        pyramid.append(tuple(halve(image, shape=shape) for image in pyramid[-1]))
    flow = compute.buffer_zeros((1, 1, 2), "f32")
    for one, other in reversed(pyramid):
        flow = follow(one, other, flow, shape=(*one.shape, 2))
    return compute.read(flow)


@dala.kernel(border="mirror")
def turned(image: dala.Image, angle: float):
    """The picture turned around its center, and a little nearer."""
    i, j = dala.position(2)
    height, width = image.shape
    y, x = i - 0.5 * height, j - 0.5 * width
    c, s = 0.98 * dala.cos(angle), 0.98 * dala.sin(angle)
    return image.sample(c * y + s * x + 0.5 * height, c * x - s * y + 0.5 * width)


@dala.kernel
def paint(flow: dala.Array[dala.vec2], gray, farthest: float):
    """Directions as hues over the picture in gray."""
    turn = dala.atan2(flow.y, flow.x)
    far = min(dala.sqrt(dala.length(flow) / farthest), 1.0)
    hue = 0.5 + 0.5 * dala.cos(turn - dala.vec3(0.0, 2.0 * math.pi / 3.0, 4.0 * math.pi / 3.0))
    return dala.rgba(dala.mix(dala.vec3(0.4), hue, far) * (0.45 + gray))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("pictures", nargs="*", help="two of the same size; else one is painted")
    options.add_argument("--save", default="flow.png", help="the file to write")
    given = options.parse_args()

    if len(given.pictures) == 2:
        before, after = (media.load(path) for path in given.pictures)
    elif given.pictures:
        options.error(f"two pictures are needed, not {len(given.pictures)}")
    else:
        before = sample.picture(320, 480)
        after = turned(before, angle=0.05)
    grays = (filters.grayscale(image[..., :3])[..., 0] for image in (before, after))
    first, second = (image.astype(np.float32) / 255 for image in grays)
    flow = optical_flow(first, second)
    farthest = float(np.percentile(np.hypot(flow[..., 0], flow[..., 1]), 95))
    media.save(paint(flow, first, farthest, shape=(*first.shape, 3), dtype="u8"), given.save)


if __name__ == "__main__":
    main()
