"""Pipelines of any depth run, and give what their stages give one by one."""

from __future__ import annotations

import numpy as np
import pytest

from dala.gpu import compute
from dala.plan import inlining

POINTS = [
    ("brightness", {"value": 0.01}),
    ("contrast", {"value": 0.02}),
    ("invert", {}),
    ("saturation", {"value": -0.05}),
]


def chain(source, stages, *, fuse=True):
    """A pipeline of (kernel, params) on one buffer after another, and the last of them."""
    pipeline = compute.pipeline(fuse=fuse)
    at = source
    for number, (kernel, params) in enumerate(stages, 1):
        make = compute.buffer_zeros if number == len(stages) else compute.scratch
        to = make(source.shape, source.dtype)
        pipeline.add(kernel=kernel, inputs=[at], output=to, params=params)
        at = to
    return pipeline, at


def results(source, stages):
    """What the chain gives in groups, and stage by stage."""
    found = []
    for fuse in (True, False):
        pipeline, out = chain(source, stages, fuse=fuse)
        pipeline.run()
        found.append(compute.read(out))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "dtype"), [((5, 7, 4), "u8"), ((5, 7, 3), "f32")], ids=str)
def test_500_point_filters_on_an_image_run(device, shape, dtype):
    levels = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
    image = levels if dtype == "u8" else (levels / np.float32(255))
    fused, alone = results(compute.from_numpy(image), POINTS * 125)
    np.testing.assert_allclose(fused, alone, atol=1 if dtype == "u8" else 1e-3)


def test_500_stages_give_every_bit_of_stages_run_alone():
    x = np.random.default_rng(2).random((9, 301), np.float32)
    with compute.device("cpu"):
        fused, alone = results(compute.from_numpy(x), [("scale", {"factor": 1.01})] * 500)
    np.testing.assert_array_equal(fused, alone)


def test_a_deep_chain_of_points_goes_through_memory_once():
    with compute.device("cpu"):
        x = compute.buffer_zeros((64, 300), "f32")
        pipeline, _ = chain(x, [("scale", {"factor": 1.01})] * 500)
        explained = pipeline.explain()
    assert explained.splitlines()[-1].endswith(f"{2 * x.size:,} so")


def test_a_chain_is_put_together_by_copying_each_stage_once(monkeypatch):
    copied = []
    merged = inlining.merged
    monkeypatch.setattr(
        inlining,
        "merged",
        lambda programs, *_: copied.append(len(programs)) or merged(programs, *_),
    )
    with compute.device("cpu"):
        pipeline, _ = chain(compute.buffer_zeros((300,), "f32"), [("scale", {"factor": 2.0})] * 200)
        pipeline.run()
    assert sum(copied) == 200


@pytest.mark.parametrize("border", ["clamp", "mirror", "zero"])
def test_many_stencils_are_cut_into_groups_whose_rows_stay_in_the_cache(device, border):
    source = """
    def near(x):
        i, j = dala.position(2)
        return (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) * 0.25
    """
    kernel = compute.Kernel.register("near", source, border=border, replace=True)
    x = np.random.default_rng(3).integers(0, 100, (90, 2000)).astype(np.float32)
    fused, alone = results(compute.from_numpy(x), [(kernel, {})] * 24)
    np.testing.assert_allclose(fused, alone, rtol=1e-5, atol=1e-5)
    compute.Kernel.unregister("near")


def test_stencils_that_would_be_fused_at_a_loss_say_so():
    with compute.device("cpu"):
        stages = [("box_blur", {"radius": 3})] * 12
        pipeline, _ = chain(compute.buffer_zeros((90, 2000, 4), "u8"), stages)
        explained = pipeline.explain()
    assert "would be computed twice around chunks, at a loss" in explained
    assert explained.count(" → ") > 0


def test_bounds_of_values_are_found_at_any_depth(device):
    doubled = compute.Kernel.register("doubled", "def doubled(x):\n    return x + x", replace=True)
    halved = compute.Kernel.register("halved", "def halved(x):\n    return x * 0.5", replace=True)
    x = compute.from_numpy(np.arange(40, dtype=np.float32))
    pipeline, at = compute.pipeline(), x
    for kernel in [doubled, halved] * 250:
        to = compute.scratch((40,), "f32")
        pipeline.add(kernel=kernel, inputs=[at], output=to)
        at = to
    out = compute.buffer_zeros((40,), "u8")
    pipeline.add(kernel="cast", inputs=[at], output=out).run()
    assert compute.read(out).tolist() == list(range(40))
