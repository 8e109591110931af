"""What depends on one level of 16 bits alone is read from a table, with the bits of its formula."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.devices.cpu import tabled
from dala.devices.cpu.device import CPU
from dala.gpu import compute
from dala.ir import gathered_tables
from dala.runtime.kernels.kernel import Kernel

LEVELS = np.arange(1 << 16, dtype=np.uint16)
SHAPES = [(1024, 520), (700, 750, 3), (513, 1025, 4)]
POWER = 0.7


@dala.kernel
def curved(image: dala.Image, power: float = POWER):
    p = image.pixel
    return dala.rgba(p.r**power, p.g**power, p.b**power, p.a)


@dala.kernel
def split(image: dala.Image, power: float = POWER):
    p = image.pixel
    return dala.rgba(p.r**power, dala.exp(-(p.g**1.5)), dala.cos(p.b**0.5), p.a)


@dala.kernel
def mixed_light(image: dala.Image, power: float = POWER):
    p = image.pixel
    light = 0.2 * p.r**power + 0.7 * p.g**power + 0.1 * p.b**power
    return dala.rgba(light, light, light, p.a)


@dala.kernel
def on_a_curve(x, curve) -> dala.u16:
    v = curve[x % 256]
    return dala.u16(v * 65535.0 * dala.sin(dala.f32(x) / 65535.0) ** 2.0)


@dala.kernel
def inverted(image: dala.Image):
    p = image.pixel
    return dala.rgba(1.0 - p.r, 1.0 - p.g, 1.0 - p.b, p.a)


def image(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(5).integers(0, 1 << 16, shape, np.uint16)


def runner_of(kernel: Kernel, shape: tuple[int, ...]):
    key = (("u16", shape),) * 2
    return kernel.prepared(CPU, key, None)[0]


def tables_of(kernel: Kernel, shape: tuple[int, ...]) -> int:
    made = tabled.tables_of(runner_of(kernel, shape).task)
    return 0 if made is None else len(made.tables)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kernel", [curved, split, mixed_light])
def test_reading_a_table_gives_the_bits_of_computing(kernel, shape):
    given = image(shape)
    with compute.device("cpu"):
        got = kernel(given, dtype="u16")
        stripes = [kernel(given[y : y + 90], dtype="u16") for y in range(0, len(given), 90)]
    assert tables_of(kernel, shape) > 0
    assert tables_of(kernel, (90, *shape[1:])) == 0  # so few positions do not pay for a table
    assert np.array_equal(got, np.concatenate(stripes))


def test_channels_that_are_treated_alike_share_a_table():
    assert tables_of(curved, SHAPES[1]) == 1
    assert tables_of(curved, SHAPES[2]) == 1
    assert tables_of(split, SHAPES[1]) == 3
    assert tables_of(mixed_light, SHAPES[1]) == 3  # each with its weight


def test_what_is_cheap_or_small_is_computed():
    assert tables_of(inverted, SHAPES[1]) == 0
    assert tables_of(curved, (300, 300, 3)) == 0


def test_more_tables_than_a_cache_holds_are_not_made(monkeypatch):
    monkeypatch.setattr(gathered_tables, "MOST_TABLES", 2)
    program = runner_of(split, (700, 751, 3)).task.lowered
    assert gathered_tables.tabled.__wrapped__(program) is None


def test_every_level_of_a_table_is_that_of_the_formula():
    given = np.tile(LEVELS, 8).reshape(8, -1)
    with compute.device("cpu"):
        got = curved(given, dtype="u16")
    want = 65535 * (given / 65535) ** POWER
    assert np.abs(got - want).max() <= 0.51


def test_a_table_may_be_computed_of_another_input_that_changes():
    given = image((1024, 600))
    out, curve = np.empty_like(given), np.empty(256, np.float32)
    with compute.device("cpu"):
        for seed in range(4):  # the same call over and over, on other contents of the same memory
            curve[:] = np.random.default_rng(seed).random(256)
            on_a_curve(given, curve, out=out)
            want = curve[given % 256] * 65535 * np.sin(given / 65535) ** 2
            assert np.abs(out - want).max() <= 1


def test_repeated_calls_on_other_contents_and_parameters():
    given, out = image(SHAPES[1]), np.empty(SHAPES[1], np.uint16)
    with compute.device("cpu"):
        for power in (0.4, 0.4, 0.4, 0.4, 2.0, 0.4):
            given[:] = given[::-1].copy()
            curved(given, power=power, out=out)
            assert np.abs(out - 65535 * (given / 65535) ** power).max() <= 0.51


def test_a_picture_is_changed_in_place():
    given = image(SHAPES[2])
    want = curved(given, dtype="u16")
    with compute.device("cpu"):
        curved(given, out=given)
    assert np.array_equal(given, want)
