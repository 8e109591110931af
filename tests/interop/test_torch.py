"""PyTorch and dala share memory, in both directions. CI installs PyTorch for this."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from dala import errors
from dala.gpu import compute

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install torch)")

DTYPES = {
    "f32": torch.float32,
    "f64": torch.float64,
    "s32": torch.int32,
    "s64": torch.int64,
    "u32": torch.uint32,
    "u8": torch.uint8,
    "s8": torch.int8,
    "s16": torch.int16,
    "u16": torch.uint16,
    "u64": torch.uint64,
    "f16": torch.float16,
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_becomes_a_buffer_without_a_copy(dtype):
    tensor = torch.tensor([[1, 2], [3, 4]]).to(DTYPES[dtype])
    shared = compute.from_dlpack(tensor)
    assert (shared.dtype, shared.shape) == (dtype, (2, 2))
    compute.run_kernel("elementwise_add", [shared, shared], shared)
    assert tensor.tolist() == [[2, 4], [6, 8]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_buffer_becomes_a_tensor_without_a_copy(dtype):
    buf = compute.buffer([1, 2, 3], (3,), dtype)
    tensor = torch.from_dlpack(buf)
    assert tensor.dtype == DTYPES[dtype]
    compute.write(buf, [4, 5, 6])
    assert tensor.tolist() == [4, 5, 6]


def test_a_tensor_outlives_its_buffer_and_a_buffer_its_tensor():
    buf = compute.buffer([1.0, 2.0], (2,), "f32")
    tensor = torch.from_dlpack(buf)
    compute.free(buf)
    del buf
    gc.collect()
    compute.buffer([9.0, 9.0], (2,), "f32")
    assert tensor.tolist() == [1.0, 2.0]
    source = torch.ones(1000)
    shared = compute.from_dlpack(source)
    del source
    gc.collect()
    assert compute.read(shared).sum() == 1000


def test_a_transposed_tensor_is_copied():
    tensor = torch.arange(6, dtype=torch.float32).reshape(2, 3).T
    buf = compute.from_dlpack(tensor)
    assert np.array_equal(compute.read(buf), tensor.numpy())
    compute.write(buf, np.zeros((3, 2), np.float32))
    assert tensor.sum() == 15


def test_a_dtype_that_buffers_do_not_have_is_refused():
    with pytest.raises(errors.DtypeError, match=r"complex64.*f32"):
        compute.from_dlpack(torch.zeros(3, dtype=torch.complex64))


def test_a_tensor_that_needs_gradients_is_refused_with_advice():
    with pytest.raises(errors.DalaError, match="detach"):
        compute.from_dlpack(torch.zeros(3, requires_grad=True))


def test_a_kernel_called_on_tensors_gives_a_tensor(device):
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    add = compute.Kernel.lookup("elementwise_add")
    y = add(x, x[0])
    assert isinstance(y, torch.Tensor)
    assert y.tolist() == [[0, 2, 4], [3, 5, 7]]
    assert add(x.T, x.T).tolist() == (2 * x.T).tolist()


def test_a_kernel_called_on_tensors_writes_into_a_tensor(device):
    x, out = torch.ones(4), torch.zeros(8)
    scale = compute.Kernel.lookup("scale")
    assert scale(x, 3.0, out=out[::2]).tolist() == [3.0] * 4
    assert out.tolist() == [3.0, 0.0] * 4
    assert scale(x, 2.0, out=x) is x
    assert x.tolist() == [2.0] * 4


def test_a_kernel_called_on_tensors_copies_nothing_on_the_host(addresses):
    with compute.device("cpu"):
        x = torch.ones(64)
        y = compute.Kernel.lookup("scale")(x, 3.0)
    assert addresses == [x.data_ptr(), y.data_ptr()]
    assert y[-1] == 3.0


def test_a_tensor_that_needs_gradients_is_refused_with_a_remedy():
    with pytest.raises(errors.ArgumentError, match="detach"):
        compute.Kernel.lookup("relu")(torch.ones(3, requires_grad=True))


def test_masks_and_bf16_are_given_and_taken(device):
    for dtype in (torch.bool, torch.bfloat16):
        x = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
        y = compute.Kernel.lookup("cast")(x)
        assert isinstance(y, torch.Tensor)
        assert y.dtype == dtype
        assert y.tolist() == x.tolist()
