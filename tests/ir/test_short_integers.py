"""Integers in 16 bits where they fit: the same numbers, computed twice as many at a time."""

import numpy as np
import pytest

from dala.gpu import compute
from dala.ir.nodes import Apply, walk
from dala.ir.ops import CONVERT
from dala.ir.short_integers import in_short_integers
from dala.ir.types import F32, S16, U8, Scalar
from dala.lang.lower import Specialization

BYTES = np.random.default_rng(1).integers(0, 256, (5, 90), np.uint8)
SIGNED = BYTES.astype(np.int8)


def kernel_of(expression: str):
    lines = [
        "i, j = dala.position(2)",
        "a, b, c = int(x[i, j]), int(x[i, j - 1]), int(x[i - 1, j])",
        f"return dala.f32({expression})",
    ]
    return compute.Kernel.register("k", "def k(x):\n    " + "\n    ".join(lines))


def operations(expression: str, given: Scalar = U8) -> set[tuple[str, str]]:
    """The operations of a kernel's program on the CPU, and the types that they compute in."""
    program = kernel_of(expression).definition.lower(
        Specialization(((given, 2, None),), ((F32, 2, None),))
    )
    found = walk(in_short_integers(program).body)
    return {(x.op, x.type.name) for x in found if isinstance(x, Apply) and x.op != CONVERT}


EXPRESSIONS = {
    "4 * a - b - c": ("sub", "s16"),
    "a * 100 + b - c * 28": ("sub", "s16"),
    "max(a, b) - min(b, c) - (a << 3)": ("sub", "s16"),
    "a * 200 - b * 300 + c": ("sub", "s32"),  # which leaves 16 bits
    "a * b - c": ("sub", "s32"),
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("x", [BYTES, SIGNED], ids=["u8", "s8"])
def test_sums_of_bytes_are_the_same_in_16_bits(device, expression, x):
    b, c = (np.roll(x, 1, axis=axis).astype(int) for axis in (1, 0))
    b[:, 0], c[0] = x[:, 0], x[0]
    want = eval(
        expression.replace("max", "np.maximum").replace("min", "np.minimum"),
        {"np": np},
        {
            "a": x.astype(int),
            "b": b,
            "c": c,
        },
    )
    np.testing.assert_array_equal(kernel_of(expression)(x), want.astype(np.float32))


@pytest.mark.parametrize(("expression", "last"), EXPRESSIONS.items())
def test_operations_are_in_16_bits_where_nothing_leaves_them(expression, last):
    assert last in operations(expression)


def test_one_operation_stays_as_it_is():
    assert all(type != S16.name for _, type in operations("a + b"))


def test_unsigned_integers_wrap_where_they_wrapped(device):
    text = "def k(x, y):\n    return dala.f32({})"
    x, y = np.array([100], np.uint8), np.array([200], np.uint8)
    wrapped = compute.Kernel.register("k", text.format("dala.u32(x) - dala.u32(y) + dala.u32(1)"))
    assert wrapped(x, y)[0] == np.float32(2**32 - 99)
    larger = "max(dala.u32(x) - dala.u32(y), dala.u32(3)) + dala.u32(1)"
    other = compute.Kernel.register("k", text.format(larger), replace=True)
    assert other(x, y)[0] == np.float32(2**32 - 99)
