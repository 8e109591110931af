"""Matrix products in registers: by subgroups and by workgroup memory, whatever the shapes."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.devices import find_device
from dala.emit.wgsl.products import HARDWARE, ProductTile, ProductTiles
from dala.gpu import compute


def _tiles(name: str, device) -> ProductTiles:
    small = ProductTile(4, 8, 4, 2, 8)
    return {"own": device.products, "shared": HARDWARE, "wide": ProductTiles(small, small)}[name]


@pytest.fixture(params=["own", "shared", "wide"])
def tiled(request, webgpu, monkeypatch):
    """The WebGPU device with its own tiles, those of hardware, and some of 8 columns each."""
    device = find_device(webgpu)
    monkeypatch.setattr(device, "products", _tiles(request.param, device))
    return device


def made(text: str) -> compute.Kernel:
    """A kernel that no other test has run."""
    kernel = compute.Kernel.register("product", text)
    compute.Kernel.unregister("product")
    return kernel


def numbers(shape: tuple[int, ...], seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


PLAIN = """
def k(a, b):
    i, j = position(2)
    return sum(a[i, k] * b[k, j] for k in range(a.shape[1]))
"""
TURNED = """
def k(a, b):
    i, j = position(2)
    return sum(a[k, i] * b[j, k] for k in range(a.shape[0]))
"""
BATCHES = """
def k(a, b):
    n, i, j = position(3)
    return sum(a[n, i, k] * b[n, k, j] for k in range(a.shape[2]))
"""
ENDED = """
def k(a, b, rows, columns, other, scale: f32):
    i, j = position(2)
    total = sum(b[k, j] * a[i, k] for k in range(a.shape[1])) + rows[i] + columns[j]
    return max(total * scale, 0.0) + other if total > -9.0 else other[i, 0]
"""
SHAPES = [(16, 8, 16), (33, 20, 36), (40, 64, 48), (17, 9, 19), (64, 12, 65), (16, 600, 20)]


def run(kernel: compute.Kernel, inputs, shape, **params) -> np.ndarray:
    output = compute.from_numpy(np.full(shape, 77, np.float32))
    compute.run_kernel(kernel, [compute.from_numpy(item) for item in inputs], output, params)
    (runner,) = kernel._launches.values()
    assert runner.grid.kind == "products"
    return compute.read(output)


def close(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_product_of_any_shape(tiled, shape):
    rows, terms, columns = shape
    a, b = numbers((rows, terms)), numbers((terms, columns), 2)
    close(run(made(PLAIN), [a, b], (rows, columns)), a.astype(float) @ b)


@pytest.mark.parametrize("shape", SHAPES[1:4])
def test_factors_that_lie_the_other_way(tiled, shape):
    rows, terms, columns = shape
    a, b = numbers((terms, rows)), numbers((columns, terms), 2)
    close(run(made(TURNED), [a, b], (rows, columns)), a.T.astype(float) @ b.T)


@pytest.mark.parametrize("both", [True, False])
def test_batches_share_a_matrix_or_have_their_own(tiled, both):
    a, b = numbers((3, 16, 24)), numbers((3 if both else 1, 24, 20), 2)
    close(run(made(BATCHES), [a, b], (3, 16, 20)), a.astype(float) @ b)


@pytest.mark.parametrize("columns", [20, 21])
def test_what_follows_the_sum_is_computed_with_it(tiled, columns):
    a, b = numbers((18, 12)), numbers((12, columns), 2)
    rows, across, other = numbers((18,), 3), numbers((columns,), 4), numbers((18, columns), 5)
    found = run(made(ENDED), [a, b, rows, across, other], (18, columns), scale=0.5)
    total = a.astype(float) @ b + rows[:, None] + across
    wanted = np.where(total > -9, np.maximum(total * 0.5, 0) + other, other[:, :1])
    close(found, wanted)


def test_an_operand_that_is_the_output_is_read_before_it_is_written(tiled):
    text = "def k(a, b, c):\n i, j = position(2)\n"
    text += " return sum(a[i, k] * b[k, j] for k in range(a.shape[1])) + c"
    a, b, c = numbers((32, 16)), numbers((16, 32), 2), numbers((32, 32), 3)
    output = compute.from_numpy(c)
    compute.run_kernel(made(text), [compute.from_numpy(a), compute.from_numpy(b), output], output)
    close(compute.read(output), a.astype(float) @ b + c)


def test_infinities_stay_in_their_row_and_column(tiled):
    a, b = numbers((18, 10)), numbers((10, 17), 2)
    a[-1, -1] = np.inf
    b[-1, -1] = -np.inf
    found = run(made(PLAIN), [a, b], (18, 17))
    assert np.array_equal(np.isfinite(found), np.outer(np.arange(18) < 17, np.arange(17) < 16))


def test_several_outputs_of_one_product(tiled):
    kernel = made(
        "def k(a, b):\n i, j = position(2)\n"
        " total = sum(a[i, k] * b[k, j] for k in range(a.shape[1]))\n return total, -total"
    )
    a, b = numbers((20, 16)), numbers((16, 20), 2)
    outputs = [compute.buffer_zeros((20, 20), "f32") for _ in range(2)]
    compute.run_kernel(kernel, [compute.from_numpy(a), compute.from_numpy(b)], outputs)
    for sign, output in zip((1, -1), outputs, strict=True):
        close(compute.read(output), sign * (a.astype(float) @ b))


def test_software_tells_in_subgroups_and_hardware_shares_memory(webgpu, monkeypatch):
    x = compute.buffer_zeros((32, 32), "f32")
    device = find_device(webgpu)
    if "llvmpipe" in device.name:
        assert "subgroupBroadcast" in made(PLAIN).explain([x, x], x)
    monkeypatch.setattr(device, "products", HARDWARE)
    assert "workgroupBarrier" in made(PLAIN).explain([x, x], x)


@pytest.mark.parametrize("rows", [1, 5])
def test_few_rows_take_a_subgroup(webgpu, rows):
    if "llvmpipe" not in find_device(webgpu).name:
        pytest.skip("hardware has other grids for few rows")
    a, b = numbers((rows, 40)), numbers((40, 50), 2)
    close(run(made(PLAIN), [a, b], (rows, 50)), a.astype(float) @ b)


def test_the_largest_float_is_a_literal_that_browsers_take(webgpu):
    kernel = made("def k(x):\n return min(max(x, -3.4028234663852886e38), 3.4028234663852886e38)")
    x = compute.from_numpy(np.array([np.inf, -np.inf, 2], np.float32))
    output = compute.buffer_zeros((3,), "f32")
    shader = kernel.explain([x], output).partition("WGSL,")[2]
    assert "0x1.fffffep+127f" in shader
    assert "e+38" not in shader
    compute.run_kernel(kernel, [x], output)
    most = np.finfo(np.float32).max
    assert np.array_equal(compute.read(output), np.array([most, -most, 2], np.float32))


def test_a_kernel_of_a_user_is_a_product_too(tiled):
    @dala.kernel
    def attend(q, k):
        i, j = dala.position(2)
        return dala.exp(sum(q[i, d] * k[j, d] for d in range(q.shape[1])) * 0.25)

    q, k = numbers((24, 16)), numbers((20, 16), 2)
    found = attend(compute.from_numpy(q), compute.from_numpy(k), shape=(24, 20))
    np.testing.assert_allclose(compute.read(found), np.exp(q @ k.T * 0.25), rtol=1e-4)
