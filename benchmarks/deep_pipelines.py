"""Pipelines of many stages, against those run one by one, and against Halide."""

from __future__ import annotations

from collections.abc import Callable

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


def stencil_input(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(1).random(shape, np.float32)


def deep(kernel: compute.Kernel, stages: int, out: compute.Buffer, fuse=True) -> compute.Pipeline:
    """The same kernel as many times, one after another."""
    x = stencil_input(out.shape)
    pipeline, here = compute.pipeline(fuse=fuse), compute.from_numpy(x)
    for i in range(stages):
        there = out if i == stages - 1 else compute.scratch(out.shape, "f32")
        pipeline.add(kernel=kernel, inputs=[here], output=there)
        here = there
    return pipeline


def ten_stencils() -> Comparison:
    kernel = compute.Kernel.register("cross", _CROSS, replace=True)
    outs = [compute.buffer_zeros(SHAPE, "f32") for _ in range(2)]
    fused, alone = (deep(kernel, 10, out, fuse) for out, fuse in zip(outs, (1, 0), strict=True))

    def check() -> None:
        np.testing.assert_array_equal(np.asarray(outs[0]), np.asarray(outs[1]))

    return Comparison("ten stencils, fused : stage by stage", 0.6, fused.run, alone.run, check)


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
    "pipeline-stencils": ten_stencils,
    "pipeline-stencils-halide": stencils_against_halide,
    "pipeline-deep": many_points,
}
