"""Vectors as elements of buffers: an input's last axis, and that of what is returned."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import dala
from dala.errors import KernelSyntaxError, KernelTypeError, ShapeError
from dala.gpu import compute
from dala.ir.types import dtype_of

RNG = np.random.default_rng(5)
DTYPES = ["f32", "s32", "u32", "u8", "s8", "s16", "u16", "f16", "bf16"]


def values(shape, dtype="f32"):
    return RNG.integers(0, 200, shape).astype(dtype_of(dtype).numpy)


@dala.kernel
def turned(points: dala.Array[dala.vec3], turn: dala.mat3):
    return turn @ points


@dala.kernel
def steps2(points: dala.Array[dala.vec2]) -> dala.vec2:
    (i,) = dala.position(1)
    return points[i + 1] - points


@dala.kernel
def steps3(points: dala.Array[dala.vec3]) -> dala.vec3:
    (i,) = dala.position(1)
    return points[i + 1] - points


@dala.kernel
def steps4(points: dala.Array[dala.vec4]) -> dala.vec4:
    (i,) = dala.position(1)
    return points[i + 1] - points


@pytest.mark.parametrize("count", [1, 2, 3, 5, 64, 1001])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("steps", [steps2, steps3, steps4], ids=lambda kernel: kernel.name)
def test_vectors_are_read_at_and_beside_their_position(steps, dtype, count, device):
    size = int(steps.name[-1])
    points = values((count, size), dtype)
    got = steps(points)
    want = np.vstack([points[1:], points[-1:]]) - points
    assert got.dtype == points.dtype
    assert np.array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_vectors_of_64_bits(dtype, device):
    if device != "cpu":
        pytest.skip("only the CPU has them for certain")
    points = values((9, 4)).astype(dtype)
    assert np.array_equal(steps4(points), np.vstack([points[1:], points[-1:]]) - points)


@pytest.mark.parametrize("count", [1, 5, 64, 1001])
def test_vectors_of_conditions_are_stored_as_such(count, device):
    @dala.kernel
    def ahead(flags: dala.Array[dala.vec3]) -> dala.vec3:
        (i,) = dala.position(1)
        return flags[i + 1]

    flags = values((count, 3)) > 100
    got = ahead(flags)
    assert got.dtype == bool
    assert np.array_equal(got, np.vstack([flags[1:], flags[-1:]]))


def test_several_outputs_may_be_vectors(device):
    class Split(NamedTuple):
        direction: dala.vec3
        length: float

    @dala.kernel
    def split(points: dala.Array[dala.vec3]):
        size = dala.length(points)
        return Split(points / size, size)

    points = RNG.normal(size=(77, 3)).astype(np.float32)
    for directions, lengths in (split(points), split.python(points)):
        assert (directions.shape, lengths.shape) == ((77, 3), (77,))
        np.testing.assert_allclose(directions * lengths[:, None], points, atol=1e-5)


def test_components_of_the_vector_at_a_position_have_names(device):
    @dala.kernel
    def area(corners: dala.Array[dala.vec4]):
        left, top, right, bottom = corners
        return (right - left) * (bottom - top) + dala.dot(corners.xy, corners.ab) + corners.r

    given = values((37, 4))
    a, b, c, d = given.T
    want = (c - a) * (d - b) + a * d + b * c + a
    assert np.array_equal(area(given), want)
    assert np.array_equal(area.python(given), want)


def test_a_vector_of_literals_takes_the_type_of_what_it_meets(device):
    if device != "cpu":
        pytest.skip("only the CPU has f64 for certain")

    @dala.kernel
    def shifted(points: dala.Array[dala.vec2], scale: dala.f64):
        return (points + dala.vec2(0.1, 0.2)) @ dala.identity(2)

    points = np.zeros((3, 2), np.float32)
    assert shifted(points, scale=1.0).dtype == np.float32
    assert shifted(points.astype(np.float64), scale=1.0).tolist() == [[0.1, 0.2]] * 3


def test_an_array_without_a_type_of_elements_has_numbers(device):
    @dala.kernel
    def doubled(x: dala.Array):
        return 2 * x

    assert doubled(values((3, 2), "s32")).dtype == np.int32


def test_a_vector_for_each_position_is_the_last_axis(device):
    points = RNG.normal(size=(257, 3)).astype(np.float32)
    turn = RNG.normal(size=(3, 3)).astype(np.float32)
    np.testing.assert_allclose(turned(points, turn), points @ turn.T, atol=1e-5)
    assert turned(points[0], turn).shape == (3,)
    held = compute.from_numpy(points)
    assert turned(held, turn).shape == (257, 3)
    np.testing.assert_allclose(turned.python(points[:4], turn=turn), points[:4] @ turn.T, atol=1e-5)


def test_vectors_broadcast_without_their_last_axis(device):
    @dala.kernel
    def apart(points: dala.Array[dala.vec4], from_: dala.Array[dala.vec4], scale):
        return (points - from_) * scale

    for shapes in [((5, 7), (7,), (7,)), ((5, 1), (1, 7), ()), ((5, 7), (), (5, 1))]:
        a, b = (values((*shape, 4)) for shape in shapes[:2])
        c = values(shapes[2])
        want = (a - b) * c[..., None]
        assert np.array_equal(apart(a, b, c), want)
        assert np.array_equal(apart.python(a, b, c), want)


def test_a_grid_of_vectors_has_borders_and_samples(device):
    @dala.kernel(border="wrap")
    def flow(field: dala.Array[dala.vec2], time: float = 0.5):
        i, j = dala.position(2)
        back = field * time
        h, w = field.shape
        return field.sample(i - back.y, j - back.x) + field[i - 1, j + 1] * dala.f32(
            h + w + len(field)
        )

    field = RNG.normal(size=(6, 9, 2)).astype(np.float32)
    got = flow(field)
    assert got.shape == field.shape
    np.testing.assert_allclose(got, flow.python(field), atol=1e-4)
    with compute.device("cpu"):
        np.testing.assert_allclose(got, flow(field), atol=1e-4)
    near = np.roll(field, (1, -1), (0, 1)) * 21
    still = flow(field, time=0.0)
    np.testing.assert_allclose(still, field + near, atol=1e-4)


def test_a_kernel_of_numbers_or_images_may_return_vectors(device):
    @dala.kernel
    def normals(heights):
        i, j = dala.position(2)
        across = heights[i, j + 1] - heights[i, j - 1]
        return dala.normalize(dala.vec3(across, heights[i + 1, j] - heights[i - 1, j], 2.0))

    @dala.kernel
    def doubled(image: dala.Image):
        return dala.vec2(image.pixel.r, image.pixel.b) * 2.0

    @dala.kernel
    def places() -> dala.vec2:
        i, j = dala.position(2)
        return dala.vec2(i, j)

    heights = RNG.normal(size=(11, 13)).astype(np.float32)
    got = normals(heights)
    assert got.shape == (11, 13, 3)
    np.testing.assert_allclose(np.linalg.norm(got, axis=2), 1.0, rtol=1e-5)
    np.testing.assert_allclose(got, normals.python(heights), atol=1e-5)
    image = values((4, 5, 3), "u8")
    np.testing.assert_allclose(doubled(image), image[..., ::2] / 255 * 2, atol=1e-6)
    assert doubled(image, dtype="u8").max() <= 2, "vectors are stored as they are"
    assert np.array_equal(places(shape=(3, 4, 2)), np.indices((3, 4)).transpose(1, 2, 0))


def test_the_first_input_of_a_scattering_kernel_may_be_vectors(device):
    @dala.kernel
    def count(points: dala.Array[dala.vec2], out: dala.Out):
        (i,) = dala.position(1)
        p = dala.s32(dala.floor(points[i]))
        out.add((p.y, p.x), 1)

    points = RNG.random((400, 2)).astype(np.float32) * 5
    got = count(points, shape=(5, 5), dtype="s32")
    want = np.histogram2d(points[:, 1], points[:, 0], 5, [[0, 5], [0, 5]])[0]
    assert np.array_equal(got, want)
    assert np.array_equal(count.python(points, shape=(5, 5), dtype="s32"), want)


def test_vectors_are_summed_component_by_component(device):
    @dala.kernel
    def pull(points: dala.Array[dala.vec3]) -> dala.vec3:
        (i,) = dala.position(1)
        mean = sum(points[k] for k in range(len(points))) / len(points)
        high = max(points[k] for k in range(len(points)) if k != i)
        return mean - high * 0.5 + sum(points[i + n] for n in (1, 2))

    points = RNG.normal(size=(20, 3)).astype(np.float32)
    padded = np.vstack([points, points[-1:], points[-1:]])
    others = np.stack([np.delete(points, i, 0).max(0) for i in range(20)])
    want = points.mean(0) - others * 0.5 + padded[1:-1] + padded[2:]
    np.testing.assert_allclose(pull(points), want, atol=1e-5)
    np.testing.assert_allclose(pull.python(points), want, atol=1e-5)


def test_pixels_are_summed_channel_by_channel(device):
    @dala.kernel
    def spread(image: dala.Image):
        y, x = dala.position(2)
        mean = sum(image[y, x + k] for k in range(-2, 3)) / 5
        least = min(image[y + k, x] for k in range(-2, 3) if k != 0)
        return dala.rgba((mean - least).r, least.g, mean.b, 1.0)

    image = RNG.random((7, 9, 4)).astype(np.float32)
    wide, high = (
        np.pad(image, pad, "edge") for pad in ([(0, 0), (2, 2), (0, 0)], [(2, 2), (0, 0), (0, 0)])
    )
    mean = sum(wide[:, k : k + 9] for k in range(5)) / 5
    least = np.min([high[k : k + 7] for k in (0, 1, 3, 4)], axis=0)
    want = np.stack(
        [mean[..., 0] - least[..., 0], least[..., 1], mean[..., 2], np.ones((7, 9))], -1
    )
    np.testing.assert_allclose(spread(image), want, atol=1e-6)
    np.testing.assert_allclose(spread.python(image), want, atol=1e-6)


def test_stages_of_a_pipeline_hand_vectors_on(device):
    points = RNG.normal(size=(300, 3)).astype(np.float32)
    turn = np.eye(3)[::-1]
    given, out = compute.from_numpy(points), compute.buffer_zeros((300, 3), "f32")
    between = compute.scratch((300, 3), "f32")
    pipeline = compute.pipeline()
    pipeline.add(kernel=turned, inputs=[given], output=between, params={"turn": turn})
    pipeline.add(kernel=steps3, inputs=[between], output=out)
    pipeline.run()
    flipped = points[:, ::-1]
    np.testing.assert_allclose(
        compute.read(out), np.vstack([flipped[1:], flipped[-1:]]) - flipped, atol=1e-6
    )


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: steps3(values((4, 4))), "'points' are vectors of 3, so the last axis .* 3; it is"),
        (lambda: steps3(values((3, 3)), out=values((3, 2))), "what it returns are vectors of 3"),
        (lambda: steps3(values((3, 3)), shape=(5, 3)), r"'points' is \(3, 3\), but the output"),
    ],
)
def test_buffers_that_have_no_such_vectors_are_refused(call, says):
    with pytest.raises(ShapeError, match=says):
        call()


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("def k(x: Array[f32]): return x", KernelSyntaxError, "numbers or vectors"),
        ("def k(x: Array[y]): return x", KernelSyntaxError, "does not annotate"),
        ("def k(x: Array[vec3]) -> vec2: return x", KernelTypeError, "vector of 3, but its output"),
        ("def k(x) -> vec2: return x", KernelTypeError, "returns a f32 value, but its output"),
        ("def k(x: Array[vec3]): return x.pixel", KernelTypeError, "has no `pixel`"),
        ("def k(x: Array[vec3] = 1): return x", KernelSyntaxError, "has a default"),
    ],
)
def test_mistakes_with_vectors_of_buffers_are_explained(text, kind, says):
    with pytest.raises(kind, match=says) as caught:
        compute.Kernel.register("k", text, replace=True)
    assert "^" in str(caught.value)
