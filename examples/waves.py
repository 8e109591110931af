"""Waves that pass two slits, and where they meet, add up or cancel out.

python examples/waves.py                                 in a window, until it is closed
python examples/waves.py --frames 60 --save waves.png
"""

import argparse

import dala
from dala import gpu
from dala.gpu import compute

WIDTH, HEIGHT = 480, 300
SCALE = 2
STEPS_A_FRAME = 6
WALL, SLIT, APART = 120, 8, 36
"""In columns and rows: where the wall is, half a slit, and half the way between the two."""


@dala.function
def is_wall(y, x, height):
    aside = abs(abs(y - height // 2) - APART)
    return abs(x - WALL) < 2 and aside > SLIT


@dala.kernel
def tick(time):
    return time + 1.0


@dala.kernel(border="zero")
def move(water, before, time):
    """The next state of the water: what it is, what it was, and how it lies among its neighbors."""
    y, x = dala.position(2)
    height, width = dala.shape(2)
    if is_wall(y, x, height):
        return 0.0
    around = water[y - 1, x] + water[y + 1, x] + water[y, x - 1] + water[y, x + 1]
    # Near the shore waves tire out, so that nothing comes back from there.
    shore = dala.f32(min(x, width - 1 - x, y, height - 1 - y))
    tired = 0.06 * (1.0 - dala.smoothstep(0.0, 40.0, shore))
    next = water + (1.0 - tired) * (water - before) + 0.24 * (around - 4.0 * water)
    # A long paddle on the left makes the waves.
    paddle = dala.exp(-dala.f32((x - 50) * (x - 50)) / 8.0)
    return next + 0.08 * paddle * dala.sin(0.3 * time[0])


@dala.kernel
def paint(water):
    row, column = dala.position(2)
    y, x = row / SCALE, column / SCALE
    if is_wall(int(y), int(x), water.shape[0]):
        return dala.rgba(0.85, 0.8, 0.7, 1.0)
    height = dala.tanh(2.0 * water.sample(y, x))
    slope = water.sample(y, x + 1.0) - water.sample(y, x - 1.0)
    color = dala.vec3(0.04, 0.2, 0.32)
    color = dala.mix(color, dala.vec3(0.35, 0.8, 0.8), max(height, 0.0))
    color = dala.mix(color, dala.vec3(0.02, 0.04, 0.14), max(-height, 0.0))
    # The sun is low in the west: slopes that face it shine.
    shine = dala.smoothstep(0.1, 1.0, slope)
    return dala.rgba(color + 0.5 * shine * dala.vec3(1.0, 0.9, 0.7))


def waves(shape):
    """Returns still water, and a pipeline that moves it by a step."""
    water, before = (compute.buffer_zeros(shape, "f32") for _ in range(2))
    time = compute.buffer_zeros((1,), "f32")
    steps = compute.pipeline().add(kernel=tick, inputs=[time], output=time)
    # What the water was is not needed any more once it is known what it will be.
    steps.add(kernel=move, inputs=[water, before, time], output=before)
    return water, steps.swap(water, before)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--frames", type=int, help="end after so many")
    options.add_argument("--save", help="open no window, and write the last frame to this file")
    given = options.parse_args()

    kind = "offscreen" if given.save else "auto"
    surface = gpu.create_surface(WIDTH * SCALE, HEIGHT * SCALE, "Waves", kind)
    if surface.kind == "offscreen" and given.frames is None:
        options.error(f"say how many --frames: nobody can end it off-screen. {surface.why}")
    pixels = compute.buffer_zeros(surface.shape, "u8")
    water, steps = waves((HEIGHT, WIDTH))

    def draw(frame):
        compute.repeat(steps, STEPS_A_FRAME)
        compute.run_to_surface(paint, [water], pixels, surface)

    print(gpu.loop(surface, draw, fps=None if given.save else 60, frames=given.frames))
    if given.save:
        gpu.save(surface, given.save)


if __name__ == "__main__":
    main()
