"""A dive into the Mandelbrot set: every pixel of every frame is one run of a kernel.

python examples/mandelbrot_zoom.py                       in a window, until it is closed
python examples/mandelbrot_zoom.py --frames 30 --save zoom.png
"""

import argparse

import dala
from dala import gpu
from dala.gpu import compute

WIDTH, HEIGHT = 960, 600
PLACE_X, PLACE_Y = -0.743644, 0.131826
FRAMES_THERE_AND_BACK = 900
STEPS = 400


@dala.kernel
def mandelbrot(center_x: dala.f32, center_y: dala.f32, span: dala.f32):
    row, column = dala.position(2)
    height, width = dala.shape(2)
    cx = center_x + span * (column + 0.5 - width * 0.5) / width
    cy = center_y + span * (row + 0.5 - height * 0.5) / width
    x, y, steps = 0.0, 0.0, 0
    while steps < STEPS and x * x + y * y < 256.0:
        x, y = x * x - y * y + cx, 2.0 * x * y + cy
        steps += 1
    if steps == STEPS:
        return dala.rgba(0.0, 0.0, 0.0, 1.0)
    # How far the last step went too far: without it, colors come in bands.
    smooth = steps + 4.0 - dala.log2(dala.log2(x * x + y * y))
    hue = 2.6 + 0.8 * dala.sqrt(smooth)
    red = 0.5 + 0.5 * dala.cos(hue)
    green = 0.5 + 0.5 * dala.cos(hue + 0.6)
    blue = 0.5 + 0.5 * dala.cos(hue + 1.0)
    return dala.rgba(red, green, blue, 1.0)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--frames", type=int, help="end after so many")
    options.add_argument("--save", help="open no window, and write the last frame to this file")
    given = options.parse_args()

    surface = gpu.create_surface(WIDTH, HEIGHT, "Mandelbrot", "offscreen" if given.save else "auto")
    if surface.kind == "offscreen" and given.frames is None:
        options.error(f"say how many --frames: nobody can end it off-screen. {surface.why}")
    pixels = compute.buffer_zeros(surface.shape, "u8")

    def draw(frame):
        depth = abs((2 * frame.number / FRAMES_THERE_AND_BACK + 1) % 2 - 1)
        place = {"center_x": PLACE_X, "center_y": PLACE_Y, "span": 3.2 * 0.0001**depth}
        compute.run_to_surface(mandelbrot, [], pixels, surface, place)

    print(gpu.loop(surface, draw, fps=None if given.save else 60, frames=given.frames))
    if given.save:
        gpu.save(surface, given.save)


if __name__ == "__main__":
    main()
