"""What depends on one level alone is looked up, with the bytes that computing it gives."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.devices.cpu.device import CPU
from dala.emit.llvm.lookups import COSTS
from dala.gpu import compute
from dala.ir.fixed_point import in_fixed_point
from dala.ir.level_tables import with_tables
from dala.runtime.kernels.kernel import Kernel

LEVELS = np.arange(256, dtype=np.uint8)
IMAGES = [
    np.random.default_rng(2).integers(0, 256, shape, np.uint8)
    for shape in ((17, 203), (31, 90, 3), (23, 77, 4), (1, 1, 3))
]


@dala.kernel
def curved(image: dala.Image, power: float):
    p = image.pixel
    return dala.rgba(p.r**power, p.g**power, p.b**power, p.a)


@dala.kernel
def split(image: dala.Image, power: float):
    p = image.pixel
    return dala.rgba(p.r**power, dala.sqrt(p.g), dala.exp(-p.b), p.a**2.5)


@dala.function
def on_curve(v, curve):
    return curve[dala.s32(v * 15.0)] + 0.1 * dala.sin(v)


@dala.kernel
def of_a_table(image: dala.Image, curve):
    p = image.pixel
    return dala.rgba(on_curve(p.r, curve), on_curve(p.g, curve), on_curve(p.b, curve), p.a)


@dala.kernel
def of_integers(x) -> dala.u8:
    return dala.u8(x * x // 7 + (x ^ 0x5A) % 11)


def tables_of(kernel: Kernel, image: np.ndarray) -> int:
    """How many tables a kernel of an image takes, by what a CPU with byte permutes pays."""
    key = (("u8", image.shape),) * 2
    program = kernel.prepared(CPU, key, None)[0].task.lowered
    return len(with_tables(in_fixed_point(program), COSTS["vbmi"]).tables)


@pytest.fixture(params=["vbmi", "avx2", ""])
def permutes(request, monkeypatch):
    """Every way to look bytes up that this CPU has."""
    has = CPU.compiler.features
    needed = {"vbmi": "avx512vbmi", "avx2": "avx2"}.get(request.param)
    if needed and not has.get(needed):
        pytest.skip(f"this CPU has no {needed}")
    monkeypatch.setitem(vars(CPU.compiler), "permutes", request.param)
    return request.param


def computed(kernel: Kernel, image: np.ndarray, *others: np.ndarray, **params: float) -> np.ndarray:
    """The bytes of a kernel without tables."""
    wide = [image.astype(np.float32) / 255, *others]
    return kernel(*wide, dtype="f32", **params)


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: str(image.shape))
@pytest.mark.parametrize("kernel", [curved, split])
def test_a_function_of_a_level_is_that_of_its_formula(permutes, kernel, image):
    with compute.device("cpu"):
        got = kernel(image, power=0.7, dtype="u8")
        want = np.clip(computed(kernel, image, power=0.7) * 255, 0, 255)
    assert np.abs(got - want).max() <= 0.5 + 1e-3


def test_another_parameter_gives_another_table(permutes):
    with compute.device("cpu"):
        for power in (0.3, 1.0, 4.0):
            want = 255 * (LEVELS / 255) ** power
            assert np.abs(curved(LEVELS[np.newaxis], power=power, dtype="u8") - want).max() <= 0.501


def test_a_table_may_be_computed_of_another(permutes):
    curve = np.random.default_rng(3).random(16).astype(np.float32) * 0.8
    for image in IMAGES[1:]:
        with compute.device("cpu"):
            got = of_a_table(image, curve, dtype="u8")
        v = image.astype(np.float32) / 255
        want = 255 * (curve[np.rint(v * 15).astype(int)] + 0.1 * np.sin(v))
        assert np.abs(got - want)[..., :3].max() <= 0.501


def test_integers_are_looked_up_too(permutes):
    with compute.device("cpu"):
        got = of_integers(LEVELS)
    x = LEVELS
    with np.errstate(over="ignore"):
        want = (x * x // 7 + (x ^ 0x5A) % 11).astype(np.uint8)
    assert np.array_equal(got, want)


@pytest.mark.parametrize("channels", [(), (3,), (4,)])
def test_a_chain_of_them_is_one_and_gives_the_bytes_of_its_steps(permutes, channels):
    image = np.random.default_rng(4).integers(0, 256, (40, 70, *channels), np.uint8)
    with compute.device("cpu"):
        given = compute.from_numpy(image)
        steps = [compute.scratch(image.shape, "u8") for _ in range(2)]
        out = compute.buffer_zeros(image.shape, "u8")
        pipeline = compute.pipeline().add("gamma", [given], steps[0], {"value": 2.2})
        pipeline.add(curved, [steps[0]], steps[1], {"power": 0.4})
        pipeline.add("contrast", [steps[1]], out, {"value": 0.5}).run()
        want = compute.Kernel.lookup("gamma")(image, value=2.2)
        want = curved(want, power=0.4, dtype="u8")
        want = compute.Kernel.lookup("contrast")(want, value=0.5)
    assert np.array_equal(compute.read(out), want)


def test_channels_that_are_treated_alike_share_a_table():
    assert tables_of(curved_by_default, IMAGES[1]) == 1
    assert tables_of(split_by_default, IMAGES[2]) == 4
    assert tables_of(mixed, IMAGES[1]) == 0
    assert tables_of(inverted, IMAGES[2]) == 0  # computing it costs less


@dala.kernel
def curved_by_default(image: dala.Image, power: float = 0.7):
    p = image.pixel
    return dala.rgba(p.r**power, p.g**power, p.b**power, p.a)


@dala.kernel
def split_by_default(image: dala.Image, power: float = 0.7):
    p = image.pixel
    return dala.rgba(p.r**power, dala.sqrt(p.g), dala.exp(-p.b), p.a**2.5)


@dala.kernel
def mixed(image: dala.Image):
    p = image.pixel
    return dala.rgba(p.r * p.g, p.g * p.b, p.b * p.r, p.a)


@dala.kernel
def inverted(image: dala.Image):
    p = image.pixel
    return dala.rgba(1.0 - p.r, 1.0 - p.g, 1.0 - p.b, p.a)
