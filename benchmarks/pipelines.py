"""Pipelines against OpenCV, against their own stages, and against the clock."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from benchmarks import deep_pipelines, thumbnails
from benchmarks.harness import Comparison, Duration, Row, repeats_for, seconds_per_call
from dala.gpu import compute

HEIGHT, WIDTH = 1080, 1920
SHAPE = (HEIGHT, WIDTH, 4)
AMOUNT = 0.5
POINTS = {
    "brightness": {"value": 0.05},
    "contrast": {"value": 0.1},
    "saturation": {"value": 0.2},
    "gamma": {"value": 1.1},
    "vignette": {},
}
ALONE = {
    "brightness": {"value": 0.05},
    "contrast": {"value": 0.1},
    "gamma": {"value": 1.1},
    "exposure": {"stops": 0.2},
    "invert": {},
}
"""Filters that act on each channel alone, so that together they are one table of levels."""


def image() -> np.ndarray:
    """A picture with edges and slopes, and some noise."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    planes = [x * 255 // WIDTH, y * 255 // HEIGHT, (x ^ y) & 255, np.full_like(x, 255)]
    noise = np.random.default_rng(1).integers(-8, 9, SHAPE)
    return np.clip(np.stack(planes, -1) + noise, 0, 255).astype(np.uint8)


def chain(source: compute.Buffer, out: compute.Buffer, between, fuse=True) -> compute.Pipeline:
    """Blur, sharpen, gray."""
    soft, sharp = between(source.shape, "u8"), between(source.shape, "u8")
    pipeline = compute.pipeline(fuse=fuse)
    pipeline.add(kernel="blur", inputs=[source], output=soft, params={"radius": 3, "sigma": 1.5})
    pipeline.add(kernel="sharpen", inputs=[soft], output=sharp, params={"amount": AMOUNT})
    return pipeline.add(kernel="grayscale", inputs=[sharp], output=out)


def chain_against_opencv(work: str, bar: float, between, channels: int = 4) -> Comparison:
    import cv2

    cv2.setNumThreads(compute.device_info()["threads"])
    pixels = np.ascontiguousarray(image()[..., :channels])
    source, out = compute.from_numpy(pixels), compute.buffer_zeros((HEIGHT, WIDTH), "u8")
    pipeline = chain(source, out, between)
    soft, sharp, gray = np.empty_like(pixels), np.empty_like(pixels), np.empty_like(out)
    edge = cv2.BORDER_REPLICATE
    cross = -AMOUNT * np.array([[0, 1, 0], [1, -4 - 1 / AMOUNT, 1], [0, 1, 0]], np.float32)
    code = cv2.COLOR_RGBA2GRAY if channels == 4 else cv2.COLOR_RGB2GRAY

    def peer() -> None:
        cv2.GaussianBlur(pixels, (7, 7), 1.5, dst=soft, borderType=edge)
        cv2.filter2D(soft, -1, cross, dst=sharp, borderType=edge)
        cv2.cvtColor(sharp, code, dst=gray)

    def check() -> None:
        # OpenCV blurs u8 in fixed point, a few levels off its own result in floats.
        apart = np.abs(np.asarray(out).astype(int) - gray)
        assert apart.max() <= 8
        assert apart.mean() < 1

    return Comparison(work, bar, pipeline.run, peer, check)


def scratch_between() -> Comparison:
    work = "blur, sharpen, gray, scratch between : OpenCV"
    return chain_against_opencv(work, 0.40, compute.scratch)


def scratch_between_rgb() -> Comparison:
    work = "the same, RGB : OpenCV"
    return chain_against_opencv(work, 0.40, compute.scratch, channels=3)


def all_kept() -> Comparison:
    return chain_against_opencv("the same, all kept : OpenCV", 0.65, compute.buffer_zeros)


def fused_against_unfused() -> Comparison:
    source = compute.from_numpy(image())
    outs = [compute.buffer_zeros((HEIGHT, WIDTH), "u8") for _ in range(2)]
    fused = chain(source, outs[0], compute.scratch)
    alone = chain(source, outs[1], compute.scratch, fuse=False)

    def check() -> None:
        np.testing.assert_array_equal(np.asarray(outs[0]), np.asarray(outs[1]))

    return Comparison("the same, fused : stage by stage", 0.5, fused.run, alone.run, check)


def point_chain(
    source: compute.Buffer, out: compute.Buffer, points: dict[str, dict[str, float]] = POINTS
) -> compute.Pipeline:
    pipeline, here = compute.pipeline(), source
    for i, (name, params) in enumerate(points.items()):
        there = out if i == len(points) - 1 else compute.scratch(SHAPE, "u8")
        pipeline.add(kernel=name, inputs=[here], output=there, params=params)
        here = there
    return pipeline


def points_against_opencv() -> Comparison:
    import cv2

    cv2.setNumThreads(compute.device_info()["threads"])
    pixels = image()
    out = compute.buffer_zeros(SHAPE, "u8")
    pipeline = point_chain(compute.from_numpy(pixels), out)
    levels = np.arange(256) / 255
    bright = np.clip(levels + POINTS["brightness"]["value"], 0, 1)
    strong = np.clip((1 + POINTS["contrast"]["value"]) * (bright - 0.5) + 0.5, 0, 1)
    first = np.rint(strong * 255).astype(np.uint8)
    last = np.rint(levels ** (1 / POINTS["gamma"]["value"]) * 255).astype(np.uint8)
    keep = np.arange(256, dtype=np.uint8)
    tables = [np.stack([table] * 3 + [keep], -1)[None] for table in (first, last)]
    luma = np.array([0.299, 0.587, 0.114])
    amount = 1 + POINTS["saturation"]["value"]
    matrix = np.eye(4)
    matrix[:3, :3] = amount * np.eye(3) + (1 - amount) * luma
    compute.run_kernel("fill", [], ones := compute.buffer_zeros(SHAPE, "f32"), {"value": 1.0})
    compute.run_kernel("vignette", [ones], ones)
    shade = compute.read(ones)
    a, b = np.empty(SHAPE, np.uint8), np.empty(SHAPE, np.uint8)

    def peer() -> None:
        cv2.LUT(pixels, tables[0], dst=a)
        cv2.transform(a, matrix.astype(np.float32), dst=b)
        cv2.LUT(b, tables[1], dst=a)
        cv2.multiply(a, shade, dst=b, dtype=cv2.CV_8U)

    def check() -> None:
        apart = np.abs(np.asarray(out).astype(int) - b)
        assert apart.max() <= 3
        assert apart.mean() < 1

    return Comparison("five point filters, fused : OpenCV", 0.25, pipeline.run, peer, check)


def points_against_a_copy() -> Comparison:
    return against_a_copy("the same : copying the frame", 2.5, POINTS)


def channels_against_a_copy() -> Comparison:
    work = "five point filters of single channels : a copy"
    return against_a_copy(work, 2.0, ALONE)


def against_a_copy(work: str, bar: float, points: dict[str, dict[str, float]]) -> Comparison:
    pixels = image()
    out, copied = compute.buffer_zeros(SHAPE, "u8"), np.empty_like(pixels)
    pipeline = point_chain(compute.from_numpy(pixels), out, points)

    def check() -> None:
        np.testing.assert_array_equal(copied, pixels)

    return Comparison(work, bar, pipeline.run, lambda: np.copyto(copied, pixels), check)


def ten_stages() -> compute.Pipeline:
    """Ten stages on three elements, all results kept."""
    pipeline, here = compute.pipeline(), compute.buffer([1.0, 2.0, 3.0], (3,), "f32")
    for i in range(10):
        there = compute.buffer_zeros((3,), "f32")
        name, params = [("scale", {"factor": 1.5}), ("relu", {}), ("sigmoid", {})][i % 3]
        pipeline.add(kernel=name, inputs=[here], output=there, params=params)
        here = there
    return pipeline


def ten_stages_on_three_elements() -> Duration:
    pipeline = ten_stages()
    pipeline.run()
    repeats = repeats_for(pipeline.run)
    work = "a pipeline of 10 stages on 3 elements, a run"
    return Duration(work, 25e-6, lambda: seconds_per_call(pipeline.run, repeats))


_COMPILE = """
import time
from benchmarks.pipelines import ten_stages
from dala.gpu import compute
x = compute.buffer([1.0], (1,), "f32")
compute.run_kernel("elementwise_add", [x, x], x)
start = time.perf_counter()
ten_stages().run()
print(time.perf_counter() - start)
"""


def compile_ten_stages() -> Duration:
    def sample() -> float:
        with tempfile.TemporaryDirectory() as folder:
            said = subprocess.check_output(
                [sys.executable, "-c", _COMPILE],
                text=True,
                env={**os.environ, "DALA_CACHE_DIR": folder, "DALA_DEVICE": "cpu"},
            )
        return float(said)

    return Duration("10 stages added, compiled and run, nothing cached", 0.4, sample)


def set_and_run() -> Comparison:
    """What a slider costs: another sigma and a run, beside a run."""
    source, out = compute.from_numpy(image()), compute.buffer_zeros((HEIGHT, WIDTH), "u8")
    pipeline = chain(source, out, compute.scratch)
    sigmas = itertools.cycle([1.4, 1.5, 1.6])

    def ours() -> None:
        pipeline.set("blur", sigma=next(sigmas)).run()

    return Comparison("set + run : run", 1.1, ours, pipeline.run, lambda: None)


def the_same_pipeline_again() -> Duration:
    source, out = compute.from_numpy(image()), compute.buffer_zeros((HEIGHT, WIDTH), "u8")
    chain(source, out, compute.scratch).run()

    def sample() -> float:
        start = time.perf_counter()
        chain(source, out, compute.scratch)._prepared()
        return time.perf_counter() - start

    return Duration("an identical pipeline built again", 5e-3, sample)


ROWS: dict[str, Callable[[], Row]] = {
    "pipeline": scratch_between,
    "pipeline-rgb": scratch_between_rgb,
    "pipeline-kept": all_kept,
    "pipeline-fused": fused_against_unfused,
    "pipeline-points": points_against_opencv,
    "pipeline-points-copy": points_against_a_copy,
    "pipeline-channels-copy": channels_against_a_copy,
    "pipeline-call": ten_stages_on_three_elements,
    "pipeline-compile": compile_ten_stages,
    "pipeline-set": set_and_run,
    "pipeline-again": the_same_pipeline_again,
    **deep_pipelines.ROWS,
    **thumbnails.ROWS,
}
