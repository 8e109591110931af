"""Lights out of focus: a picture convolved with the shape of a lens's opening, by way of Fourier.

Convolving with a shape of n × n pixels takes n² products for each pixel. Where both are sums of
waves it takes one for each wave, and the fast Fourier transform goes there and back again.

python examples/fft_convolution.py [picture] --blades 7 --radius 18 --save bokeh.png
"""

import argparse
import math

import numpy as np

import dala
from dala import media
from dala.gpu import compute

transpose = compute.Kernel.lookup("transpose")


@dala.function
def product(a, b):
    """The product of two complex numbers."""
    return dala.vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x)


@dala.kernel
def combine(x: dala.Array[dala.vec2], span: int, sign: float):
    """One pass of Stockham's FFT along rows: transforms of `span` become ones of twice that."""
    i, j = dala.position(2)
    _, columns = dala.shape(2)
    source = j // (2 * span) * span + j % span
    angle = sign * math.pi * (j % (2 * span)) / span
    turn = dala.vec2(dala.cos(angle), dala.sin(angle))
    return x[i, source] + product(turn, x[i, source + columns // 2])


@dala.kernel
def multiply(x: dala.Array[dala.vec2], y: dala.Array[dala.vec2], scale: float):
    return scale * product(x, y)


def transform(x, sign):
    """Returns the Fourier transform of complex numbers, (rows, columns, 2), along both axes."""
    for _ in range(2):
        span = 1
        while span < x.shape[1]:
            x, span = combine(x, span, sign), 2 * span
        x = transpose(x, axes=(1, 0, 2))
    return x


@dala.kernel(border="zero")
def as_complex(x):
    """Real numbers as complex ones, with room around them for what a convolution adds."""
    i, j = dala.position(2)
    return dala.vec2(x[i, j], 0.0)


def convolve(x, y):
    """Returns the convolution of two arrays of two axes, in the size of both together."""
    shape = [a + b - 1 for a, b in zip(x.shape, y.shape, strict=True)]
    room = (*(2 ** (extent - 1).bit_length() for extent in shape), 2)
    a, b = (transform(as_complex(compute.from_numpy(item), shape=room), -1.0) for item in (x, y))
    waves = multiply(a, b, scale=1.0 / (room[0] * room[1]))
    return compute.read(transform(waves, 1.0))[: shape[0], : shape[1], 0]


@dala.kernel
def opening(blades: float, radius: float) -> dala.f32:
    """The opening of a lens with straight blades: 1 inside, 0 outside, soft in between."""
    i, j = dala.position(2)
    size, _ = dala.shape(2)
    p = dala.vec2(j, i) - 0.5 * (size - 1)
    side = 2.0 * math.pi / blades
    turn = dala.atan2(p.y, p.x) + 0.2
    aside = turn - side * dala.round(turn / side)
    return dala.clamp(0.5 + radius - dala.length(p) * dala.cos(aside), 0.0, 1.0)


def city_lights(width, height, seed):
    """Returns a dark street with lamps, as light and not as levels."""
    rng = np.random.default_rng(seed)
    light = np.zeros((height, width, 3), np.float32)
    colors = np.array([(1, 0.6, 0.2), (1, 0.85, 0.6), (1, 0.15, 0.08), (0.2, 0.6, 1)], np.float32)
    for _ in range(160):
        y, x = rng.normal(0.55, 0.16) * height, rng.random() * width
        color = colors[rng.choice(4, p=[0.45, 0.3, 0.15, 0.1])]
        light[int(y) % height, int(x)] = color * 500 * rng.random() ** 2
    dusk = np.linspace(0.02, 0.002, height, dtype=np.float32)
    return light + dusk[:, None, None] * np.array([0.6, 0.8, 1.6], np.float32)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("picture", nargs="?", help="a picture; else there are lamps at night")
    options.add_argument("--blades", type=float, default=7.0)
    options.add_argument("--radius", type=float, default=18.0, help="of the opening, in pixels")
    options.add_argument("--size", type=int, nargs=2, default=(800, 480), metavar=("W", "H"))
    options.add_argument("--save", default="bokeh.png", help="the file to write")
    given = options.parse_args()

    if given.picture:
        # Light adds up, levels do not; and what is white is brighter than a picture can say.
        light = (media.load(given.picture)[..., :3].astype(np.float32) / 255) ** 2.2
        light += 15 * np.maximum(light - 0.85, 0)
    else:
        light = city_lights(*given.size, seed=4)
    half = math.ceil(1.3 * given.radius)
    lens = opening(given.blades, given.radius, shape=(2 * half + 1, 2 * half + 1))
    wide = np.pad(light, ((half, half), (half, half), (0, 0)), "edge")
    channels = [convolve(wide[..., k], lens / lens.sum()) for k in range(3)]
    blurred = np.dstack(channels)[2 * half : -2 * half, 2 * half : -2 * half]
    shown = np.clip(1 - np.exp(-1.4 * blurred), 0, 1) ** (1 / 2.2)
    media.save((255 * shown + 0.5).astype(np.uint8), given.save)


if __name__ == "__main__":
    main()
