"""Channels that are computed each of its own are computed as they lie in memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import dala
from dala.devices.cpu.device import CPU
from dala.gpu import compute
from dala.ir.channels import over_channels, treats_channels_alike
from dala.ir.fixed_point import in_fixed_point
from dala.ir.nodes import Program

SHAPES = [(7, 301, 3), (5, 203, 4), (1, 1, 3), (2, 3, 4)]
IMAGES = [np.random.default_rng(5).integers(0, 256, shape, np.uint8) for shape in SHAPES]


def alike(image: dala.Image):
    p = image.pixel
    return dala.rgba(1 - p.r, 1 - p.g, 1 - p.b, 1 - p.a)


def but_alpha(image: dala.Image, power: float = 0.6):
    p = image.pixel
    return dala.rgba(p.r**power, p.g**power, p.b**power, p.a)


def in_three_ways(image: dala.Image):
    p = image.pixel
    return dala.rgba(p.r * 0.5, 1 - p.g, p.b * 0.5, dala.sqrt(p.a))


def in_four_ways(image: dala.Image):
    p = image.pixel
    return dala.rgba(p.r * 0.5, 1 - p.g, p.b * p.b, dala.sqrt(p.a))


def mixed(image: dala.Image):
    p = image.pixel
    return dala.rgba(p.g, p.r, p.b, p.a)


def own(image: np.ndarray, *functions: object) -> np.ndarray:
    """What functions of the channels, one for each, make of an image."""
    levels = image / 255
    made = [function(levels[..., i]) for i, function in enumerate(functions)]  # type: ignore[operator]
    return np.clip(255 * np.stack(made, axis=-1), 0, 255)


def program_of(way: Callable[..., object], image: np.ndarray) -> Program:
    key = (("u8", image.shape),) * 2
    return in_fixed_point(dala.kernel(way).prepared(CPU, key, None)[0].task.lowered)


def half(v: np.ndarray) -> np.ndarray:
    return v * 0.5


def opposite(v: np.ndarray) -> np.ndarray:
    return 1 - v


def curved(v: np.ndarray) -> np.ndarray:
    return v**0.6


def same(v: np.ndarray) -> np.ndarray:
    return v


WAYS = [
    (alike, (opposite,) * 4),
    (but_alpha, (curved, curved, curved, same)),
    (in_three_ways, (half, opposite, half, np.sqrt)),
    (in_four_ways, (half, opposite, np.square, np.sqrt)),
]


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("image", IMAGES, ids=lambda image: str(image.shape))
@pytest.mark.parametrize(("way", "functions"), WAYS)
def test_each_channel_is_that_of_its_formula(monkeypatch, bits, image, way, functions):
    monkeypatch.setitem(vars(CPU.compiler), "vector_bits", bits)
    with compute.device("cpu"):
        got = dala.kernel(way)(image, dtype="u8")
    assert np.abs(got - own(image, *functions[: image.shape[2]])).max() <= 0.501


def test_rows_may_begin_in_the_middle_of_a_vector():
    """Each chunk of a large picture, and each vector after the first of a row, has its channels."""
    image = np.random.default_rng(6).integers(0, 256, (411, 1003, 4), np.uint8)
    with compute.device("cpu"):
        got = dala.kernel(but_alpha)(image, dtype="u8")
    assert np.array_equal(got[..., 3], image[..., 3])
    assert np.abs(got - own(image, curved, curved, curved, same)).max() <= 0.501


def test_vectors_of_channels_hold_a_few_ways_and_what_is_mixed_is_not_taken_apart():
    rgba, rgb = IMAGES[1], IMAGES[0]
    assert over_channels(program_of(alike, rgba)) is not None
    assert over_channels(program_of(but_alpha, rgba)) is not None
    assert over_channels(program_of(in_three_ways, rgba)) is not None
    assert over_channels(program_of(in_four_ways, rgba)) is None
    assert over_channels(program_of(mixed, rgb)) is None


def test_alike_are_only_channels_that_are_computed_in_one_way():
    assert treats_channels_alike(program_of(alike, IMAGES[1]))
    assert treats_channels_alike(program_of(but_alpha, IMAGES[0]))
    assert not treats_channels_alike(program_of(but_alpha, IMAGES[1]))
    assert not treats_channels_alike(program_of(mixed, IMAGES[1]))
