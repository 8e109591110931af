"""Matrices in kernels: made, multiplied, inverted, indexed, and given as parameters."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.errors import ArgumentError, KernelSyntaxError, KernelTypeError
from dala.gpu import compute

RNG = np.random.default_rng(16)
COUNT = 20


def data(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Matrices that are far from singular, and vectors."""
    matrices = RNG.normal(size=(COUNT, size, size)) + 3 * np.eye(size)
    return matrices.astype(np.float32), RNG.normal(size=(COUNT, size)).astype(np.float32)


def kernel_of(size: int, body: str) -> str:
    numbers = ", ".join(f"a[i, {r}, {c}]" for r in range(size) for c in range(size))
    parts = ", ".join(f"b[i, {c}]" for c in range(size))
    head = f"def k(a, b):\n i, j = dala.position(2)\n m = dala.mat{size}({numbers})\n"
    return f"{head} v = dala.vec{size}({parts})\n{body}"


def computed(size: int, body: str, a: np.ndarray, b: np.ndarray, width: int) -> np.ndarray:
    kernel = compute.Kernel.register("k", kernel_of(size, body), replace=True)
    given = compute.from_numpy(a), compute.from_numpy(b)
    return compute.read(kernel(*given, shape=(COUNT, width), dtype="f32"))


def each(values: np.ndarray) -> np.ndarray:
    """The values of each matrix in one row."""
    return values.reshape(COUNT, -1)


CASES = {
    "(m @ v)[j]": lambda m, v, n: np.einsum("irc,ic->ir", m, v),
    "(v @ m)[j]": lambda m, v, n: np.einsum("irc,ir->ic", m, v),
    "v @ v": lambda m, v, n: (v * v).sum(1, keepdims=True),
    "(m @ m)[j // {n}, j % {n}]": lambda m, v, n: each(m @ m),
    "(m @ m.T)[j // {n}, j % {n}]": lambda m, v, n: each(m @ m.transpose(0, 2, 1)),
    "dala.transpose(m)[j // {n}][j % {n}]": lambda m, v, n: each(m.transpose(0, 2, 1)),
    "dala.inverse(m)[j // {n}, j % {n}]": lambda m, v, n: each(np.linalg.inv(m)),
    "dala.determinant(m)": lambda m, v, n: np.linalg.det(m)[:, None],
    "(2.0 * m - m / 4.0 + m * m)[j // {n}, j % {n}]": lambda m, v, n: each(1.75 * m + m * m),
    "abs(-m)[j // {n}, j % {n}]": lambda m, v, n: each(np.abs(m)),
    "m[0] @ m[-1]": lambda m, v, n: (m[:, 0] * m[:, -1]).sum(1)[:, None],
    "(dala.identity({n}) * 2.0 + m)[j // {n}, j % {n}]": lambda m, v, n: each(m + 2 * np.eye(n)),
    "m[j - 1, j + 1]": lambda m, v, n: np.stack(
        [m[:, max(j - 1, 0), min(j + 1, n - 1)] for j in range(n)], 1
    ),
}


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("expression", CASES)
def test_matrices_agree_with_numpy(expression, size, device):
    a, b = data(size)
    want = CASES[expression](a.astype(float), b.astype(float), size)
    got = computed(size, f" return {expression.format(n=size)}", a, b, want.shape[1])
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)


def test_branches_and_loops_carry_matrices(device):
    a, b = data(3)
    body = " for k in range(3):\n  if v.x > 0.0:\n   m = m @ m * 0.1\n  else:\n   m = m.T\n"
    body += " return m[1, j]"
    got = computed(3, body, a, b, 3)
    want = a.astype(float)
    for _ in range(3):
        want = np.where(b[:, 0, None, None] > 0, want @ want * 0.1, want.transpose(0, 2, 1))
    np.testing.assert_allclose(got, want[:, 1], rtol=1e-4)


@dala.kernel
def turned(x, turn: dala.mat2 = ((0.0, -1.0), (1.0, 0.0))):
    return (turn @ dala.vec2(x, 1.0)).x + turn[1, 0]


def test_a_matrix_is_a_parameter_with_a_default(device):
    x = np.array([1.0, 2.0], np.float32)
    assert turned(x).tolist() == [0.0, 0.0]
    assert turned(x, turn=np.array([[2, 0], [5, 1]])).tolist() == [7.0, 9.0]
    assert turned(compute.from_numpy(x), [[0.0, 3.0], [1.0, 0.0]]).shape == (2,)
    assert turned.python(x, turn=((2, 0), (5, 1))).tolist() == [7.0, 9.0]
    assert str(turned.params[0]) == "turn: mat2 = ((0.0, -1.0), (1.0, 0.0))"


@pytest.mark.parametrize("given", [1.0, (1.0, 2.0, 3.0, 4.0), np.eye(3), ((1, 2), (3, "x")), None])
def test_what_is_no_matrix_is_refused(given):
    with pytest.raises(ArgumentError, match="turn"):
        turned(np.ones(3, np.float32), turn=given)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (" return m", "not a matrix of 3×3"),
        (" return (m * v).x", "write m @ v"),
        (" return (m @ v.xy).x", "does not multiply a matrix of 3×3 and a vector of 2"),
        (" return m @ 2.0", "multiplied with"),
        (" return m[3, 0]", "index 3 is outside"),
        (" return m[0, 1, 2]", "indexed by 1 or 2 integers, not 3"),
        (" return m == m", "matrices are not compared"),
        (" return m.inverse", "its transpose"),
        (" return dala.mat3(1.0)[0, 0]", "9 numbers, or 3 rows of 3, not 1"),
        (" return dala.identity(5)[0, 0]", "the size of a matrix, 2 to 4, not the number 5"),
        (" return dala.inverse(v).x", "takes a matrix, not a vector of 3"),
        (" m[0] = v\n return m[0, 0]", "cannot be written to"),
    ],
)
def test_mistakes_with_matrices_are_explained(body, says):
    with pytest.raises((KernelTypeError, KernelSyntaxError), match=says) as caught:
        compute.Kernel.register("k", kernel_of(3, body), replace=True)
    assert "^" in str(caught.value)


def test_a_default_that_is_no_matrix_is_refused():
    text = "def k(x, m: dala.mat2 = (1.0, 2.0)): return x + m[0, 0]"
    with pytest.raises(KernelSyntaxError, match="not 2 rows of 2 numbers"):
        compute.Kernel.register("k", text, replace=True)


def test_matrices_run_as_python_too():
    a, b = data(4)
    body = " n = dala.inverse(m @ dala.identity(4))\n return (n @ v)[i % 3] + n[j, i].x" + (
        " if i > 2 else dala.determinant(m.T) + len(m)"
    )
    text = kernel_of(4, body).replace("n[j, i].x", "n[j, i]")
    kernel = compute.Kernel.register("k", text, replace=True)
    got = kernel.python(a, b, shape=(6, 2), dtype="f32")
    with compute.device("cpu"):
        want = kernel(a, b, shape=(6, 2), dtype="f32")
    np.testing.assert_allclose(got, want, rtol=1e-5)
