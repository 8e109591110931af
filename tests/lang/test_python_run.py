"""Kernels run as plain Python: the values of the CPU, and lines at which a debugger stops."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from reference.random_kernels import random_kernel, run_reference

import dala
from dala.errors import ArgumentError, KernelError, KernelTypeError, ShapeError
from dala.gpu import compute
from dala.ir.types import DTYPES
from dala.runtime.kernels.kernel import from_source

WEIGHTS = np.array([0.25, 0.5, 0.25])


def on_cpu(kernel, arrays, shape, dtype, params=None):
    with compute.device("cpu"):
        out = compute.buffer_zeros(shape, dtype)
        compute.run_kernel(kernel, [*map(compute.from_numpy, arrays)], out, params)
        return compute.read(out)


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_a_random_kernel_gives_the_same_bits(first):
    ran = 0
    for seed in range(first, first + 30):
        case = random_kernel(seed)
        # The least of nothing has no type in Python; branches and loops change those of literals.
        typed = not re.search(r"(min|max)\(.* for |^ +v\d+ = [-(]*[\d.e]+\)*$", case.source, re.M)
        if not typed or not 0 < math.prod(case.shape) <= 70:
            continue
        try:
            kernel = from_source("k", case.source, case.border)
        except KernelError:
            continue  # none of the dtypes that a kernel is tried with when it is made
        given = {**case.params, **case.consts}
        try:
            got = kernel.python(*case.inputs, shape=case.shape, dtype=case.dtypes, **given)
        except KernelTypeError as error:
            if "takes a value and a type of the same width" not in str(error):
                raise
            continue  # its type is the one of the branch that ran, not what both agree on
        outputs = got if case.others else (got,)
        for got, want in zip(outputs, run_reference(case), strict=True):
            same = np.array_equal(got, want, equal_nan=want.dtype.kind == "f")
            assert same, f"seed {seed}\n{case}"
        ran += 1
    assert ran > 3


@pytest.mark.parametrize("border", ["clamp", "mirror", "reflect", "wrap", "zero"])
@pytest.mark.parametrize("dtype", ["f64", "s32", "s64", "u32", "u8", "f32", "f16", "u16"])
def test_reads_outside_follow_the_border_rule(border, dtype):
    text = "def k(x):\n    i, j = position(2)\n    return x[i - 3, j] + x[i, j + 4] * x[i + 9, j]"
    kernel = from_source("k", text, border)
    x = np.random.default_rng(1).integers(0, 200, (4, 5)).astype(compute_dtype(dtype))
    assert np.array_equal(kernel.python(x), on_cpu(kernel, [x], x.shape, dtype))


def compute_dtype(name):
    return DTYPES[name].numpy


@dala.function
def softened(x, amount: dala.f32 = 0.5):
    return dala.tanh(x * amount) if x > 0.0 else dala.fmod(x, 0.75)


@dala.kernel(border="mirror")
def smooth(x, gain: dala.f32, taps: dala.const = 3):
    (i,) = dala.position(1)
    total = 0.0
    for k, weight in enumerate(WEIGHTS):
        total += weight * x[i + k - 1]
    peak = max(math.fabs(x[i + k]) for k in range(taps))
    return softened(total, amount=gain) + peak + sum(x[k] for k in range(len(x))) * 0.01


@dala.kernel
def count(x, out: dala.Out):
    (i,) = dala.position(1)
    out.add(x[i], 1)
    out.add(x[i] + out.shape[0], 5)


@dala.kernel
def warm(image: dala.Image, amount: dala.f32 = 0.25):
    y, x = dala.position(2)
    p = image.pixel * 0.5 + image[y, x + 1] * 0.5
    warmer = dala.rgba(p.r + amount, p.g, dala.luma(p), p.a)
    return warmer if image.levels.pixel.r > image.levels[y - 1, x].g else p


def test_functions_constants_and_reductions_mean_what_they_mean_on_the_cpu():
    x = np.random.default_rng(2).normal(0, 2, 40)
    for dtype, near in ((np.float64, 1e-12), (np.float32, 1e-6)):
        given = x.astype(dtype)
        got = smooth.python(given, gain=0.7, taps=4)
        assert got.dtype == dtype
        want = on_cpu(smooth, [given], (40,), dtype, {"gain": 0.7, "taps": 4})
        assert np.allclose(got, want, rtol=near)


def test_a_kernel_that_writes_where_it_likes_does_so():
    x = np.array([3, 1, 3, 9, -1, 0], np.int32)
    got = count.python(x, shape=(4,), dtype="u32")
    assert got.tolist() == on_cpu(count, [x], (4,), "u32").tolist() == [1, 1, 0, 7]


@pytest.mark.parametrize("channels", [(), (3,), (4,)])
@pytest.mark.parametrize("dtype", ["u1", "f4"])
def test_pixels_are_read_and_stored_as_on_the_cpu(channels, dtype):
    image = np.random.default_rng(3).random((5, 6, *channels))
    image = (image * 255).astype(dtype) if dtype == "u1" else image.astype(dtype)
    got = warm.python(image)
    want = on_cpu(warm, [image], image.shape, image.dtype, {})
    # Pixels are f32: a level that lies between two may become either.
    assert np.abs(got.astype(float) - want).max() <= (1 if dtype == "u1" else 1e-6)


def test_random_numbers_are_those_of_the_devices():
    kernel = from_source("k", "def k(x):\n    (i,) = position(1)\n    return random(7, i)")
    x = np.zeros(20, np.float32)
    assert np.array_equal(kernel.python(x), on_cpu(kernel, [x], (20,), "f32"))


def test_a_debugger_sees_the_kernels_own_lines_and_numpy_scalars():
    seen = []

    def trace(frame, event, _):
        if frame.f_code.co_name in ("smooth", "softened"):
            seen.append((frame.f_code.co_filename, frame.f_lineno, dict(frame.f_locals)))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        smooth.python(np.ones(3, np.float32), gain=1.0)
    finally:
        sys.settrace(before)
    source = smooth.definition.source
    files, lines = {file for file, _, _ in seen}, {line for _, line, _ in seen}
    assert files == {source.file} == {__file__}
    text = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert any("total += weight * x[i + k - 1]" in text[line - 1] for line in lines)
    assert any("return dala.tanh" in text[line - 1] for line in lines)
    totals = [names["total"] for _, _, names in seen if "total" in names]
    assert isinstance(totals[-1], np.float32)


def test_a_call_that_cannot_be_is_refused_by_name():
    x = np.zeros(3, np.float32)
    with pytest.raises(ArgumentError, match=r"smooth takes 1 input \(x\), but 2 were given"):
        smooth.python(x, x, gain=1.0)
    with pytest.raises(ArgumentError, match="'gain' is missing"):
        smooth.python(x)
    with pytest.raises(ShapeError, match=r"fill reads no input .*give shape="):
        compute.Kernel.lookup("fill").python(value=3)
    assert compute.Kernel.lookup("fill").python(shape=(2,), dtype="s32", value=3).tolist() == [3, 3]
    with pytest.raises(ArgumentError, match="softmax is not one function"):
        compute.Kernel.lookup("softmax").python(x)
    with pytest.raises(ShapeError, match="not an image"):
        warm.python(x)


def test_vectors_local_arrays_samples_and_broadcasts_run_as_python_too():
    @dala.kernel
    def shaded(image: dala.Image, row, tint: dala.vec3 = (0.5, 0.25, 1.0)):
        i, j = dala.position(2)
        near = dala.local(3, dala.f32)
        for k in range(3):
            near[k] = image.sample(dala.f32(i) + 0.25 * dala.f32(k), dala.f32(j) + 0.5).g
        near[i + 1] += 1.0
        p = image.sample_uv(0.5, 0.25, method="bicubic", border="wrap")
        color = dala.normalize(dala.vec3(p.r, near[2], near[j]) + tint.zyx)
        return dala.dot(color, tint) * dala.length(color.xy) + row

    image = np.random.default_rng(6).random((4, 5, 3), np.float32)
    row = np.arange(5, dtype=np.float32)
    got = shaded.python(image, row, shape=(4, 5), dtype="f32")
    with compute.device("cpu"):
        np.testing.assert_allclose(got, shaded(image, row, shape=(4, 5), dtype="f32"), rtol=1e-5)
