"""A scene without a single triangle: rays walk as far as nothing is near, until they arrive.

python examples/ray_marching.py --save scene.png
python examples/ray_marching.py --eye 4 1 -2 --save scene.png
"""

import argparse
from typing import NamedTuple

import numpy as np

import dala
from dala import media


class Ray(NamedTuple):
    origin: dala.vec3
    direction: dala.vec3

    def at(self, way):
        return self.origin + way * self.direction


class Camera(NamedTuple):
    eye: dala.vec3
    axes: dala.mat3
    zoom: float = 2.4

    def ray(self, y, x):
        """The ray through a place of the picture."""
        height, width = dala.shape(2)
        aim = dala.vec3((2.0 * x - width) / height, (height - 2.0 * y) / height, self.zoom)
        return Ray(self.eye, dala.normalize(self.axes @ aim))


EYE, FAR = (3.2, 1.5, -4.4), 40.0
PEARLS = ((-1.0, 0.28), (-0.45, 0.4), (0.3, 0.55), (1.1, 0.4))
"""Where each one lies, and its radius."""


@dala.function
def distances(p):
    """How far a point is from a ring, and from the pearls on the floor below it."""
    ring = dala.length(dala.vec2(dala.length(p.xy - dala.vec2(0.0, 1.15)) - 1.0, p.z)) - 0.1
    pearls = FAR
    for x, radius in PEARLS:
        near = dala.distance(p, dala.vec3(x, radius, 0.6 * x - 0.2)) - radius
        melt = max(0.2 - abs(pearls - near), 0.0)
        pearls = min(pearls, near) - 1.25 * melt * melt
    return ring, pearls


@dala.function
def scene(p):
    """The distance to the nearest surface: a step that long hits nothing."""
    ring, pearls = distances(p)
    return min(ring, pearls, p.y)


@dala.function
def march(ray):
    """How far a ray gets."""
    way = 0.0
    for _ in range(200):
        near = scene(ray.at(way))
        way += near
        if near < 0.0005 * way or way > FAR:
            return way
    return way


@dala.function
def normal(p):
    """Which way a surface faces: where the distance to it grows fastest."""
    x, y, z = dala.vec3(0.001, 0.0, 0.0), dala.vec3(0.0, 0.001, 0.0), dala.vec3(0.0, 0.0, 0.001)
    return dala.normalize(dala.vec3(scene(p + x), scene(p + y), scene(p + z)) - scene(p))


@dala.function
def sky(direction):
    dusk, night = dala.vec3(0.98, 0.62, 0.38), dala.vec3(0.1, 0.2, 0.42)
    return dala.mix(dusk, night, dala.smoothstep(-0.05, 0.45, direction.y))


@dala.function
def surface(p):
    """The color of what is nearest: gold, a pearl or a tile."""
    ring, pearls = distances(p)
    if ring < min(pearls, p.y):
        return dala.vec3(0.95, 0.6, 0.16)
    is_dark = (dala.floor(p.x) + dala.floor(p.z)) % 2.0 == 0.0
    tile = dala.vec3(0.05, 0.07, 0.1) if is_dark else dala.vec3(0.3, 0.3, 0.32)
    return dala.vec3(0.75, 0.78, 0.85) if pearls < p.y else tile


@dala.function
def lit(p, up, direction):
    """The color of a surface in the light of the sun and of the sky."""
    light = dala.normalize(dala.vec3(-0.75, 0.4, -0.25))
    sun = max(dala.dot(up, light), 0.0) if march(Ray(p, light)) > FAR else 0.0
    # Corners are dark: other surfaces keep out the light of the sky.
    open_sky = dala.clamp(scene(p + 0.3 * up) / 0.3, 0.0, 1.0) * (0.6 + 0.4 * up.y)
    color = surface(p) * (2.4 * sun * dala.vec3(1.0, 0.8, 0.58) + 0.7 * open_sky * sky(up))
    return color + 1.5 * sun * max(dala.dot(dala.reflect(direction, up), light), 0.0) ** 60.0


@dala.function
def seen(ray):
    """What comes back along a ray that is reflected once."""
    color, strength = dala.vec3(0.0), 1.0
    for _ in range(2):
        way = march(ray)
        if way > FAR:
            return color + strength * sky(ray.direction)
        up = normal(ray.at(way))
        p = ray.at(way) + 0.003 * up
        # What is seen at a low angle is a mirror, and what is far away is in haze.
        mirror = 0.08 + 0.8 * (1.0 + min(dala.dot(ray.direction, up), 0.0)) ** 5.0
        haze = dala.smoothstep(6.0, FAR, way)
        own = dala.mix((1.0 - mirror) * lit(p, up, ray.direction), sky(ray.direction), haze)
        color += strength * own
        ray, strength = Ray(p, dala.reflect(ray.direction, up)), strength * (1.0 - haze) * mirror
    return color


@dala.kernel
def depth(camera: Camera):
    """How far away is what each pixel shows."""
    y, x = dala.position(2)
    return march(camera.ray(y + 0.5, x + 0.5))


@dala.kernel
def picture(camera: Camera):
    y, x = dala.position(2)
    color = dala.vec3(0.0)
    for k in range(4):  # four rays through each pixel make outlines smooth
        color += 0.25 * seen(camera.ray(y + 0.25 + 0.5 * (k // 2), x + 0.25 + 0.5 * (k % 2)))
    return dala.rgba(dala.sqrt(color / (1.0 + 0.3 * color)))


def looking_at(target, eye):
    """Returns a camera that is at `eye` and looks at `target`, upright."""
    ahead = np.subtract(target, eye)
    right = np.cross((0.0, 1.0, 0.0), ahead)
    axes = np.stack([right, np.cross(ahead, right), ahead], axis=1)
    return Camera(eye, axes / np.linalg.norm(axes, axis=0))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--size", type=int, nargs=2, default=(960, 600), metavar=("W", "H"))
    options.add_argument("--eye", type=float, nargs=3, default=EYE, metavar=("X", "Y", "Z"))
    options.add_argument("--save", default="scene.png", help="the file to write")
    given = options.parse_args()

    width, height = given.size
    camera = looking_at((0.0, 0.85, 0.0), given.eye)
    media.save(picture(camera, shape=(height, width, 3), dtype="u8"), given.save)


if __name__ == "__main__":
    main()
