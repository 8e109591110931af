"""Ink in water: gradient noise in octaves, looked up where more such noise has pushed it.

python examples/noise.py --save noise.png
python examples/noise.py --seed 5 --scale 4 --save noise.png
"""

import argparse
import math

import dala
from dala import media

OCTAVES = 6


@dala.function
def gradient(seed, corner):
    """A direction for each corner of the lattice, always the same one."""
    turn = 2.0 * math.pi * dala.random(seed, int(corner.x), int(corner.y))
    return dala.vec2(dala.cos(turn), dala.sin(turn))


@dala.function
def perlin(seed, p):
    """Perlin's noise: what the four corners say of a point, blended without a seam."""
    corner = dala.floor(p)
    f = p - corner
    right, down = dala.vec2(1.0, 0.0), dala.vec2(0.0, 1.0)
    a = dala.dot(gradient(seed, corner), f)
    b = dala.dot(gradient(seed, corner + right), f - right)
    c = dala.dot(gradient(seed, corner + down), f - down)
    d = dala.dot(gradient(seed, corner + 1.0), f - 1.0)
    blend = f * f * f * (f * (f * 6.0 - 15.0) + 10.0)
    return dala.mix(dala.mix(a, b, blend.x), dala.mix(c, d, blend.x), blend.y)


@dala.function
def octaves(seed, p):
    """Noise that is alike from far and near: octaves, each twice as fine and half as strong."""
    total, strength = 0.0, 0.5
    for octave in range(OCTAVES):
        total += strength * perlin(seed + octave, p)
        p, strength = 2.0 * p, 0.5 * strength
    return total


@dala.kernel
def noise(seed: int = 1, scale: float = 3.0) -> dala.f32:
    """The noise itself: `scale` cells of the lattice from top to bottom."""
    y, x = dala.position(2)
    height, _ = dala.shape(2)
    return octaves(seed, scale * dala.vec2(x, y) / height)


@dala.kernel
def ink(seed: int = 1, scale: float = 3.0):
    y, x = dala.position(2)
    height, _ = dala.shape(2)
    p = scale * dala.vec2(x, y) / height
    # Twice bent: noise pushes a point aside, and the noise found there pushes it again.
    q = dala.vec2(octaves(seed, p), octaves(seed + 10, p))
    r = dala.vec2(octaves(seed + 20, p + 3.0 * q), octaves(seed + 30, p + 3.0 * q))
    depth = 0.5 + octaves(seed + 40, p + 3.0 * r)

    color = dala.mix(
        dala.vec3(0.02, 0.05, 0.13), dala.vec3(0.05, 0.38, 0.48), dala.smoothstep(0.2, 0.8, depth)
    )
    color = dala.mix(
        color, dala.vec3(0.95, 0.66, 0.28), dala.smoothstep(0.2, 0.9, 2.0 * dala.length(q))
    )
    color = dala.mix(color, dala.vec3(0.55, 0.12, 0.22), dala.smoothstep(0.0, 0.5, r.y + 0.1))
    color = color * (0.35 + 1.3 * dala.smoothstep(0.2, 0.85, depth))
    return dala.rgba(color)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--size", type=int, nargs=2, default=(960, 600), metavar=("W", "H"))
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--scale", type=float, default=3.0, help="how much of it is seen")
    options.add_argument("--save", default="noise.png", help="the file to write")
    given = options.parse_args()

    width, height = given.size
    image = ink(given.seed, given.scale, shape=(height, width, 3), dtype="u8")
    media.save(image, given.save)


if __name__ == "__main__":
    main()
