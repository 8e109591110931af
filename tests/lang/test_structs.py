"""Named tuples in kernels: made, read, changed, carried, passed on, and given as parameters."""

from __future__ import annotations

from collections import Counter, namedtuple
from typing import NamedTuple

import numpy as np
import pytest

import dala
from dala.errors import ArgumentError, KernelSyntaxError, KernelTypeError
from dala.gpu import compute
from dala.ir.nodes import Apply, walk
from dala.lang.example_specialization import example_of

X = np.linspace(-2.0, 2.0, 33).astype(np.float32)


class Ray(NamedTuple):
    origin: dala.vec3
    direction: dala.vec3 = (0.0, 0.0, 1.0)

    def at(self, t):
        return self.origin + t * self.direction


class Hit(NamedTuple):
    ray: Ray
    t: float = 0.0
    steps: int = 0
    found: bool = False


class Camera(NamedTuple):
    eye: dala.vec3
    turn: dala.mat3
    zoom: dala.f32 = 2.0


class Tint(NamedTuple):
    color: dala.vec3 = (1.0, 0.5, 0.0)

    def pixel(self, share):
        return dala.rgba(self.color * share)


Pair = namedtuple("Pair", "low high")

CAMERA = Camera((0.0, 0.0, -3.0), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
BALLS = (Ray((0.5, 0.0, 0.0)), Ray(np.array([-1.0, 0.0, 0.5])))


@dala.function
def distance(p):
    return min(dala.distance(p, ball.origin) - 0.75 for ball in BALLS)


@dala.function
def march(ray: Ray) -> Hit:
    hit = Hit(ray)
    for k in range(24):
        gap = distance(ray.at(hit.t))
        if gap < 0.001:
            return hit._replace(found=True)
        hit = hit._replace(t=hit.t + gap, steps=k)
    return hit


@dala.kernel
def depth(x, camera: Camera = CAMERA):
    aim = camera.turn @ dala.vec3(x, 0.0, camera.zoom)
    hit = march(Ray(direction=dala.normalize(aim), origin=camera.eye))
    if not hit.found:
        return -1.0
    return hit.t + hit.steps


def depth_by_hand(x: float, zoom: float) -> float:
    aim = np.array([x, 0.0, zoom]) / np.hypot(x, zoom)
    t, steps = 0.0, 0
    for k in range(24):
        p = np.array([0.0, 0.0, -3.0]) + t * aim
        gap = min(np.linalg.norm(p - np.array(ball.origin)) - 0.75 for ball in BALLS)
        if gap < 0.001:
            return t + steps
        t, steps = t + gap, k
    return -1.0


@pytest.mark.parametrize("zoom", [2.0, 1.0])
def test_a_scene_of_structs_agrees_with_python(zoom, device):
    want = np.array([depth_by_hand(float(x), zoom) for x in X])
    got = depth(X, CAMERA._replace(zoom=zoom))
    near = np.abs(got - want) < 1e-3
    assert near.mean() > 0.9, "a ray that just grazes a ball may take a step more"
    assert (want > 0).any()
    assert (want < 0).any()
    ran = depth.python(X[::4], camera=CAMERA._replace(zoom=zoom))
    with compute.device("cpu"):
        np.testing.assert_allclose(ran, depth(X[::4], CAMERA._replace(zoom=zoom)), atol=1e-4)


def test_a_struct_has_the_types_of_its_fields(device):
    class Mixed(NamedTuple):
        whole: dala.u8
        real: float
        flag: bool = True

    @dala.kernel
    def stored(x) -> dala.f32:
        made = Mixed(whole=300.7 + x, real=7)
        return dala.f32(made.whole) + made.real / 2 + (100.0 if made.flag else 0.0)

    assert stored(np.zeros(1, np.float32)).tolist() == [255 + 3.5 + 100]
    assert stored.python(np.zeros(1, np.float32)).tolist() == [255 + 3.5 + 100]


def test_untyped_fields_take_what_they_are_given(device):
    @dala.kernel
    def spread(x):
        (i,) = dala.position(1)
        pair = Pair(high=x, low=x)
        for k in range(3):
            pair = Pair(min(pair.low, x[i + k]), max(pair.high, x[i + k]))
        low, high = pair
        return high - low if pair[0] < 1.0 else Pair(low, high=high).low

    got = spread(X)
    padded = np.pad(X, (0, 2), "edge")
    windows = np.stack([padded[:-2], padded[1:-1], padded[2:]])
    low, high = windows.min(0), windows.max(0)
    np.testing.assert_allclose(got, np.where(low < 1, high - low, low))
    np.testing.assert_allclose(spread.python(X), got)


def test_parameters_are_instances_or_sequences_of_fields(device):
    eye = np.array([0.0, 0.0, -3.0])
    want = depth(X, camera=CAMERA)
    assert np.array_equal(depth(X), want)
    assert np.array_equal(depth(X, (eye, np.eye(3), 2)), want)
    out, given = compute.buffer_zeros(X.shape, "f32"), compute.from_numpy(X)
    pipeline = compute.pipeline().add(kernel=depth, inputs=[given], output=out)
    pipeline.set("depth", camera=CAMERA._replace(zoom=1.0)).run()
    assert np.array_equal(compute.read(out), depth(X, CAMERA._replace(zoom=1.0)))
    assert "camera: Camera = Camera(eye=" in str(depth.params[0])


def test_a_method_may_make_the_pixels_of_a_kernel(device):
    @dala.kernel
    def ramp(tint: Tint = Tint()):  # noqa: B008
        _, j = dala.position(2)
        return tint.pixel(0.5 * j)

    row = np.outer(np.float32([0, 0.5, 1]), np.float32([1, 0.5, 0]))
    want = np.stack([row, row])
    assert np.array_equal(ramp(shape=(2, 3, 3), dtype="f32"), want)
    assert np.array_equal(ramp.python(shape=(2, 3, 3), dtype="f32"), want)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (3.0, r"'camera' is a Camera\(eye, turn, zoom\), not 3.0"),
        (CAMERA._replace(eye=(1.0, 2.0)), r"'camera'.eye is 3 numbers.*not \(1.0, 2.0\)"),
        (CAMERA._replace(turn=np.eye(2)), r"'camera'.turn is 3 rows of 3 numbers"),
        (CAMERA._replace(zoom="x"), "camera.zoom: f32 is a number, not str"),
        (Hit(BALLS[0], 1.0, 2), r"'camera' is a Camera\(eye, turn, zoom\), not Hit"),
    ],
)
def test_what_is_no_instance_is_refused(given, says):
    with pytest.raises(ArgumentError, match=says):
        depth(X, camera=given)


@dala.kernel
def by_structs(x, y, turn: dala.mat2, ray: Ray):
    hit = Hit(ray)
    for k in range(5):
        place = turn @ dala.vec2(x, y) * hit.t
        hit = hit._replace(t=hit.t + dala.length(place), steps=k, ray=Ray(hit.ray.at(place.x)))
    return hit.t + hit.ray.origin.y


@dala.kernel
def by_scalars(x, y, a: float, b: float, c: float, d: float, height: float, rise: float):
    t = dala.f32(0.0)
    up = rise
    for _ in range(5):
        u, v = (a * x + b * y) * t, (c * x + d * y) * t
        t = t + dala.sqrt(u * u + v * v)
        height = height + u * up
        up = dala.f32(0.0)
    return t + height


def operations(kernel) -> Counter[str]:
    program = kernel.definition.lower(example_of(kernel.definition))
    return Counter(item.op for item in walk(program.body) if isinstance(item, Apply))


def test_structs_and_matrices_cost_no_more_than_scalars():
    assert operations(by_structs) == operations(by_scalars)
    assert sum(operations(by_scalars).values()) >= 50


TEXT = """
from typing import NamedTuple


class Ball(NamedTuple):
    center: dala.vec3
    radius: f32 = 1.0

    def distance(self, p):
        return length(p - self.center) - self.radius


class Scene(NamedTuple):
    first: Ball
    second: Ball = Ball((0.0, 0.0, 0.0), radius=0.5)


@dala.function
def nearest(scene: Scene, p):
    return min(scene.first.distance(p), scene.second.distance(p))


def k(x, scene: Scene):
    return nearest(scene, vec3(x, 0.0, 0.0))
"""


def test_classes_and_functions_stand_in_the_text_of_a_kernel(device):
    kernel = compute.Kernel.register("k", TEXT, replace=True)
    scene = (((1, 0, 0), 0.25), ((-1, 0, 0), 0.5))
    want = np.minimum(np.abs(X - 1) - 0.25, np.abs(X + 1) - 0.5)
    np.testing.assert_allclose(kernel(X, scene=scene), want, atol=1e-6)
    np.testing.assert_allclose(kernel.python(X, scene=scene), want, atol=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("self.center", "self.centre", "no `centre`. Did you mean 'center'"),
        ("vec3(x, 0.0, 0.0)", "Ball(1.0, 2.0)", "`center` of Ball is a dala.vec3, not the number"),
        ("vec3(x, 0.0, 0.0)", "Ball(radius=2.0)", "Ball also needs center"),
        ("vec3(x, 0.0, 0.0)", "Ball(vec3(x), 1.0, 2.0)", "Ball has 2 fields, not 3"),
        ("vec3(x, 0.0, 0.0)", "Ball(vec3(x), center=x)", "`center` is given twice"),
        ("vec3(x, 0.0, 0.0)", "scene.first._replace(size=x)", "Ball has no field `size`"),
        ("vec3(x, 0.0, 0.0)", "scene.first._asdict()", "no method `_asdict`"),
        ("nearest(scene,", "nearest(x,", "`scene` of nearest is a Scene, not a f32 value"),
        ("return nearest", "scene.first = x\n    return nearest", r"scene._replace\(first=…\)"),
        ("return nearest(scene, vec3(x, 0.0, 0.0))", "return scene", "Take one of its fields"),
        ("(NamedTuple)", "", "not one of named tuples"),
        ("f32 = 1.0", "str = 1.0", "has a field `radius: str`"),
        ("center: dala.vec3", "center: Ball", "Ball contains itself"),
        ("radius: f32 = 1.0", "radius = 1.0", "fields and methods only"),
        ("first: Ball\n", "first: Ball = x\n", "not a number, or a tuple"),
        ("@dala.function\n", "", "one kernel, not 2"),
        ("def k(", "y = 3\ndef k(", "`Assign` does not stand"),
        (
            "    return nearest(s",
            "    s = scene.first\n    while x > 1.0:\n        s = s[0], 1\n    return nearest(s",
            "named tuple Ball before the loop and a tuple of 2",
        ),
        (
            "    return nearest(s",
            "    s = scene.first if x > 0.0 else scene\n    return nearest(s",
            "the two sides differ: a named tuple Ball and a named tuple Scene",
        ),
    ],
)
def test_mistakes_with_structs_are_explained(old, new, says):
    assert old in TEXT
    with pytest.raises((KernelTypeError, KernelSyntaxError), match=says) as caught:
        compute.Kernel.register("k", TEXT.replace(old, new), replace=True)
    assert "^" in str(caught.value) or "not 2" in says


def test_a_class_that_only_an_annotation_names_has_to_be_outside():
    class Hidden(NamedTuple):
        x: float

    with pytest.raises(KernelSyntaxError, match="define `Hidden` outside"):

        @dala.kernel
        def k(x, hidden: Hidden):
            return x + hidden.x


def test_a_parameter_needs_the_types_of_its_fields():
    with pytest.raises(KernelSyntaxError, match="`low` of Pair has no type"):

        @dala.kernel
        def k(x, pair: Pair):
            return x + pair.low


class Lone(NamedTuple):
    place: dala.vec3


def test_a_named_tuple_of_one_field_is_one_output(device):
    @dala.kernel
    def lone(x):
        return Lone(dala.vec3(x, 2.0 * x, 3.0 * x))

    assert lone(np.array([1.0, 2.0], np.float32)).tolist() == [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]
