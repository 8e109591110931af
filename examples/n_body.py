"""Two galaxies that meet: every star is pulled by every other, and tides draw out long arms.

python examples/n_body.py --save galaxies.png
python examples/n_body.py --stars 20000 --steps 450 --save galaxies.png
"""

import argparse
import math

import numpy as np

import dala
from dala import media
from dala.gpu import compute

SOFTENING = 0.1
"""Within this distance pulls no longer grow, so that close encounters stay smooth."""
STEP = 0.01
EXPOSURE = 4


@dala.kernel
def kick(velocities: dala.Array[dala.vec3], positions: dala.Array[dala.vec3], masses, step: float):
    """The velocities after every body has pulled on every other for the time of a step."""
    pull = dala.vec3(0.0)
    for other in range(len(masses)):
        away = positions[other] - positions
        near = dala.dot(away, away) + SOFTENING * SOFTENING
        pull += masses[other] * away * (dala.rsqrt(near) / near)
    return velocities + step * pull


@dala.kernel
def drift(positions, velocities, step: float):
    return positions + step * velocities


def simulation(positions, velocities, masses):
    """Returns the positions and velocities on the device, and a pipeline that moves them a step.

    Velocities run half a step ahead of positions: leapfrog, which is of second order although it
    evaluates the forces once a step, and which neither gains nor loses energy in the long run.
    """
    x, v, m = (compute.from_numpy(item) for item in (positions, velocities, masses))
    kick(v, x, m, step=STEP / 2, out=v)
    steps = compute.pipeline()
    steps.add(kernel=drift, inputs=[x, v], output=x, params={"step": STEP})
    steps.add(kernel=kick, inputs=[v, x, m], output=v, params={"step": STEP})
    return x, v, steps


def galaxy(rng, stars, center, velocity, tilt):
    """Returns positions, velocities and masses of a disc of stars around a heavy core."""
    radius, turn = 0.12 + 0.9 * np.sqrt(rng.random(stars)), 2 * math.pi * rng.random(stars)
    radius[0] = 1e-6
    masses = np.full(stars, 0.1 / stars)
    masses[0] = 1.0
    x = np.stack([radius * np.cos(turn), radius * np.sin(turn), rng.normal(0, 0.01, stars)], 1)
    speed = np.sqrt(radius**2 / (radius**2 + SOFTENING**2) ** 1.5)
    v = np.stack([-speed * np.sin(turn), speed * np.cos(turn), np.zeros(stars)], 1)
    c, s = math.cos(tilt), math.sin(tilt)
    around_x = np.array([(1, 0, 0), (0, c, s), (0, -s, c)])
    return x @ around_x + center, v @ around_x + velocity, masses


def encounter(stars, seed):
    """Returns positions, velocities and masses of two galaxies that will pass each other."""
    rng = np.random.default_rng(seed)
    left = galaxy(rng, stars // 2, (-1.5, -0.85, 0.0), (0.5, 0.0, 0.05), tilt=0.4)
    right = galaxy(rng, stars // 2, (1.5, 0.85, 0.0), (-0.5, 0.0, -0.05), tilt=-0.7)
    return [np.concatenate(pair).astype(np.float32) for pair in zip(left, right, strict=True)]


@dala.kernel(accumulate=True)
def expose(positions: dala.Array[dala.vec3], masses, zoom: float, out: dala.Out):
    """Adds the light of each star to the four pixels around where it is seen."""
    (star,) = dala.position(1)
    height, width, _ = out.shape
    x = 0.5 * width + zoom * height * positions.x
    y = 0.5 * height - zoom * height * positions.y
    left, top = int(dala.floor(x)), int(dala.floor(y))
    warm, cold = dala.vec3(1.0, 0.62, 0.35), dala.vec3(0.4, 0.62, 1.0)
    light = warm if 2 * star < len(masses) else cold
    light *= 30.0 if masses > 0.5 else 1.0
    for a in range(2):
        for b in range(2):
            share = (1.0 - abs(x - left - b)) * (1.0 - abs(y - top - a))
            for channel in range(3):
                out.add((top + a, left + b, channel), share * light[channel])


@dala.kernel
def develop(light: dala.Array[dala.vec3]) -> dala.vec3:
    """The picture on film, with a glow around what is bright."""
    i, j = dala.position(2)
    glow = dala.vec3(0.0)
    for a in range(-6, 7):
        for b in range(-6, 7):
            glow += light[i + a, j + b] * dala.exp(-0.12 * dala.f32(a * a + b * b))
    return 255.0 * dala.sqrt(1.0 - dala.exp(-0.1 * light - 0.012 * glow))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--stars", type=int, default=6000, help="in both galaxies together")
    options.add_argument("--steps", type=int, default=400)
    options.add_argument("--size", type=int, nargs=2, default=(960, 600), metavar=("W", "H"))
    options.add_argument("--save", default="galaxies.png", help="the file to write")
    given = options.parse_args()

    bodies = encounter(given.stars, seed=1)
    positions, _, steps = simulation(*bodies)
    masses = compute.from_numpy(bodies[2])
    compute.repeat(steps, max(given.steps - EXPOSURE, 0))
    width, height = given.size
    light = compute.buffer_zeros((height, width, 3), "f32")
    for _ in range(EXPOSURE):
        compute.repeat(steps, 1)
        expose(positions, masses, zoom=0.21, out=light)
    media.save(compute.read(develop(light, dtype="u8")), given.save)


if __name__ == "__main__":
    main()
