"""Random kernels mean the same with and without folding, which tests the simplifier."""

from __future__ import annotations

import numpy as np
import pytest
from reference.random_kernels import random_kernel, run_reference

COUNT, BATCH = 300, 25


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether the arrays agree in every bit, but for those of a NaN."""
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    numbers = ~np.isnan(a)
    signs_agree = np.array_equal(np.signbit(a)[numbers], np.signbit(b)[numbers])
    return signs_agree and np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_folding_changes_no_bit_of_a_random_kernel(first):
    for seed in range(first, first + BATCH):
        case = random_kernel(seed)
        outputs = zip(run_reference(case, fold=False), run_reference(case), strict=True)
        for plain, folded in outputs:
            assert same_bits(plain, folded), f"seed {seed}: {plain} became {folded}\n{case}"


def test_a_seed_gives_the_same_kernel_every_time():
    first, again = random_kernel(12), random_kernel(12)
    assert str(first) == str(again)
    assert all(same_bits(a, b) for a, b in zip(first.inputs, again.inputs, strict=True))


def test_random_kernels_reach_all_of_the_language():
    sources = "\n".join(random_kernel(seed).source for seed in range(3 * COUNT))
    for part in (
        *(
            "for ",
            "while ",
            "if ",
            "elif ",
            "else:",
            "break",
            "continue",
            "return ",
            "sum(",
            "min(",
        ),
        *(" and ", " or ", "not ", "<<", ">>", "//", " % ", "~", "**", "bits(", "Image", "Out"),
        *(
            "out.add(",
            "out.min(",
            "out.max(",
            "const",
            ".shape[",
            "pow(",
            "atan2(",
            "erf(",
            "exp(",
            "log",
            "sigmoid(",
        ),
        *("sinh(", "cosh(", "cbrt(", "hypot(", "fmod(", "ldexp(", "popcount(", "clz("),
        *("any(", "all(", " in enumerate(", " in (", "                return "),
        *("random(", "random_int(", "random_bits("),
        *(
            "vec2(",
            "vec4(",
            "mat2(",
            "mat3(",
            " @ ",
            "transpose(",
            ".T",
            "determinant(",
            "inverse(",
        ),
        *("identity(", "normalize(", "cross(", "reflect(", ": vec", ": mat", "Array[vec", "-> vec"),
        *("local(", "NamedTuple", "Made(", "._replace(", "@function", ".f0.x"),
    ):
        assert part in sources, part


def test_random_kernels_have_up_to_four_outputs():
    counts = {len(random_kernel(seed).dtypes) for seed in range(COUNT)}
    assert counts == {1, 2, 3, 4}
