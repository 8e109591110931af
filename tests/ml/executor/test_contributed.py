"""Layers of ONNX Runtime's own domain, against it."""

from __future__ import annotations

import numpy as np
import pytest
from ml.executor.graphs import check, computed, graph_of, node, read_graph, sample

from dala import errors

pytest.importorskip("onnxruntime")

X = sample(2, 3, 40)
RANDOM = np.random.default_rng(8)


def foreign(op: str, inputs: str, outputs: str, **attributes):
    made = node(op, inputs, outputs, **attributes)
    made.domain = "com.microsoft"
    return made


@pytest.mark.parametrize("points", [True, False])
@pytest.mark.parametrize("bits", [4, 8])
def test_product_with_packed_levels(bits, points, device):
    blocks, made = 3, 5  # 40 rows in blocks of 16, the last of them cut
    constants = {
        "b": RANDOM.integers(0, 256, (made, blocks, 16 * bits // 8)).astype(np.uint8),
        "s": np.abs(sample(made * blocks)),
    }
    if points:
        constants["z"] = RANDOM.integers(0, 256, made * -(-blocks * bits // 8)).astype(np.uint8)
    inputs = "x b s z" if points else "x b s"
    layer = foreign("MatMulNBits", inputs, "y", K=40, N=made, bits=bits, block_size=16)
    check(graph_of([layer], {"x": X}, constants), {"x": X})


def test_packed_levels_of_other_widths_are_refused(device):
    constants = {"b": np.zeros((5, 3, 4), np.uint8), "s": sample(15)}
    layer = foreign("MatMulNBits", "x b s", "y", K=40, N=5, bits=2, block_size=16)
    model = graph_of([layer], {"x": X}, constants)
    with pytest.raises(errors.ModelError, match="2 bits"):
        computed(read_graph(model), {"x": X}, {"y": np.zeros((2, 3, 5), np.float32)})


LAYERS = {
    "gelu": (foreign("Gelu", "x", "y"), {}),
    "gelu_of_a_sum": (foreign("BiasGelu", "x b", "y"), {"b": sample(40)}),
    "quick_gelu": (foreign("QuickGelu", "x", "y", alpha=1.5), {}),
    "turned": (foreign("FusedMatMul", "x w", "y", transB=1, alpha=0.5), {"w": sample(5, 40)}),
    "skip": (
        foreign("SkipLayerNormalization", "x s g b c", "y - - t"),
        {"s": sample(2, 3, 40, seed=1), "g": sample(40), "b": sample(40), "c": sample(40, seed=2)},
    ),
    "skip_simple": (
        foreign("SkipSimplifiedLayerNormalization", "x s g", "y"),
        {"s": sample(2, 3, 40, seed=1), "g": sample(40)},
    ),
    "simple": (node("SimplifiedLayerNormalization", "x g", "y"), {"g": sample(40)}),
}


@pytest.mark.parametrize("case", LAYERS)
def test_layer(case, device):
    layer, constants = LAYERS[case]
    outputs = "y t" if len(layer.output) > 1 else "y"
    layer.output[:] = [name.replace("-", "") for name in layer.output]
    check(graph_of([layer], {"x": X}, constants, outputs=outputs), {"x": X})
