"""Sixteen bits, for what lies between stages: never a dtype, and multiplied in one instruction."""

from __future__ import annotations

import numpy as np
import pytest

from dala import errors
from dala.gpu import compute
from dala.ir.evaluate import evaluate
from dala.ir.types import U16, dtype_of


def test_it_is_no_dtype_that_a_user_can_ask_for():
    for given in ("u16", np.uint16):
        with pytest.raises(errors.DtypeError):
            compute.buffer_zeros((3,), given)
    assert dtype_of(U16) is U16


def test_the_upper_half_of_a_product_is_what_it_says():
    a = np.array([0, 1, 255, 65535, 40000], np.uint16)
    b = np.array([9, 65535, 257, 65535, 30000], np.uint16)
    want = (a.astype(np.uint64) * b) >> 16
    assert (evaluate("mulhi", U16, a, b) == want).all()


def test_a_blur_of_bytes_multiplies_them_in_sixteen_bits():
    with compute.device("cpu"):
        image, out = (compute.buffer_zeros((4, 64, 4), "u8") for _ in range(2))
    said = compute.Kernel.lookup("blur").explain([image], out)
    assert "mulhi" in said
    assert "x i16>" in said
