"""Recipes on large images go through their stages a few rows at a time."""

from __future__ import annotations

import numpy as np
import pytest

from dala.gpu import compute
from dala.runtime import recipe

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
    monkeypatch.setattr(recipe, "FUSED_BYTES", 0)
    for _ in range(2):
        compute.run_kernel(name, [source], fused, params)
        np.testing.assert_array_equal(np.asarray(fused), np.asarray(alone))
    compute.run_kernel(name, [source], source, params)
    np.testing.assert_array_equal(np.asarray(source), np.asarray(alone))


def test_a_large_image_is_planned_once(monkeypatch):
    from dala.runtime import fused

    with compute.device("cpu"):
        source, out = (compute.buffer_zeros((1024, 1024, 4), "u8") for _ in range(2))
    compute.run_kernel("blur", [source], out, {"sigma": 1.0})
    planned = len(fused._plans)
    compute.run_kernel("blur", [source], out, {"sigma": 1.3})
    assert len(fused._plans) == planned > 0
