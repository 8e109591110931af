"""Networks of minima and maxima: NaN comes through, zeros are ordered, whatever is emitted."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

import dala
from dala.devices import current_device
from dala.emit.extreme_networks import extreme_networks
from dala.gpu import compute
from dala.ir.evaluate import evaluate
from dala.ir.types import F32, F64, SCALARS

ODD = [np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 1.5, -1.5]


@dala.kernel
def median_of_three(x):
    i, j = dala.position(2)
    a, b, c = x[i, j - 1], x[i, j], x[i, j + 1]
    return max(min(a, b), min(max(a, b), c))


@dala.kernel
def window(x):
    i, j = dala.position(2)
    least, most = x[i, j], x[i, j]
    for a in range(-1, 2):
        for b in range(-1, 2):
            least = min(least, x[i + a, j + b])
            most = max(most, x[i + a, j + b])
    return least, most


@dala.kernel
def both_ways(x):
    i, j = dala.position(2)
    least = min(x[i, j], x[i + 1, j], x[i, j + 1], x[i + 1, j + 1])
    return max(least, x[i, j - 1], 0.0) + least


def values(dtype: str, width: int) -> np.ndarray:
    random = np.random.default_rng(3)
    made = random.normal(size=(9, width)).astype(dtype)
    places = random.random(made.shape)
    made[places < 0.1] = random.choice(ODD, (places < 0.1).sum())
    return made


def shifted(x: np.ndarray, down: int, across: int) -> np.ndarray:
    rows, columns = (
        np.clip(np.arange(n) + d, 0, n - 1) for n, d in zip(x.shape, (down, across), strict=True)
    )
    return x[rows][:, columns]


def extreme(op: str, items: list[np.ndarray]) -> np.ndarray:
    scalar = F64 if items[0].dtype == np.float64 else F32
    return reduce(lambda a, b: evaluate(op, scalar, a, b), items)


def is_same(device: str, got: np.ndarray, want: np.ndarray) -> bool:
    """Whether all are equal, on the CPU with the signs of zeros; any NaN is as good as another."""
    signs = np.signbit(got) == np.signbit(want)
    near = np.array_equal(got, want, equal_nan=True)
    return near and (device != "cpu" or bool(signs[~np.isnan(want)].all()))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("width", [5, 64, 300])
def test_windows_give_what_minima_one_by_one_give(device, dtype, width):
    scalar = SCALARS[dtype]
    if dtype == "f64" and not current_device().supports(dtype):
        pytest.skip(f"{device} lacks {dtype}")
    x = values(scalar.numpy, width)
    least, most = window(x)
    around = [shifted(x, a, b) for a in range(-1, 2) for b in range(-1, 2)]
    assert is_same(device, least, extreme("min", around))
    assert is_same(device, most, extreme("max", around))


@pytest.mark.parametrize("width", [5, 64, 300])
def test_a_median_of_three_is_nan_where_one_of_them_is(device, width):
    x = values("float32", width)
    a, b, c = (shifted(x, 0, d) for d in (-1, 0, 1))
    pairs = [extreme("min", [a, b]), extreme("min", [extreme("max", [a, b]), c])]
    assert is_same(device, median_of_three(x), extreme("max", pairs))


def test_what_others_use_of_a_network_is_nan_as_well(device):
    x = values("float32", 200)
    least = extreme("min", [shifted(x, a, b) for a in (0, 1) for b in (0, 1)])
    most = extreme(
        "max", [least, extreme("max", [shifted(x, 0, -1), np.float32(0) * np.ones_like(x)])]
    )
    with np.errstate(invalid="ignore"):
        assert is_same(device, both_ways(x), most + least)


def test_a_single_minimum_is_no_network():
    @dala.kernel
    def clamped(x):
        return min(max(x, 0.0), 1.0)

    x, out = (compute.buffer_zeros((3, 300), "f32") for _ in range(2))
    assert not networks_of(clamped, x, out)
    assert networks_of(median_of_three, x, out)


def networks_of(kernel, x, out):
    """The networks of what a kernel is on these buffers."""
    compute.run_kernel(kernel, [x], out)
    body = list(kernel._launches.values())[-1].task.program.body
    return extreme_networks(body.statements, body)


@pytest.mark.parametrize("level", [0.25, np.nan])
def test_minima_of_whole_rows_are_inputs_of_a_network(device, level):
    @dala.kernel
    def held(x, level: dala.f32):
        i, j = dala.position(2)
        limit = max(float(i), level)
        return max(min(limit, x[i, j - 1], x[i, j], x[i, j + 1]), x[i, j] - 1)

    x = values("float32", 300)
    rows = np.repeat(np.arange(9, dtype=np.float32)[:, None], 300, 1)
    limit = extreme("max", [rows, np.full_like(x, level)])
    least = extreme("min", [limit, *(shifted(x, 0, d) for d in (-1, 0, 1))])
    with np.errstate(invalid="ignore"):
        assert is_same(device, held(x, level=level), extreme("max", [least, x - 1]))
