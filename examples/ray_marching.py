"""A scene without a single triangle: rays walk as far as nothing is near, until they arrive.

python examples/ray_marching.py --save scene.png
python examples/ray_marching.py --camera 4 1 -2 --save scene.png
"""

import argparse

import dala
from dala import media

FAR = 40.0
CAMERA = (3.2, 1.5, -4.4)
PEARLS = ((-1.0, 0.28), (-0.45, 0.4), (0.3, 0.55), (1.1, 0.4))
"""Where each one lies, and its radius."""


@dala.function
def distances(p):
    """How far a point is from a ring, and from the pearls on the floor below it."""
    ring = dala.length(dala.vec2(dala.length(p.xy - dala.vec2(0.0, 1.15)) - 1.0, p.z)) - 0.1
    pearls = FAR
    for x, radius in PEARLS:
        pearl = dala.distance(p, dala.vec3(x, radius, 0.6 * x - 0.2)) - radius
        melt = max(0.2 - abs(pearls - pearl), 0.0)
        pearls = min(pearls, pearl) - 1.25 * melt * melt
    return ring, pearls


@dala.function
def scene(p):
    """The distance to the nearest surface: a step that long hits nothing."""
    ring, pearls = distances(p)
    return min(ring, pearls, p.y)


@dala.function
def march(origin, ray):
    """How far a ray gets."""
    way = 0.0
    for _ in range(200):
        near = scene(origin + way * ray)
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
def sky(ray):
    dusk, night = dala.vec3(0.98, 0.62, 0.38), dala.vec3(0.1, 0.2, 0.42)
    return dala.mix(dusk, night, dala.smoothstep(-0.05, 0.45, ray.y))


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
def lit(p, up, ray):
    """The color of a surface in the light of the sun and of the sky."""
    light = dala.normalize(dala.vec3(-0.75, 0.4, -0.25))
    share, way = 1.0, 0.02
    for _ in range(60):  # light that just passes by something leaves half a shadow
        near = scene(p + way * light)
        share = min(share, 12.0 * near / way)
        way += dala.clamp(near, 0.02, 0.3)
        if share < 0.005 or way > 8.0:
            break
    sun = dala.smoothstep(0.0, 1.0, share) * max(dala.dot(up, light), 0.0)
    # Corners are dark: other surfaces keep out the light of the sky.
    open_sky = dala.clamp(scene(p + 0.3 * up) / 0.3, 0.0, 1.0) * (0.6 + 0.4 * up.y)
    color = surface(p) * (2.4 * sun * dala.vec3(1.0, 0.8, 0.58) + 0.7 * open_sky * sky(up))
    return color + 1.5 * sun * max(dala.dot(dala.reflect(ray, up), light), 0.0) ** 60.0


@dala.function
def seen(origin, ray):
    """What comes back along a ray that is reflected once."""
    color, strength = dala.vec3(0.0), 1.0
    for _ in range(2):
        way = march(origin, ray)
        if way > FAR:
            return color + strength * sky(ray)
        p = origin + way * ray
        up = normal(p)
        haze = dala.smoothstep(6.0, FAR, way)
        # What is seen at a low angle is a mirror.
        mirror = 0.08 + 0.8 * (1.0 + min(dala.dot(ray, up), 0.0)) ** 5.0
        origin = p + 0.003 * up
        clear = strength * (1.0 - haze)
        color += strength * haze * sky(ray) + clear * (1.0 - mirror) * lit(origin, up, ray)
        ray, strength = dala.reflect(ray, up), clear * mirror
    return color


@dala.function
def ray_through(y, x, camera):
    """The direction of a place in the picture, for a camera that looks at the ring."""
    height, width = dala.shape(2)
    ahead = dala.normalize(dala.vec3(0.0, 0.85, 0.0) - camera)
    right = dala.normalize(dala.cross(dala.vec3(0.0, 1.0, 0.0), ahead))
    across, down = (2.0 * x - width) / height, (2.0 * y - height) / height
    return dala.normalize(2.4 * ahead + across * right - down * dala.cross(ahead, right))


@dala.kernel
def depth(camera: dala.vec3):
    """How far away is what each pixel shows."""
    y, x = dala.position(2)
    return march(camera, ray_through(y + 0.5, x + 0.5, camera))


@dala.kernel
def picture(camera: dala.vec3):
    y, x = dala.position(2)
    color = dala.vec3(0.0)
    for k in range(4):  # four rays through each pixel make outlines smooth
        ray = ray_through(y + 0.25 + 0.5 * (k // 2), x + 0.25 + 0.5 * (k % 2), camera)
        color += 0.25 * seen(camera, ray)
    return dala.rgba(dala.sqrt(color / (1.0 + 0.3 * color)))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--size", type=int, nargs=2, default=(960, 600), metavar=("W", "H"))
    options.add_argument("--camera", type=float, nargs=3, default=CAMERA, metavar=("X", "Y", "Z"))
    options.add_argument("--save", default="scene.png", help="the file to write")
    given = options.parse_args()

    width, height = given.size
    media.save(picture(given.camera, shape=(height, width, 3), dtype="u8"), given.save)


if __name__ == "__main__":
    main()
