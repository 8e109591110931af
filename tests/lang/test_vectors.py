"""Vectors in kernels: components, arithmetic, functions, parameters, in branches and loops."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.errors import ArgumentError, KernelSyntaxError, KernelTypeError
from dala.gpu import compute

RNG = np.random.default_rng(11)
A, B = RNG.normal(size=(50, 3)).astype(np.float32), RNG.normal(size=(50, 3)).astype(np.float32)

HEAD = """def k(a, b):
 (i,) = dala.position(1)
 u = dala.vec3(a[i, 0], a[i, 1], a[i, 2])
 v = dala.vec3(b[i, 0], b[i, 1], b[i, 2])
"""


def computed(body: str, shape=(50,)) -> np.ndarray:
    kernel = compute.Kernel.register("k", HEAD + body, replace=True)
    return kernel(compute.from_numpy(A), compute.from_numpy(B), shape=shape, dtype="f32")


def dot(a, b):
    return (a * b).sum(1)


CASES = {
    " return dala.dot(u, v)": lambda: dot(A, B),
    " return dala.length(u)": lambda: np.linalg.norm(A, axis=1),
    " return dala.distance(u, v)": lambda: np.linalg.norm(A - B, axis=1),
    " return dala.cross(u, v).y": lambda: np.cross(A, B)[:, 1],
    " return dala.normalize(u).z": lambda: (A / np.linalg.norm(A, axis=1)[:, None])[:, 2],
    " return dala.reflect(u, v).x": lambda: (A - 2 * dot(A, B)[:, None] * B)[:, 0],
    " return dala.mix(u, v, 0.25).x": lambda: 0.75 * A[:, 0] + 0.25 * B[:, 0],
    " return dala.dot(u.xy, v.yx)": lambda: A[:, 0] * B[:, 1] + A[:, 1] * B[:, 0],
    " return (2.0 * u - v / 4.0).z": lambda: 2 * A[:, 2] - B[:, 2] / 4,
    " return dala.max(abs(u), 0.5).b": lambda: np.maximum(abs(A[:, 2]), 0.5),
    " x, y, z = u\n return x + 10.0 * y + 100.0 * z": lambda: A @ np.float32([1, 10, 100]),
    " return u[2] - u[0]": lambda: A[:, 2] - A[:, 0],
    " return dala.dot(dala.vec4(u, 1.0), dala.vec4(0.5))": lambda: 0.5 * (A.sum(1) + 1),
    " w = u if u.x > 0.0 else v\n return w.y": lambda: np.where(A[:, 0] > 0, A[:, 1], B[:, 1]),
    " w = u\n if w.x < 0.0:\n  w = w + v\n return w.x": lambda: np.where(
        A[:, 0] < 0, A[:, 0] + B[:, 0], A[:, 0]
    ),
    " w = u\n for n in range(5):\n  w = w * 0.5 + v\n return w.z": lambda: (
        A[:, 2] / 32 + B[:, 2] * (1 + 0.5 + 0.25 + 0.125 + 0.0625)
    ),
}


@pytest.mark.parametrize("body", CASES)
def test_vectors_agree_with_numpy(body, device):
    got = compute.read(computed(body))
    np.testing.assert_allclose(got, CASES[body](), rtol=2e-5, atol=2e-5)


def test_a_vector_is_a_parameter_with_a_default(device):
    @dala.kernel
    def tinted(image: dala.Image, tint: dala.vec3 = (1.0, 0.5, 0.25)):
        p = image.pixel
        return dala.rgba(dala.vec3(p.r, p.g, p.b) * tint, p.a)

    image = RNG.random((4, 5, 3), np.float32)
    np.testing.assert_allclose(tinted(image), image * np.float32([1, 0.5, 0.25]), rtol=1e-6)
    given = compute.from_numpy(image)
    np.testing.assert_allclose(
        compute.read(tinted(given, tint=(0.0, 1.0, 2.0))), image * np.float32([0, 1, 2]), rtol=1e-6
    )
    out = compute.buffer_zeros(image.shape, "f32")
    pipeline = compute.pipeline().add(
        kernel=tinted, inputs=[given], output=out, params={"tint": np.float32([2, 2, 2])}
    )
    pipeline.run()
    np.testing.assert_allclose(compute.read(out), image * 2, rtol=1e-6)
    pipeline.set("tinted", tint=[3.0, 0.0, 0.0]).run()
    np.testing.assert_allclose(compute.read(out), image * np.float32([3, 0, 0]), rtol=1e-6)
    assert str(tinted.params[0]) == "tint: vec3 = (1.0, 0.5, 0.25)"


@pytest.mark.parametrize("given", [1.0, (1.0, 2.0), "red", (1.0, 2.0, "x"), None])
def test_what_is_no_vector_is_refused(given):
    @dala.kernel
    def shifted(x, by: dala.vec3):
        return x + by.x

    with pytest.raises(ArgumentError, match="by"):
        shifted(np.ones(3, np.float32), by=given)


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        (" return u == v", KernelTypeError, "not compared as a whole"),
        (" return dala.dot(u, v.xy)", KernelTypeError, "vectors of one length"),
        (" return dala.cross(u.xy, v.xy).x", KernelTypeError, "vectors of 3 components"),
        (" return dala.length(3.0)", KernelTypeError, "takes a vector"),
        (" return (u + v.xy).x", KernelTypeError, "do not go together"),
        (" return u.xyw", KernelTypeError, "its components by their letters"),
        (" return dala.vec3(1.0, 2.0).x", KernelTypeError, "takes 3 components, not 2"),
        (" return u[3]", (KernelTypeError, KernelSyntaxError), "3"),
    ],
)
def test_mistakes_with_vectors_are_explained(body, kind, says):
    with pytest.raises(kind, match=says):
        compute.Kernel.register("k", HEAD + body, replace=True)


def test_a_default_of_another_length_is_refused():
    with pytest.raises(KernelSyntaxError, match="not 3 numbers"):
        compute.Kernel.register(
            "k", "def k(x, t: dala.vec3 = (1.0, 2.0)): return x + t.x", replace=True
        )
