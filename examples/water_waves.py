"""Waves on water: drops fall into a tray, or your pointer draws in it.

python examples/water_waves.py                           in a window, until it is closed
python examples/water_waves.py --frames 60 --save waves.png
"""

import argparse

import dala
from dala import gpu
from dala.gpu import compute

WIDTH, HEIGHT = 480, 300
SCALE = 2
STEPS_A_FRAME = 6


@dala.function
def pushed(flow, here, ahead):
    """Water between two places flows down; a little of it stops."""
    return 0.9995 * flow - 0.4 * (ahead - here)


@dala.kernel
def flow(height, right, down, drop_x: dala.f32, drop_y: dala.f32, drop: dala.f32):
    """One step of all three fields: the height of the water, and where it flows."""
    y, x = dala.position(2)
    here = height[y, x]
    flows_right = pushed(right[y, x], here, height[y, x + 1])
    flows_down = pushed(down[y, x], here, height[y + 1, x])
    from_left = pushed(right[y, x - 1], height[y, x - 1], here) if x > 0 else 0.0
    from_above = pushed(down[y - 1, x], height[y - 1, x], here) if y > 0 else 0.0
    dx, dy = x - drop_x, y - drop_y
    fallen = drop * dala.exp(-(dx * dx + dy * dy) / 80.0)
    gathers = from_left - flows_right + from_above - flows_down
    return 0.9995 * here + 0.4 * gathers + fallen, flows_right, flows_down


@dala.kernel
def paint(height):
    y, x = dala.position(2)
    v, u = dala.f32(y) / SCALE, dala.f32(x) / SCALE
    across = height.sample(v, u + 1.0) - height.sample(v, u - 1.0)
    down = height.sample(v + 1.0, u) - height.sample(v - 1.0, u)
    normal = dala.normalize(dala.vec3(-across, -down, 0.05))
    light = dala.normalize(dala.vec3(-0.5, -0.6, 0.8))
    lit = max(dala.dot(normal, light), 0.0)
    glint = dala.pow(max(dala.reflect(-light, normal).z, 0.0), 40.0)
    deep = dala.vec3(0.02, 0.16, 0.30)
    shallow = dala.vec3(0.25, 0.62, 0.72)
    color = deep + lit * (shallow - deep) + 0.8 * glint
    return dala.rgba(color.x, color.y, color.z, 1.0)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--frames", type=int, help="end after so many")
    options.add_argument("--save", help="open no window, and write the last frame to this file")
    given = options.parse_args()

    kind = "offscreen" if given.save else "auto"
    surface = gpu.create_surface(WIDTH * SCALE, HEIGHT * SCALE, "Water", kind)
    if surface.kind == "offscreen" and given.frames is None:
        options.error(f"say how many --frames: nobody can end it off-screen. {surface.why}")
    pixels = compute.buffer_zeros(surface.shape, "u8")
    now, then = ([compute.buffer_zeros((HEIGHT, WIDTH), "f32") for _ in range(3)] for _ in range(2))
    states = [now, then]
    pointed = []
    surface.on("pointer", pointed.append)

    def draw(frame):
        drops = frame.number % 12 == 0
        x, y = (29 * frame.number + 140) % WIDTH, (31 * frame.number + 90) % HEIGHT
        if pointed:
            x, y, drops = pointed[-1].x / SCALE, pointed[-1].y / SCALE, True
        for part in range(STEPS_A_FRAME):
            drop = {"drop_x": x, "drop_y": y, "drop": 0.7 if drops and part == 0 else 0.0}
            compute.run_kernel(flow, states[0], states[1], drop)
            states.reverse()
        compute.run_to_surface(paint, [states[0][0]], pixels, surface)

    print(gpu.loop(surface, draw, fps=None if given.save else 60, frames=given.frames))
    if given.save:
        gpu.save(surface, given.save)


if __name__ == "__main__":
    main()
