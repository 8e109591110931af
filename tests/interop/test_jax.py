"""Kernels called on JAX arrays give JAX arrays."""

from __future__ import annotations

import pytest

from dala import errors
from dala.gpu import compute

jax = pytest.importorskip("jax", reason="JAX is not installed (pip install jax)")


def test_a_kernel_called_on_jax_arrays_gives_a_jax_array(device):
    x = jax.numpy.arange(6, dtype="float32").reshape(2, 3)
    y = compute.Kernel.lookup("elementwise_add")(x, x[0])
    assert isinstance(y, jax.Array)
    assert y.tolist() == [[0, 2, 4], [3, 5, 7]]


def test_jax_arrays_are_read_and_made_without_a_copy_on_the_host(addresses):
    with compute.device("cpu"):
        x = jax.numpy.ones(64, "float32")
        y = compute.Kernel.lookup("scale")(x, 3.0)
    assert addresses == [x.unsafe_buffer_pointer(), y.unsafe_buffer_pointer()]
    assert y[-1] == 3.0


def test_a_jax_array_cannot_be_written_to():
    x = jax.numpy.ones(3)
    with pytest.raises(errors.ArgumentError, match="out is read-only"):
        compute.Kernel.lookup("relu")(x, out=x)
    assert x.tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "uint16", "float16", "bfloat16"])
def test_every_dtype_of_jax_is_given_and_taken(device, dtype):
    x = jax.numpy.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    y = compute.Kernel.lookup("cast")(x)
    assert isinstance(y, jax.Array)
    assert y.dtype == x.dtype
    assert y.tolist() == x.tolist()
