"""Every dtype on every device: bits that come back as they went in, masks, 16-bit floats."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import dala
from dala import errors
from dala.devices import current_device
from dala.gpu import compute
from dala.ir.types import DTYPES, promote

SHAPES = [(1,), (3, 37), (64, 64), (5, 7, 3), (4, 9, 4), (1000,)]


def any_bits(dtype: str, shape: tuple[int, ...], seed: int = 1) -> np.ndarray:
    """Every pattern of bits that the dtype can hold, NaNs of all kinds among them."""
    random, numpy = np.random.default_rng(seed), DTYPES[dtype].numpy
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    return random.integers(0, 256, (*shape, numpy.itemsize), np.uint8).view(numpy)[..., 0]


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.fixture(params=DTYPES)
def dtype(request, device) -> str:
    scalar = DTYPES[request.param]
    if scalar.bits == 64 and not compute.device_info()["has_f64" if scalar.is_float else "has_s64"]:
        pytest.skip(f"this device has no {request.param}")
    return scalar.name


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_buffer_gives_back_the_bits_it_was_given(dtype, shape):
    values = any_bits(dtype, shape)
    buffer = compute.from_numpy(values)
    assert buffer.dtype == dtype
    assert same_bits(compute.read(buffer), values)
    assert same_bits(compute.read(buffer.to("cpu")), values)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_cast_to_the_same_dtype_moves_the_bits(dtype, shape):
    values = any_bits(dtype, shape)
    copied = compute.buffer_zeros(shape, dtype)
    compute.run_kernel("cast", [compute.from_numpy(values)], copied)
    assert same_bits(compute.read(copied), values)


@dala.kernel(border="zero")
def shift(x):
    (i,) = dala.position(1)
    return x[i - 1]


@dala.kernel
def either(mask, x, y):
    return x if mask else y


def test_reads_elsewhere_and_choices_move_the_bits(dtype):
    values, others = any_bits(dtype, (101,)), any_bits(dtype, (101,), seed=2)
    moved = shift(values)
    assert same_bits(moved[1:], values[:-1])
    assert moved[:1].view(np.uint8).max() == 0
    mask = np.arange(101) % 3 == 0
    chosen = either(mask, values, others)
    assert same_bits(chosen, np.where(mask, values, others))


@dala.kernel
def back_to_front(x, out: dala.Out):
    (i,) = dala.position(1)
    out[len(x) - 1 - i] = x


def test_scattered_writes_keep_their_neighbours(dtype):
    values = any_bits(dtype, (103,))
    assert same_bits(back_to_front(values, shape=103), np.ascontiguousarray(values[::-1]))


@dala.kernel
def count(x, out: dala.Out):
    out.add(dala.s32(x), 1)


def test_counts_add_up_in_every_dtype_of_numbers(dtype):
    places = np.random.default_rng(3).integers(0, 10, 100, np.uint8)
    if dtype == "bool":
        with pytest.raises(errors.KernelTypeError, match="nothing can be added to a bool"):
            count(places, shape=10, dtype=dtype)
        return
    assert count(places, shape=10, dtype=dtype).tolist() == np.bincount(places).tolist()


def test_a_dtype_is_filled_and_zeroed(dtype):
    buffer = compute.buffer_zeros((3, 5), dtype)
    assert not compute.read(buffer).astype(bool).any()
    compute.run_kernel("fill", [], buffer, {"value": 1})
    assert compute.read(buffer).tolist() == [[1] * 5] * 3


@pytest.mark.parametrize("to", DTYPES)
def test_a_cast_rounds_saturates_and_wraps(dtype, to):
    if DTYPES[to].bits == 64 and not compute.device_info()["has_s64"]:
        pytest.skip(f"this device has no {to}")
    values = any_bits(dtype, (997,))
    out = compute.buffer_zeros((997,), to)
    compute.run_kernel("cast", [compute.from_numpy(values)], out)
    wanted = _cast(values, to)
    got = compute.read(out)
    if DTYPES[to].is_float:
        with np.errstate(invalid="ignore"):
            got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    assert np.array_equal(got, wanted, equal_nan=DTYPES[to].is_float)


def _cast(values: np.ndarray, to: str) -> np.ndarray:
    scalar = DTYPES[to]
    if values.dtype == ml_dtypes.bfloat16:
        values = values.astype(np.float32)
    with np.errstate(all="ignore"):
        if to == "bool":
            return values != 0
        if scalar.is_float or values.dtype.kind in "biu":
            if to == "bf16" and values.dtype == np.float64:
                return _rounded_to_bf16(values)
            return values.astype(scalar.numpy)
        whole = np.rint(values.astype(np.float64))
        exact = [
            0
            if x != x
            else max(scalar.lowest, min(scalar.highest, int(x)))
            if abs(x) < 1e300
            else (scalar.highest if x > 0 else scalar.lowest)
            for x in whole.tolist()
        ]
        return np.array(exact, scalar.numpy)


def _rounded_to_bf16(values: np.ndarray) -> np.ndarray:
    """f64 rounded once: cut where bf16 ends, with what is cut off kept as one odd bit."""
    near = values.astype(np.float32)
    bits = near.view(np.uint32)
    beyond = np.abs(near.astype(np.float64)) > np.abs(values)
    odd = np.where(near.astype(np.float64) != values, (bits - beyond) | 1, bits)
    return odd.astype(np.uint32).view(np.float32).astype(ml_dtypes.bfloat16)


def test_a_pipeline_of_any_dtype_is_kept_in_a_file(dtype, tmp_path):
    if dtype == "bool":
        pytest.skip("nothing is added to bools")
    x, out = (compute.buffer_zeros((3, 5), dtype) for _ in range(2))
    compute.run_kernel("fill", [], x, {"value": 2})
    between = compute.scratch((3, 5), dtype)
    pipeline = compute.pipeline()
    pipeline.add(kernel="elementwise_add", inputs=[x, x], output=between)
    pipeline.add(kernel="elementwise_mul", inputs=[between, x], output=out)
    pipeline.save(tmp_path / "p.json", buffers={"x": x, "out": out})
    again = compute.load_pipeline(tmp_path / "p.json", buffers={"x": x, "out": out})
    again.run()
    assert set(compute.read_list(out)) == {8}


def test_u64_is_refused_where_there_are_no_64_bits(webgpu, monkeypatch):
    x = compute.buffer_zeros((3,), "u64")
    monkeypatch.setattr(current_device(), "capabilities", frozenset({"wgsl"}))
    with pytest.raises(errors.DtypeError, match=r"computes with u64, which webgpu .* use u32"):
        compute.run_kernel("scale", [x], x, {"factor": 3})


# -- masks -----------------------------------------------------------------------------------------


@dala.kernel
def above(x, y):
    return x > y


def test_a_comparison_gives_a_mask(device):
    x, y = np.random.default_rng(1).random((2, 6, 11), np.float32)
    mask = above(x, y)
    assert mask.dtype == bool
    assert np.array_equal(mask, x > y)
    picked = either(mask, x, y)
    assert np.array_equal(picked, np.maximum(x, y))


def test_a_mask_of_other_bytes_counts_as_true(device):
    mask = compute.buffer_from_binary(bytes([0, 1, 2, 255]), (4,), "bool")
    x = compute.buffer([1.0] * 4, (4,), "f32")
    y = compute.buffer([0.0] * 4, (4,), "f32")
    assert compute.read_list(either(mask, x, y)) == [0.0, 1.0, 1.0, 1.0]


def test_a_number_is_no_condition_where_a_kernel_is_called():
    with pytest.raises(errors.KernelTypeError, match="a condition is needed here, not a f32"):
        either(np.ones(3, np.float32), np.ones(3, np.float32), np.ones(3, np.float32))


@pytest.mark.parametrize("data", [[2], [0.5], [-1], [True, 3]])
def test_a_bool_buffer_holds_nothing_but_truth(data):
    with pytest.raises(errors.ArgumentError, match="bool holds False or True, 0 or 1"):
        compute.buffer(data, (len(data),), "bool")


# -- 16-bit floats ---------------------------------------------------------------------------------


@dala.kernel
def saxpy(x, y, a: dala.f32):
    return a * x + y


@dala.kernel
def widened(x):
    return dala.f32(x)


def test_f16_is_computed_in_f32_and_stored_as_f16(device):
    x, y = np.random.default_rng(1).normal(0, 100, (2, 500)).astype(np.float16)
    got = saxpy(x, y, a=3.1)
    want = (np.float32(3.1) * x.astype(np.float32) + y.astype(np.float32)).astype(np.float16)
    assert got.dtype == np.float16
    assert np.allclose(got, want, rtol=1e-3)
    assert widened(x).dtype == np.float32
    assert saxpy(x, y.astype(np.float32), a=1.0).dtype == np.float32


def test_bf16_is_computed_in_f32_and_stored_as_bf16(device):
    x = np.arange(-50, 50).astype(ml_dtypes.bfloat16)
    got = saxpy(x, x, a=0.25)
    assert got.dtype == ml_dtypes.bfloat16
    assert np.array_equal(got, (x.astype(np.float32) * 1.25).astype(ml_dtypes.bfloat16))


def test_bf16_is_seen_by_numpy_and_refused_where_nothing_names_it():
    values = np.arange(4).astype(ml_dtypes.bfloat16)
    buffer = compute.from_dlpack(values)
    assert np.asarray(buffer).dtype == ml_dtypes.bfloat16
    assert bytes(compute.read_binary(buffer)) == values.tobytes()
    for see in (memoryview, np.from_dlpack):
        with pytest.raises(errors.DtypeError, match=r"np\.asarray\(buffer\)"):
            see(buffer)


@dala.kernel
def rounded(x):
    return dala.f32(dala.f16(x))


@dala.kernel
def with_param(x, k: dala.f16):
    return x * k


def test_a_conversion_to_f16_rounds_an_f32(device):
    x = np.random.default_rng(5).normal(0, 1000, 999).astype(np.float32)
    assert np.array_equal(rounded(x), x.astype(np.float16).astype(np.float32))
    assert with_param(np.ones(1, np.float32), k=0.1)[0] == np.float32(np.float16(0.1))


@dala.kernel
def as_bits(x):
    return dala.bits(x, dala.u16)


@dala.kernel
def of_bits(x) -> dala.f16:
    return dala.bits(x, dala.f16)


def test_the_bits_of_f16_are_there_to_see(device):
    every = np.arange(65536, dtype=np.uint16)
    assert np.array_equal(as_bits(every.view(np.float16)), every)
    assert np.array_equal(of_bits(every).view(np.uint16), every)


def test_all_of_f16_is_converted_exactly(device):
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    wide = widened(every)
    assert np.array_equal(wide, every.astype(np.float32), equal_nan=True)
    out = compute.buffer_zeros((65536,), "f16")
    compute.run_kernel("cast", [compute.from_numpy(wide)], out)
    assert np.array_equal(compute.read(out), every, equal_nan=True)


def test_f32_rounds_to_the_nearest_f16_with_ties_to_even(device):
    steps = np.arange(0x8000, dtype=np.uint32)
    every = steps.astype(np.uint16).view(np.float16).astype(np.float32)
    every = every[np.isfinite(every)]
    between = (every[:-1] + every[1:]) / 2
    near = np.concatenate([between, np.nextafter(between, 0), np.nextafter(between, np.inf)])
    with np.errstate(over="ignore"):
        want = near.astype(np.float16)
    out = compute.buffer_zeros(near.shape, "f16")
    compute.run_kernel("cast", [compute.from_numpy(near)], out)
    assert np.array_equal(compute.read(out).view(np.uint16), want.view(np.uint16))


@dala.kernel
def rounded_to_half(x) -> dala.f16:
    return x


def test_a_cpu_without_f16_instructions_computes_the_same_values(monkeypatch):
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    near = np.random.default_rng(1).integers(0, 2**32, 200_000, np.uint32).view(np.float32)
    with compute.device("cpu"), np.errstate(all="ignore"):
        compiler = current_device().compiler
        monkeypatch.setattr(compiler, "has_halves", False)
        monkeypatch.setattr(compiler, "_key", "without")
        if platform.machine() == "x86_64":  # the least of its kind, without F16C
            monkeypatch.setattr(compiler, "cpu", "x86-64")
            monkeypatch.setattr(compiler, "_flat_features", "")
            monkeypatch.setattr(compiler, "vector_bits", 128)
        for kernel, values, want in (
            ("dala.f32(x)", every, every.astype(np.float32)),
            ("dala.f32(dala.f16(x))", near, near.astype(np.float16).astype(np.float32)),
        ):
            text = f"def without(x):\n    return {kernel}\n"
            made = compute.Kernel.register("without", text, replace=True)
            x, y = compute.from_numpy(values), compute.from_numpy(want)
            assert " half" not in made.explain([x], y)
            assert np.array_equal(made(values), want, equal_nan=True)


def test_bf16_without_its_package_says_what_to_install():
    code = """
import sys
from pathlib import Path
sys.modules["ml_dtypes"] = None
import numpy as np
from dala import errors
from dala.gpu import compute
buffer = compute.buffer_zeros(3, "bf16")
assert compute.read_list(compute.from_numpy(np.ones(2, np.float16))) == [1, 1]
try:
    compute.read(buffer)
except errors.DtypeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install ml_dtypes" in done.stdout


# -- types that meet -------------------------------------------------------------------------------


@pytest.mark.parametrize("b", DTYPES)
@pytest.mark.parametrize("a", DTYPES)
def test_types_meet_as_numpy_says_where_every_gpu_has_the_type(a, b):
    met = promote(DTYPES[a], DTYPES[b])
    assert met == promote(DTYPES[b], DTYPES[a])
    if "bf16" in (a, b):
        assert met is not None
        return
    numpy = np.promote_types(DTYPES[a].numpy, DTYPES[b].numpy)
    if DTYPES[a].is_float or DTYPES[b].is_float:
        assert met is not None
        assert met.is_float
        return
    wider = numpy == np.int64 and a != "s64" and b != "s64"
    assert met is None if wider or numpy.kind == "f" else met.numpy == numpy


def test_the_table_of_the_page_says_where_types_meet():
    page = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| **")]
    head = next(line for line in page.splitlines() if line.startswith("| | bool"))
    names = head.strip("| ").split(" | ")
    assert sorted(names) == sorted(DTYPES)
    assert [row[0] for row in rows] == [f"**{name}**" for name in names]
    for name, (_, *met) in zip(names, rows, strict=True):
        found = [promote(DTYPES[name], DTYPES[other]) for other in names]
        assert met == ["–" if item is None else item.name for item in found]
