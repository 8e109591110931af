"""Sixteen bits, for what lies between stages: never a dtype, and multiplied in one instruction."""

from __future__ import annotations

import numpy as np
import pytest

from dala import errors
from dala.gpu import compute
from dala.ir.evaluate import evaluate
from dala.ir.types import N16, S16, dtype_of


def test_it_is_no_dtype_that_a_user_can_ask_for():
    with pytest.raises(errors.DtypeError):
        compute.buffer_zeros((3,), "n16")
    assert dtype_of(np.uint16) is not N16


def test_the_upper_half_of_a_product_is_what_it_says():
    a = np.array([0, 1, 255, 65535, 40000], np.uint16)
    b = np.array([9, 65535, 257, 65535, 30000], np.uint16)
    want = (a.astype(np.uint64) * b) >> 16
    assert (evaluate("mulhi", N16, a, b) == want).all()


def test_the_upper_half_of_a_product_may_be_negative(device):
    source = "def halved(x, y):\n    return dala.s16((dala.s32(x) * dala.s32(y)) >> 16)\n"
    kernel = compute.Kernel.register("halved", source, replace=True)
    x, y = np.meshgrid(*[np.array([-32768, -32767, -300, -1, 0, 1, 7, 20000, 32767], np.int16)] * 2)
    want = (x.astype(np.int64) * y) >> 16
    got = compute.buffer_zeros(x.shape, "s16")
    compute.run_kernel(kernel, [compute.from_numpy(x), compute.from_numpy(y)], got)
    assert np.array_equal(got, want)
    assert np.array_equal(evaluate("mulhi", S16, x, y), want)
    with compute.device("cpu"):
        planes = [compute.buffer_zeros((64,), "s16") for _ in range(3)]
    assert "mulhi" in kernel.explain(planes[:2], planes[2])
    compute.Kernel.unregister("halved")


def test_a_blur_of_bytes_multiplies_them_in_sixteen_bits():
    with compute.device("cpu"):
        image, out = (compute.buffer_zeros((4, 64, 4), "u8") for _ in range(2))
    said = compute.Kernel.lookup("blur").explain([image], out)
    assert "mulhi" in said
    assert "x i16>" in said


@pytest.mark.parametrize("name", ["erode", "dilate"])
def test_the_least_and_the_greatest_of_bytes_are_found_in_bytes(name):
    with compute.device("cpu"):
        image, out = (compute.buffer_zeros((4, 64, 4), "u8") for _ in range(2))
    said = compute.Kernel.lookup(name).explain([image], out)
    assert "x i8> @llvm.um" in said
    assert "@llvm.smin.v" not in said


BOUNDS = [
    ("min(dala.s32(x), dala.s32(y))", np.minimum),
    ("max(dala.s32(x), 300)", lambda x, y: np.full_like(x, 300)),
    ("max(dala.s32(x), -1)", lambda x, y: x),
    ("min(dala.s32(x), 255)", lambda x, y: x),
    ("min(max(dala.s32(x), 7), 200)", lambda x, y: x.clip(7, 200)),
    ("min(dala.s32(x), 1000)", lambda x, y: x),
    ("max(dala.s32(x), dala.s32(y) - 300)", lambda x, y: x),
    ("dala.s32(dala.u32(x)) - 256", lambda x, y: x - 256),
    ("dala.s32(dala.u8(dala.s32(x) + 1))", lambda x, y: (x + 1) % 256),
]


@pytest.mark.parametrize(("expression", "want"), BOUNDS, ids=[item[0] for item in BOUNDS])
def test_bounds_beyond_bytes_are_kept(device, expression, want):
    kernel = compute.Kernel.register("bounded", f"def bounded(x, y):\n    return {expression}\n")
    x = np.arange(256, dtype=np.uint8)
    y = x[::-1].copy()
    out = compute.buffer_zeros((256,), "s32")
    compute.run_kernel(kernel, [compute.from_numpy(x), compute.from_numpy(y)], out)
    np.testing.assert_array_equal(np.asarray(out), want(x.astype(int), y.astype(int)))
