"""Conway's Game of Life on a torus: what lives is white, what lived fades away.

python examples/game_of_life.py                          in a window, until it is closed
python examples/game_of_life.py --frames 30 --save life.png
"""

import argparse

import numpy as np

import dala
from dala import gpu
from dala.gpu import compute

WIDTH, HEIGHT = 320, 200
SCALE = 3


@dala.kernel(border="wrap")
def step(cells):
    row, column = dala.position(2)
    alive = 1.0 if cells == 1.0 else 0.0
    around = -alive
    for y in range(-1, 2):
        for x in range(-1, 2):
            around += 1.0 if cells[row + y, column + x] == 1.0 else 0.0
    lives = around == 3.0 or (around == 2.0 and alive == 1.0)
    # Below 1.0 is the memory of a cell that died.
    return 1.0 if lives else 0.95 * min(cells, 0.95)


@dala.kernel
def paint(cells):
    row, column = dala.position(2)
    cell = cells[row // SCALE, column // SCALE]
    if cell == 1.0:
        return dala.rgba(1.0, 0.97, 0.88, 1.0)
    glow = cell * cell
    return dala.rgba(0.03 + 0.9 * glow * glow, 0.03 + 0.35 * glow, 0.08 + 0.5 * cell, 1.0)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--frames", type=int, help="end after so many")
    options.add_argument("--save", help="open no window, and write the last frame to this file")
    given = options.parse_args()

    kind = "offscreen" if given.save else "auto"
    surface = gpu.create_surface(WIDTH * SCALE, HEIGHT * SCALE, "Game of Life", kind)
    if surface.kind == "offscreen" and given.frames is None:
        options.error(f"say how many --frames: nobody can end it off-screen. {surface.why}")
    pixels = compute.buffer_zeros(surface.shape, "u8")
    born = np.random.default_rng(7).random((HEIGHT, WIDTH), np.float32) < 0.3
    cells = compute.from_numpy(born.astype(np.float32))
    after = compute.buffer_zeros(born.shape, "f32")
    life = compute.pipeline().add(kernel=step, inputs=[cells], output=after).swap(cells, after)

    def draw(frame):
        compute.repeat(life, 1)
        compute.run_to_surface(paint, [cells], pixels, surface)

    print(gpu.loop(surface, draw, fps=None if given.save else 30, frames=given.frames))
    if given.save:
        gpu.save(surface, given.save)


if __name__ == "__main__":
    main()
