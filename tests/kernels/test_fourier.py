"""The Fourier transform, against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.samples import DTYPES, sample, small

from dala import errors
from dala.gpu import compute
from dala.kernels.tensor.fourier import fft
from dala.kernels.tensor.fourier_passes import radices_of


def transform(x, axis, inverse):
    """The sum that defines it, as a product with a matrix."""
    n = x.shape[axis]
    turns = np.outer(np.arange(n), np.arange(n)) % n / n
    matrix = np.exp((2j if inverse else -2j) * np.pi * turns) / (n if inverse else 1)
    return np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)


def pairs(x):
    return np.stack([x.real, x.imag], -1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_real_and_complex_numbers_are_transformed_along_every_axis(run, dtype):
    output, inverse = "f64" if dtype == "f64" else "f32", DTYPES.index(dtype) % 2 == 0
    for shape in [(1,), (2,), (16,), (257,), (3, 12), (2, 5, 8)]:
        for axis in range(-len(shape), len(shape)):
            real = small(shape, dtype)
            both = small((*shape, 2), dtype, 2)
            for x, values in ((real, real), (both, both[..., 0] + 1j * both[..., 1])):
                want = pairs(transform(values, axis, inverse))
                got = run("fft", [x], want.shape, output, axis=axis, inverse=inverse)
                rtol = 1e-12 if output == "f64" else 2e-6
                np.testing.assert_allclose(got, want, atol=rtol * np.abs(want).max())


@pytest.mark.parametrize("computed_by", ["kernels"], indirect=True)
@pytest.mark.parametrize(("dtype", "inverse"), [("f32", False), ("f32", True), ("f64", True)])
def test_every_length_is_transformed(run, computed_by, dtype, inverse):
    # One and two factors, powers, primes, and prime factors that are large.
    for n in (*range(1, 18), 49, 60, 97, 121, 202, 256, 360, 500):
        for shape in ((2, n), (n, 3)):
            x = sample((*shape, 2), dtype, n)
            want = pairs(transform(x[..., 0] + 1j * x[..., 1], shape.index(n), inverse))
            got = run("fft", [x], x.shape, dtype, axis=shape.index(n), inverse=inverse)
            rtol = 1e-12 if dtype == "f64" else 2e-6
            np.testing.assert_allclose(got, want, atol=rtol * np.abs(want).max(), err_msg=f"{n}")


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("inverse", [False, True])
def test_threads_share_rows_and_long_rows(monkeypatch, threads, inverse):
    monkeypatch.setenv("DALA_THREADS", threads)
    for shape, axis in [((1 << 16,), 0), ((2, 45 * 99), 1), ((60, 1003), 1), ((300, 7, 34), 0)]:
        for x in (sample(shape, "f32", 5), sample((*shape, 2), "f32", 6)):
            values = x if x.shape == shape else x[..., 0] + 1j * x[..., 1]
            function = np.fft.ifft if inverse else np.fft.fft
            want = pairs(function(values.astype(np.complex128), axis=axis))
            with compute.device("cpu"):
                out, given = compute.buffer_zeros(want.shape, "f32"), compute.from_numpy(x)
                compute.run_kernel("fft", [given], out, {"axis": axis, "inverse": inverse})
            np.testing.assert_allclose(np.asarray(out), want, atol=2e-6 * np.abs(want).max())


@pytest.mark.parametrize(
    ("n", "radices"),
    [
        (1, (1,)),
        (13, (13,)),
        (49, (7, 7)),
        (1024, (16, 8, 8)),
        (512, (8, 8, 8)),
        (1000, (10, 10, 10)),
        (17, (1, 17, 1)),
        (2 * 9 * 101, (6, 101, 3)),
    ],
)
def test_each_factor_takes_one_pass(device, n, radices):
    assert radices_of(n) == radices
    x, out = (compute.buffer_zeros((n, 2), "f32") for _ in range(2))
    by_numpy = device == "cpu" and max(radices) > 16
    assert len(list(fft.stages([x], out))) == (1 if by_numpy else len(radices))


@pytest.mark.usefixtures("computed_by")
def test_the_inverse_undoes_the_transform(device):
    x = sample((100, 2), "f64")
    buffer = compute.from_numpy(x.copy())
    compute.run_kernel("fft", [buffer], buffer, {"axis": 0})
    compute.run_kernel("fft", [buffer], buffer, {"axis": 0, "inverse": True})
    np.testing.assert_allclose(compute.read(buffer), x, atol=1e-12)


@pytest.mark.usefixtures("computed_by")
def test_nothing_is_transformed_to_nothing(run):
    assert run("fft", [np.zeros((3, 0), np.float32)], (3, 0, 2), "f32").shape == (3, 0, 2)


@pytest.mark.parametrize(
    ("shape", "output", "params", "error", "words"),
    [
        ((8,), ((8,), "f32"), {}, errors.ShapeError, "the output is (8,) and the input (8,)"),
        ((8,), ((9, 2), "f32"), {}, errors.ShapeError, "the output is (9, 2)"),
        ((8,), ((8, 2), "s32"), {}, errors.DtypeError, "the output is s32"),
        ((8,), ((8, 2), "f32"), {"axis": 1}, errors.ArgumentError, "axis 1 is outside"),
        ((8,), ((8, 2), "f32"), {"inverse": 2}, errors.ArgumentError, "True or False, not 2"),
    ],
)
def test_mistakes_are_refused(fail, shape, output, params, error, words):
    assert words in fail(error, "fft", [(shape, "f32")], output, **params)
