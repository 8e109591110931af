"""The section of docs/performance.md that is computed, not measured."""

from __future__ import annotations

import numpy as np
import pytest
from ml.executor.graphs import graph_of, node, read_graph, sample

from benchmarks.roofline import Dispatch, Published, dispatch_of, of_product, requested_bytes
from dala.gpu import compute


@pytest.mark.usefixtures("webgpu")
def test_each_dispatch_counts_its_operations_and_its_bytes():
    x = sample(1, 8, 6, 6)
    weights = {"a": sample(16, 8, 1, 1), "b": sample(16, 1, 3, 3), "c": sample(4, 16, 3, 3)}
    nodes = [
        node("Conv", "x a", "p"),
        node("Conv", "p b", "q", group=16, pads=[1, 1, 1, 1]),
        node("Conv", "q c", "y"),
    ]
    given = {"x": compute.from_numpy(x)}
    rooms = {"y": compute.buffer_zeros((1, 4, 4, 4), "f32")}
    stages = read_graph(graph_of(nodes, {"x": x}, weights)).stages(given, rooms)
    found = [dispatch_of(stage) for stage in stages]
    assert [item.kind for item in found] == ["single tap", "depthwise", "several taps"]
    assert [item.operations for item in found] == [2 * 576 * 8, 2 * 576 * 9, 2 * 64 * 9 * 16]
    assert found[0].size_bytes == 4 * (8 * 36 + 16 * 8 + 16 + 576)


def test_a_dispatch_takes_what_is_longer():
    adapter = Published("one", tflops=1.0, gb_per_s=1.0)
    assert adapter.seconds(Dispatch("k", 10**12, 1)) == pytest.approx(1.0)
    assert adapter.seconds(Dispatch("k", 1, 2 * 10**9)) == pytest.approx(2.0)


def test_tiles_ask_for_their_rows_and_columns():
    assert of_product(256).size_bytes == 3 * 4 * 256**2
    assert requested_bytes(256) == 4 * 256 * 16 * 128 + 4 * 256**2
    assert np.isclose(requested_bytes(4096) / requested_bytes(2048), 8, rtol=0.02)
