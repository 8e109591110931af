"""The heat equation on a cold plate: a flame runs over it, or follows your pointer.

python examples/heat_equation.py                         in a window, until it is closed
python examples/heat_equation.py --frames 30 --save heat.png
"""

import argparse
import math

import dala
from dala import gpu
from dala.gpu import compute

WIDTH, HEIGHT = 480, 300
SCALE = 2
STEPS_A_FRAME = 8


@dala.kernel(border="zero")
def conduct(heat, flame_x: dala.f32, flame_y: dala.f32):
    y, x = dala.position(2)
    around = heat[y - 1, x] + heat[y + 1, x] + heat[y, x - 1] + heat[y, x + 1]
    dx, dy = x - flame_x, y - flame_y
    flame = 0.1 * dala.exp(-(dx * dx + dy * dy) / 120.0)
    return 0.9985 * (heat + 0.24 * (around - 4.0 * heat)) + flame


@dala.kernel
def paint(heat):
    y, x = dala.position(2)
    warm = 1.0 - dala.exp(-heat[y // SCALE, x // SCALE])
    # Lines of equal heat, as on a map.
    line = dala.smoothstep(0.0, 0.12, abs(dala.fract(warm * 12.0) - 0.5))
    shade = 0.75 + 0.25 * line
    red = dala.smoothstep(0.05, 0.65, warm)
    green = dala.smoothstep(0.4, 0.95, warm)
    blue = 0.12 + 0.5 * dala.smoothstep(0.0, 0.3, warm) - 0.55 * dala.smoothstep(0.3, 0.6, warm)
    white = dala.smoothstep(0.85, 1.0, warm)
    return dala.rgba(red * shade, green * shade, max(blue * shade, white), 1.0)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--frames", type=int, help="end after so many")
    options.add_argument("--save", help="open no window, and write the last frame to this file")
    given = options.parse_args()

    kind = "offscreen" if given.save else "auto"
    surface = gpu.create_surface(WIDTH * SCALE, HEIGHT * SCALE, "Heat", kind)
    if surface.kind == "offscreen" and given.frames is None:
        options.error(f"say how many --frames: nobody can end it off-screen. {surface.why}")
    pixels = compute.buffer_zeros(surface.shape, "u8")
    plate = [compute.buffer_zeros((HEIGHT, WIDTH), "f32") for _ in range(2)]
    pointed = []
    surface.on("pointer", pointed.append)

    def draw(frame):
        for part in range(STEPS_A_FRAME):
            turn = (frame.number + part / STEPS_A_FRAME) / 25
            x = WIDTH * (0.5 + 0.38 * math.sin(2 * turn))
            y = HEIGHT * (0.5 + 0.36 * math.sin(3 * turn))
            if pointed:
                x, y = pointed[-1].x / SCALE, pointed[-1].y / SCALE
            plate.reverse()
            compute.run_kernel(conduct, [plate[1]], plate[0], {"flame_x": x, "flame_y": y})
        compute.run_to_surface(paint, [plate[0]], pixels, surface)

    print(gpu.loop(surface, draw, fps=None if given.save else 60, frames=given.frames))
    if given.save:
        gpu.save(surface, given.save)


if __name__ == "__main__":
    main()
