"""A device without f64 and s64: it says so, and computes everything else."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.errors import DtypeError
from dala.gpu import compute

WIDE = {"f64": "shader-f64", "s64": "shader-int64"}


@pytest.fixture
def narrow():
    """The first adapter that has neither of the wide dtypes."""
    for info in compute.devices():
        if info["backend"] == "webgpu" and not set(WIDE.values()) & set(info["features"]):
            with compute.device(info["id"]) as device:
                yield device
            return
    pytest.skip("every adapter here has f64 or s64")


@pytest.mark.parametrize(("wide", "instead"), [("f64", "f32"), ("s64", "s32")])
def test_a_wide_dtype_is_refused_with_the_device_and_one_that_works(narrow, wide, instead):
    x, y = (compute.buffer([1, 1, 1], (3,), instead) for _ in range(2))
    z = compute.buffer([5, 6, 7], (3,), wide)
    for inputs, output in (([z, z], z), ([x, z], y), ([x, y], z)):
        with pytest.raises(DtypeError) as raised:
            compute.run_kernel("elementwise_add", inputs, output)
        for part in ("elementwise_add", wide, narrow.name, instead, "to('cpu')"):
            assert part in str(raised.value)
    assert compute.read_list(z) == [5, 6, 7]
    assert compute.read_list(y) == [1, 1, 1]


@dala.kernel
def through_wide(x):
    return dala.f32(dala.f64(x) + 0.5)


def test_a_wide_dtype_inside_a_kernel_is_refused_too(narrow):
    x = compute.buffer([1.0], (1,), "f32")
    with pytest.raises(DtypeError, match="f64"):
        compute.run_kernel(through_wide, [x], x)
    assert compute.read_list(x) == [1.0]


@pytest.mark.parametrize("wide", WIDE)
def test_a_wide_buffer_can_be_kept_and_moved(narrow, wide):
    x = compute.buffer([1, 2**40, 3], (3,), wide)
    assert compute.read_list(x) == [1, 2**40, 3]
    there = x.to("cpu")
    compute.run_kernel("elementwise_add", [there, there], there)
    assert compute.read_list(there.to(narrow)) == [2, 2**41, 6]


@pytest.mark.parametrize("dtype", ["f4", "i4", "u4", "u1"])
def test_other_dtypes_are_computed(narrow, dtype):
    values = np.arange(257).astype(dtype)
    x, y = compute.from_numpy(values), compute.buffer_zeros((257,), dtype)
    compute.run_kernel("elementwise_add", [x, x], y)
    assert np.array_equal(compute.read(y), values + values)


@dala.kernel
def tally(x, out: dala.Out):
    (i,) = dala.position(1)
    out.add(i % 3, x)


@pytest.mark.parametrize("dtype", ["f4", "i4", "u4", "u1"])
def test_additions_meet(narrow, dtype):
    values = np.random.default_rng(1).integers(0, 100, 5000).astype(dtype)
    out = compute.buffer_zeros((4,), dtype)
    compute.run_kernel(tally, [compute.from_numpy(values)], out)
    want = [values[i::3].sum(dtype=values.dtype) for i in range(3)]
    assert compute.read_list(out) == [*want, 0]


@dala.kernel
def turn(image: dala.Image):
    y, x = dala.position(2)
    h, w = image.size
    return image[h - 1 - y, w - 1 - x]


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_are_computed(narrow, channels):
    shape = (5, 37) if channels == 1 else (5, 37, channels)
    image = np.random.default_rng(2).integers(0, 256, shape, np.uint8)
    out = compute.buffer_zeros(shape, "u8")
    compute.run_kernel(turn, [compute.from_numpy(image)], out)
    assert np.array_equal(compute.read(out), image[::-1, ::-1])


@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_are_computed(narrow, axis):
    values = np.random.default_rng(3).integers(-9, 9, (70, 300)).astype(np.float32)
    x = compute.from_numpy(values)
    for name, formula in (("reduce_sum", np.sum), ("reduce_max", np.max)):
        out = compute.buffer_zeros((values.shape[1 - axis],), "f32")
        compute.run_kernel(name, [x], out, {"axis": axis})
        assert np.array_equal(compute.read(out), formula(values, axis=axis))


def test_softmax_and_products_are_computed(narrow):
    values = np.random.default_rng(4).standard_normal((65, 65)).astype(np.float32)
    x, out = compute.from_numpy(values), compute.buffer_zeros((65, 65), "f32")
    compute.run_kernel("softmax", [x], out)
    powers = np.exp(values.astype(np.float64))
    assert np.allclose(compute.read(out), powers / powers.sum(1, keepdims=True), atol=1e-6)
    compute.run_kernel("matmul", [x, x], out)
    assert np.allclose(compute.read(out), values.astype(np.float64) @ values, atol=1e-4)
