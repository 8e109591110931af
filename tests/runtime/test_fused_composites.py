"""Recipes on large images go through their stages a few rows at a time."""

from __future__ import annotations

import numpy as np
import pytest

from dala import errors
from dala.gpu import compute
from dala.runtime.pipelines import composite as composites

SHAPE = (65, 93, 4)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("blur", {"radius": 4}),
        ("erode", {"radius": 5}),
        ("edge_detect", {}),
        ("blur", {"radius": 40}),
    ],
)
def test_large_images_get_the_bytes_of_small_ones(device, monkeypatch, name, params):
    image = np.random.default_rng(3).integers(0, 256, SHAPE, dtype=np.uint8)
    source = compute.from_numpy(image)
    alone, fused = (compute.buffer_zeros(SHAPE, "u8") for _ in range(2))
    compute.run_kernel(name, [source], alone, params)
    monkeypatch.setattr(composites, "FUSED_BYTES", 0)
    for _ in range(2):
        compute.run_kernel(name, [source], fused, params)
        np.testing.assert_array_equal(np.asarray(fused), np.asarray(alone))
    compute.run_kernel(name, [source], source, params)
    np.testing.assert_array_equal(np.asarray(source), np.asarray(alone))


def test_a_large_image_is_planned_once(monkeypatch):
    from dala.runtime.pipelines import execution_plan as plan

    with compute.device("cpu"):
        source, out = (compute.buffer_zeros((1024, 1024, 4), "u8") for _ in range(2))
    compute.run_kernel("blur", [source], out, {"radius": 3, "sigma": 1.0})
    planned = len(plan._plans)
    compute.run_kernel("blur", [source], out, {"radius": 3, "sigma": 1.3})
    assert len(plan._plans) == planned > 0


def test_a_composite_kernel_that_fails_holds_nothing_of_its_stages_before(device):
    x, out = (compute.buffer_zeros((1 << 16,), "f32") for _ in range(2))

    def fail(given, *, out):
        raise errors.ShapeError("refused")

    def expand(inputs, output, params):
        one, other = (compute.scratch(output.shape, "f32") for _ in range(2))
        relu = compute.Kernel.lookup("relu")
        yield composites.Stage(relu, inputs, one)
        yield composites.Stage(relu, [one], other)
        yield composites.Stage(composites.HostCallKernel("fail", ("given",), fail), [other], output)

    failing = composites.CompositeKernel("failing", "", ("x",), (), expand)
    before = compute.memory().live_bytes
    with pytest.raises(errors.ShapeError) as raised:
        compute.run_kernel(failing, [x], out)
    # Its traceback holds the stage that failed, with what that one read.
    assert compute.memory().live_bytes - before <= out.size
    assert raised.value.__traceback__ is not None
