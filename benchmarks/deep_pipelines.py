"""Pipelines of many stages, against those run one by one, and against Halide."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.halide_stencils import crosses
from benchmarks.harness import Comparison, Row
from dala.gpu import compute

SHAPE = (1080, 1920)
_CROSS = """
def cross(x):
    i, j = dala.position(2)
    return (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1] + x[i, j]) * 0.2
"""


_WINDOW = """
def window(x):
    i, j = dala.position(2)
    total = 0.0
    for a in range(-2, 3):
        for b in range(-2, 3):
            total += x[i + a, j + b] * (3 - abs(a * b) * 0.5)
    return total * 0.0177
"""
_IMAGE = """
def near(image: dala.Image):
    i, j = dala.position(2)
    around = image[i - 1, j] + image[i + 1, j] + image[i, j - 1] + image[i, j + 1]
    return (around + image[i, j]) * 0.2
"""
SOURCES = {"cross": _CROSS, "window": _WINDOW, "near": _IMAGE}
NO_LOSS = 1.05
"""Fusion never costs more than what two measurements of the same may differ by."""


def stencil_input(shape: tuple[int, ...], dtype: str = "f32") -> np.ndarray:
    values = np.random.default_rng(1).random(shape, np.float32)
    return values if dtype == "f32" else (values * 255).astype(np.uint8)


def deep(kernel: compute.Kernel, stages: int, out: compute.Buffer, fuse=True) -> compute.Pipeline:
    """The same kernel as many times, one after another."""
    x = stencil_input(out.shape, out.dtype)
    pipeline, here = compute.pipeline(fuse=fuse), compute.from_numpy(x)
    for i in range(stages):
        there = out if i == stages - 1 else compute.scratch(out.shape, out.dtype)
        pipeline.add(kernel=kernel, inputs=[here], output=there)
        here = there
    return pipeline


def fused_stencils(
    work: str, bar: float, name: str, stages: int, shape: tuple[int, ...], dtype: str = "f32"
) -> Comparison:
    """The same stencil as many times, fused, against its stages one by one."""
    kernel = compute.Kernel.register(name, SOURCES[name], replace=True)
    outs = [compute.buffer_zeros(shape, dtype) for _ in range(2)]
    fused, alone = (deep(kernel, stages, out, fuse) for out, fuse in zip(outs, (1, 0), strict=True))

    def check() -> None:
        np.testing.assert_array_equal(np.asarray(outs[0]), np.asarray(outs[1]))

    return Comparison(f"{work}, fused : stage by stage", bar, fused.run, alone.run, check)


def stencils_against_halide() -> Comparison:
    """Halide's schedule is written by hand: all stages of a tile together, as far as it reaches."""
    kernel = compute.Kernel.register("cross", _CROSS, replace=True)
    out = compute.buffer_zeros(SHAPE, "f32")
    fused = deep(kernel, 10, out)
    x, made = stencil_input(SHAPE), np.empty(SHAPE, np.float32)
    peer = crosses(x, made, stages=10)

    def check() -> None:
        np.testing.assert_allclose(np.asarray(out), made, rtol=1e-5)

    return Comparison("ten stencils, fused : Halide, tiled by hand", 1.1, fused.run, peer, check)


def many_points() -> Comparison:
    """500 point kernels beside 50: ten times the time is linear."""
    source = "def step(x):\n    return x * 0.999 + 0.001"
    kernel = compute.Kernel.register("step", source, replace=True)
    outs = [compute.buffer_zeros(SHAPE, "f32") for _ in range(2)]
    many, few = (deep(kernel, count, out) for count, out in zip((500, 50), outs, strict=True))
    work = "500 point kernels : 50 of them"
    return Comparison(work, 11.0, many.run, few.run, lambda: None)


ROWS: dict[str, Callable[[], Row]] = {
    "pipeline-stencils": partial(fused_stencils, "ten stencils", 0.6, "cross", 10, SHAPE),
    **{
        f"pipeline-stencils-{count}": partial(
            fused_stencils, f"{count} stencils", NO_LOSS, "cross", count, SHAPE
        )
        for count in (2, 3, 5, 20)
    },
    **{
        f"pipeline-stencils-{name}": partial(fused_stencils, work, NO_LOSS, *given)
        for name, work, *given in (
            ("512", "ten stencils of 512 × 512", "cross", 10, (512, 512)),
            ("4k", "ten stencils of 4K", "cross", 10, (2160, 3840)),
            ("5x5", "ten stencils of 5 × 5", "window", 10, SHAPE),
            ("rgb", "ten stencils of RGB", "near", 10, (*SHAPE, 3), "u8"),
            ("rgba", "ten stencils of RGBA", "near", 10, (*SHAPE, 4), "u8"),
            ("rgba-4k", "ten stencils of RGBA in 4K", "near", 10, (2160, 3840, 4), "u8"),
            ("rgba-f32", "ten stencils of RGBA, f32", "near", 10, (*SHAPE, 4)),
        )
    },
    "pipeline-stencils-halide": stencils_against_halide,
    "pipeline-deep": many_points,
}
