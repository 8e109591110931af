"""Line buffers of fusion groups: rings of rows, tiles of columns, and when they pay."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dala.devices.cpu import fusion_group, line_buffers
from dala.gpu import compute

_widths = itertools.count(700)
"""Every pipeline gets another width, so that none has a plan that was made before."""

CROSS = """
def cross(x):
    i, j = dala.position(2)
    return (x[i - 1, j] + x[i + 1, j] + x[i, j - 2] + x[i, j + 1] + x[i, j]) * 0.2
"""
AHEAD = """
def ahead(x):
    i, j = dala.position(2)
    return x[i + 3, j - 1] * 0.5 + x[i + 1, j + 2] * 0.5
"""
BEHIND = """
def behind(x):
    i, j = dala.position(2)
    return x[i - 3, j + 1] * 0.25 + x[i - 1, j] * 0.75
"""
MIXED = """
def mixed(x, y):
    i, j = dala.position(2)
    return x[i - 2, j + 1] - y[i + 1, j - 3]
"""
BORDERS = ["clamp", "mirror", "reflect", "zero"]


@pytest.fixture(autouse=True)
def on_the_cpu():
    with compute.device("cpu"):
        yield


@pytest.fixture
def small_tiles(monkeypatch):
    """Has rows cut into many tiles, and groups as large as can be."""
    planned = []
    plan = line_buffers.plan_line_buffers

    def noted(*given):
        planned.append(plan(*given))
        return planned[-1]

    monkeypatch.setattr(line_buffers, "MOST_BYTES", 12 << 10)
    monkeypatch.setattr(line_buffers, "LEAST_BYTES", 12 << 10)
    monkeypatch.setattr(line_buffers, "LEAST_TILE", 64)
    monkeypatch.setattr(fusion_group, "pays", lambda *_: True)
    monkeypatch.setattr(fusion_group, "plan_line_buffers", noted)
    return planned


def image(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    levels = np.random.default_rng(7).integers(0, 256, shape, dtype=np.uint8)
    return levels if dtype == "u8" else levels.astype(np.float32) / np.float32(255)


def results(add, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a pipeline gives fused, and stage by stage."""
    found = []
    for fuse in (True, False):
        out = compute.buffer_zeros(source.shape, source.dtype)
        pipeline = compute.pipeline(fuse=fuse)
        add(pipeline, compute.from_numpy(source), out)
        pipeline.run()
        found.append(compute.read(out))
    return found[0], found[1]


def stencils(names: str, border: str):
    """Stages that read up and down, near and far; the last reads the first one's as well."""
    sources = {"cross": CROSS, "ahead": AHEAD, "behind": BEHIND, "mixed": MIXED}
    kernels = {
        name: compute.Kernel.register(name, source, border=border, replace=True)
        for name, source in sources.items()
    }

    def add(pipeline, source, out):
        made = [source]
        for name in names.split():
            made.append(compute.scratch(source.shape, source.dtype))
            pipeline.add(kernel=kernels[name], inputs=[made[-2]], output=made[-1])
        pipeline.add(kernel=kernels["mixed"], inputs=[made[-1], made[1]], output=out)

    return add


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("rows", [41, 97, 300])
def test_rings_give_every_bit_of_stages_run_alone(border, rows):
    source = image((rows, next(_widths)), "f32")
    fused, alone = results(stencils("cross ahead behind cross cross", border), source)
    np.testing.assert_array_equal(fused, alone)


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("channels", [(), (3,), (4,)], ids=str)
@pytest.mark.parametrize("dtype", ["f32", "u8"])
def test_tiles_give_every_bit_of_whole_rows(small_tiles, border, channels, dtype):
    source = image((60, next(_widths), *channels), dtype)
    if channels:

        def add(pipeline, first, out):
            between = [compute.scratch(source.shape, dtype) for _ in range(3)]
            chain = [first, *between, out]
            kernels = ["blur", "sharpen", "box_blur", "sharpen"]
            for kernel, a, b in zip(kernels, chain, chain[1:], strict=False):
                pipeline.add(kernel=kernel, inputs=[a], output=b, params={"border": border})

    else:
        add = stencils("cross ahead behind", border)
    fused, alone = results(add, source)
    np.testing.assert_array_equal(fused, alone)
    assert any(plan is not None and plan.width < source.shape[1] for plan in small_tiles)


def test_a_kept_buffer_is_whole_after_tiles(small_tiles):
    source = image((60, next(_widths)), "f32")
    kernel = compute.Kernel.register("cross", CROSS, replace=True)
    found = []
    for fuse in (True, False):
        kept, out = (compute.buffer_zeros(source.shape, "f32") for _ in range(2))
        between = compute.scratch(source.shape, "f32")
        pipeline, at = compute.pipeline(fuse=fuse), compute.from_numpy(source)
        for to in (kept, between, out):
            pipeline.add(kernel=kernel, inputs=[at], output=to)
            at = to
        pipeline.run()
        found.append((compute.read(kept), compute.read(out)))
    np.testing.assert_array_equal(found[0], found[1])
    assert any(plan is not None and plan.width < source.shape[1] for plan in small_tiles)


def test_rows_that_wrap_around_are_not_cut(small_tiles):
    source = image((60, next(_widths)), "f32")
    wrapped = """
    def wrapped(x):
        i, j = dala.position(2)
        return x[i, j - 5] * 0.5 + x[i, j + 9] * 0.5
    """
    kernel = compute.Kernel.register("wrapped", wrapped, border="wrap", replace=True)

    def add(pipeline, first, out):
        between = compute.scratch(source.shape, "f32")
        pipeline.add(kernel=kernel, inputs=[first], output=between)
        pipeline.add(kernel=kernel, inputs=[between], output=out)

    fused, alone = results(add, source)
    np.testing.assert_array_equal(fused, alone)
    assert not any(plan is not None and plan.width < source.shape[1] for plan in small_tiles)


def deep(kernel: compute.Kernel, stages: int, shape: tuple[int, ...]) -> str:
    """What a pipeline of one kernel, time and again, says of its groups."""
    pipeline, at = compute.pipeline(), compute.buffer_zeros(shape, "f32")
    for number in range(stages):
        make = compute.buffer_zeros if number == stages - 1 else compute.scratch
        to = make(shape, "f32")
        pipeline.add(kernel=kernel, inputs=[at], output=to)
        at = to
    return pipeline.explain()


def test_stencils_of_a_frame_are_one_group():
    kernel = compute.Kernel.register("cross", CROSS, replace=True)
    assert deep(kernel, 10, (1080, 1920)).count("→") == 9


def test_what_computes_much_is_not_fused_to_compute_more():
    taps = " + ".join(
        f"dala.exp(x[i + {a}, j + {b}] * x[i + {b}, j + {a}])"
        for a in range(-3, 4)
        for b in range(-3, 4)
    )
    source = f"def heavy(x):\n    i, j = dala.position(2)\n    return {taps}"
    kernel = compute.Kernel.register("heavy", source, replace=True)
    assert "→" not in deep(kernel, 3, (128, 4096))
