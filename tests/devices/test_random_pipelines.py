"""Random pipelines give what their stages give one by one, every bit of every buffer that is kept.

All coefficients are 1/2, so that no result is rounded whatever a driver contracts. The images of
the built-in filters are for the CPU alone, where the order of operations never changes.
`DALA_RANDOM_SEED` runs others.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from dala.gpu import compute

FIRST = int(os.environ.get("DALA_RANDOM_SEED", "1"))
COUNT, BATCH, STAGES = 80, 20, 10
BORDERS = ["clamp", "mirror", "reflect", "wrap", "zero"]
SIZES = [1, 2, 3, 5, 17, 40, 70]
POINTS = [
    "x * 0.5 + y * 0.5",
    "max(x, y) - 1",
    "x - y * 0.5",
    "x if x > y else y * 0.5",
    "abs(x) * 0.5 + k",
]
FILTERS = [
    ("blur", {"radius": 2, "sigma": 1.2}),
    ("sharpen", {"amount": 0.7}),
    ("grayscale", {}),
    ("brightness", {"value": 0.1}),
    ("contrast", {"value": 0.3}),
    ("vignette", {}),
    ("box_blur", {"radius": 1, "border": "mirror"}),
    ("invert", {}),
]


def kernel(rng: np.random.Generator) -> tuple[compute.Kernel, dict]:
    """A kernel of two inputs x and y: of points, neighbours, what lies far, or a whole row."""
    kind = rng.choice(["point", "point", "near", "near", "far", "row"])
    head = "    i, j = position(2)\n    h, w = x.shape\n"
    border = str(rng.choice(BORDERS))
    if kind == "point":
        source = f"def point(x, y, k: s32):\n    return {rng.choice(POINTS)}"
        return register(source, border), {"k": int(rng.integers(0, 3))}
    if kind == "near":
        a, b, c, d = rng.integers(-3, 4, 4)
        body = f"x[i + {a}, j + {b}] * 0.5 + y[i + {c}, j + {d}] * 0.5"
        return register(f"def near(x, y):\n{head}    return {body}", border), {}
    if kind == "far":
        return register(f"def far(x, y):\n{head}    return x[h - 1 - i, j] - y", border), {}
    body = "max(x[i, n] for n in range(w)) + y"
    return register(f"def row(x, y):\n{head}    return {body}", border), {}


def register(source: str, border: str) -> compute.Kernel:
    return compute.Kernel.register("random stage", source, border=border, replace=True)


def build(seed: int, fuse: bool) -> tuple[compute.Pipeline, list[compute.Buffer]]:
    """A pipeline, and the buffers of it that can be read."""
    rng = np.random.default_rng(seed)
    shape = (int(rng.choice(SIZES)), int(rng.choice(SIZES)))
    dtypes = ["f32", "s32", "u8"]
    values = rng.integers(0, 100, shape)
    known = [compute.buffer(values, shape, "f32"), compute.buffer(values % 7, shape, "u8")]
    pipeline = compute.pipeline(fuse=fuse)
    for _ in range(STAGES):
        made, params = kernel(rng)
        inputs = [known[int(rng.integers(len(known)))] for _ in range(2)]
        choice = rng.random()
        if choice < 0.1:
            output = known[int(rng.integers(len(known)))]
        elif choice < 0.5:
            output = compute.scratch(shape, str(rng.choice(dtypes)))
        else:
            output = compute.buffer_zeros(shape, str(rng.choice(dtypes)))
        pipeline.add(kernel=made, inputs=inputs, output=output, params=params)
        if all(output is not item for item in known):
            known.append(output)
        if rng.random() < 0.08:
            pipeline.add(op="barrier")
    return pipeline, [item for item in known if not item.is_scratch]


def build_filters(seed: int, fuse: bool) -> tuple[compute.Pipeline, list[compute.Buffer]]:
    rng = np.random.default_rng(seed)
    height, width = int(rng.choice(SIZES)), int(rng.choice(SIZES))
    channels, dtype = int(rng.choice([1, 3, 4])), str(rng.choice(["u8", "f32"]))
    shape = (height, width) if channels == 1 else (height, width, channels)
    values = rng.integers(0, 256, shape).astype(np.uint8)
    first = values if dtype == "u8" else (values / 255).astype(np.float32)
    known = [compute.from_numpy(first)]
    pipeline = compute.pipeline(fuse=fuse)
    for _ in range(6):
        name, params = FILTERS[int(rng.integers(len(FILTERS)))]
        output = (compute.scratch if rng.random() < 0.5 else compute.buffer_zeros)(shape, dtype)
        pipeline.add(kernel=name, inputs=[known[-1]], output=output, params=params)
        known.append(output)
    last = compute.buffer_zeros(shape, dtype)
    pipeline.add(kernel="invert", inputs=[known[-1]], output=last)
    return pipeline, [item for item in (*known, last) if not item.is_scratch]


def require_equality(build_one, seed: int) -> None:
    results = []
    for fuse in (True, False):
        pipeline, buffers = build_one(seed, fuse)
        pipeline.run()
        pipeline.run()  # the second time everything holds something already
        results.append([compute.read(item) for item in buffers])
    for number, (fused, alone) in enumerate(zip(*results, strict=True)):
        same = np.array_equal(fused, alone, equal_nan=fused.dtype.kind == "f")
        assert same, f"seed {seed}, buffer {number}:\n{build_one(seed, True)[0].explain()}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, BATCH))
def test_a_random_pipeline_equals_its_stages(device, first):
    for seed in range(first, first + BATCH):
        require_equality(build, seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT // 2, BATCH))
def test_a_random_chain_of_filters_equals_its_stages(first):
    for seed in range(first, first + BATCH):
        require_equality(build_filters, seed)
