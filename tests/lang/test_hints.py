"""What a complaint advises: a name that exists, and that does what was meant."""

from __future__ import annotations

import ast
import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import dala
from dala import errors
from dala.gpu import compute
from dala.lang.hints import _SYNONYMS

INSTEAD = "Kernels call @dala.functions and the math functions of dala, e.g. dala.exp(x)."


def advice(make) -> str:
    """The last line of the complaint about a kernel."""
    with pytest.raises(errors.KernelError) as caught:
        make()
    return str(caught.value).splitlines()[-1].strip()


def of_sin(x):
    return np.sin(x)


def of_maximum(x):
    return np.maximum(x, 0.0)


def of_where(x):
    return np.where(x > 0.0, x, 0.0)


def of_random(x):
    return np.random.rand() * x


def of_lgamma(x):
    return math.lgamma(x)


def of_library(x):
    return ast.dump(x)


def own(x):
    return x


def of_own(x):
    return own(x)


def of_missing(x):
    return dala.quaternion(x)


def of_misspelt(x):
    return dala.smothstep(0.0, 1.0, x)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (of_sin, "Write dala.sin(…)."),
        (of_maximum, "Write dala.max(a, b)."),
        (of_where, "Write a if condition else b."),
        (of_random, "Write dala.random(seed, i): it depends on the seed and the counters alone."),
        (of_lgamma, INSTEAD),
        (of_library, INSTEAD),
        (of_own, "Write @dala.function above `def own`."),
        (of_misspelt, "Did you mean `dala.smoothstep`?"),
    ],
)
def test_a_call_that_is_refused_is_pointed_to_what_kernels_have(function, said):
    assert advice(lambda: dala.kernel(function)) == said


def test_a_name_that_dala_does_not_have_lists_those_it_has():
    assert "smoothstep" in advice(lambda: dala.kernel(of_missing))


@pytest.mark.parametrize("written", _SYNONYMS.values(), ids=_SYNONYMS)
def test_every_name_of_dala_that_is_advised_exists(written):
    for name in re.findall(r"dala\.(\w+)", written):
        assert hasattr(dala, name)


@pytest.mark.parametrize(
    ("dtype", "value", "wider"), [("s32", 3_000_000_000, "s64"), ("u8", 300, "s32")]
)
def test_a_literal_that_does_not_fit_is_pointed_to_a_type_that_holds_it(dtype, value, wider):
    kernel = compute.Kernel.register("k", f"def k(x):\n    return x + {value}", replace=True)
    x = compute.buffer([1], (1,), dtype)
    assert f"dala.{wider}(…)" in advice(lambda: compute.run_kernel(kernel, [x], x))
    compute.Kernel.unregister("k")


def test_a_literal_that_no_integer_holds_is_to_be_a_float():
    kernel = compute.Kernel.register("k", f"def k(x):\n    return x + {2**70}", replace=True)
    x = compute.buffer([1], (1,), "s32")
    assert "write it as a float, 1.1805916207174113e+21" in advice(
        lambda: compute.run_kernel(kernel, [x], x)
    )
    compute.Kernel.unregister("k")


@pytest.mark.parametrize(
    "array",
    [
        np.array([1 + 2j, 3 - 4j], np.complex64),
        np.array([[1 + 2j], [3 - 4j]], np.complex128),
        np.array([1, 2], "M8[s]"),
        np.array([1.5, 2.5], np.longdouble),
    ],
    ids=lambda array: str(array.dtype),
)
def test_an_array_that_no_buffer_holds_is_told_how_it_can_be_given(array):
    with pytest.raises(errors.DtypeError) as caught:
        compute.from_numpy(array)
    (written,) = re.findall(
        r"array\.(?:view|astype)\([^)]*\)(?:\.reshape\(.*?2\))?", str(caught.value)
    )
    given = compute.from_numpy(eval(written, {"array": array}))
    assert compute.read(given).nbytes >= min(array.nbytes, array.size * 8)


@pytest.mark.parametrize(("dtype", "said"), [(object, "no numbers"), ("U3", "no numbers")])
def test_an_array_of_no_numbers_is_not_told_to_convert_it(dtype, said):
    with pytest.raises(errors.DtypeError, match=said):
        compute.from_numpy(np.zeros(3, dtype))


WRONG = """
import dala
from dala.gpu import compute

@dala.kernel
def masked(x):
    return x & 1

def main():
    x = compute.buffer_zeros((3,), "f32")
    {call}

main()
"""


@pytest.mark.parametrize(
    "call",
    [
        "compute.run_kernel(masked, [x], x)",
        "compute.pipeline().add(kernel=masked, inputs=[x], output=x)",
        "compute.wait(compute.submit(kernel=masked, inputs=[x], output=x))",
        'compute.Kernel.register("k", "def k(x): return flor(x)")',
    ],
)
def test_a_traceback_shows_the_users_lines_and_debugging_all(tmp_path, call):
    script = tmp_path / "script.py"
    script.write_text(WRONG.format(call=call))

    def frames(**extra):
        ended = subprocess.run(
            [sys.executable, script],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **extra},
        )
        trace = ended.stderr.partition("dala.errors.")[0]
        return re.findall(r'File "(.*?)"', trace)

    shown = frames(DALA_DEBUG="")
    assert shown[:2] == [str(script)] * 2
    assert len(shown) == 3
    assert len(frames(DALA_DEBUG="1")) > 6
