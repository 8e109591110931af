"""Attention and rotated embeddings, against ONNX's own reference."""

from __future__ import annotations

import numpy as np
import pytest
from ml.executor.graphs import check, check_reference, computed, graph_of, node, read_graph, sample

from dala import errors

Q, K, V = sample(2, 4, 3, 8), sample(2, 2, 5, 8, seed=1), sample(2, 2, 5, 6, seed=2)
MASK = np.random.default_rng(1).random((2, 1, 3, 5)) > 0.4
MASK[0, 0, 1] = False
FLOATS = np.where(MASK, sample(2, 1, 3, 5), -np.inf).astype(np.float32)
PAST = {"pk": sample(2, 2, 4, 8, seed=3), "pv": sample(2, 2, 4, 6, seed=4)}

CASES = {
    "grouped": ("q k v", {}, {}),
    "causal": ("q k v", {}, {"is_causal": 1, "scale": 0.3}),
    "mask": ("q k v m", {"m": MASK}, {"softcap": 2.0}),
    "mask_of_floats": ("q k v m", {"m": FLOATS}, {"is_causal": 1}),
    "short_mask": ("q k v m", {"m": MASK[0, 0, :, :4]}, {}),
    "before": ("q k v - pk pv", PAST, {"is_causal": 1}),
    "lengths": ("q k v - - - n", {"n": np.array([4, 2])}, {"is_causal": 1}),
}


@pytest.mark.parametrize("case", CASES)
def test_attention(case, device):
    inputs, others, attributes = CASES[case]
    given = {"q": Q, "k": K, "v": V}
    constants = {"m": np.zeros(0, bool), **others}
    constants = {name: item for name, item in constants.items() if name in inputs.split()}
    outputs = "y ok ov" if "pk" in inputs else "y"
    layer = node("Attention", inputs, outputs, **attributes)
    check_reference(graph_of([layer], given, constants, outputs=outputs, opset=24), given)


@pytest.mark.parametrize("mode", range(4))
def test_scores_are_given_at_each_of_their_steps(mode, device):
    given = {"q": Q, "k": K, "v": V}
    more = {"qk_matmul_output_mode": mode} | ({"softcap": 1.5} if mode else {})
    layer = node("Attention", "q k v m", "y ok ov s", **more)
    check_reference(graph_of([layer], given, {"m": MASK}, outputs="y s", opset=24), given)


def test_heads_that_lie_side_by_side(device):
    given = {"q": sample(2, 3, 32), "k": sample(2, 5, 16, seed=1), "v": sample(2, 5, 12, seed=2)}
    layer = node("Attention", "q k v", "y", q_num_heads=4, kv_num_heads=2)
    check_reference(graph_of([layer], given, opset=23), given)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("size", [0, 4])
@pytest.mark.parametrize("inner", [True, False])
def test_rotation(inner, size, interleaved, device):
    half = (size or 8) // 2
    x = sample(2, 3, 32) if inner else sample(2, 4, 3, 8)
    more = {"num_heads": 4} if inner else {}
    layer = node("RotaryEmbedding", "x c s at", "y", interleaved=interleaved, **more)
    layer.attribute.extend(node("R", "x", "y", rotary_embedding_dim=size).attribute)
    constants = {"at": np.array([[0, 1, 2], [5, 3, 4]])}
    given = {"x": x, "c": sample(7, half), "s": sample(7, half, seed=1)}
    check_reference(graph_of([layer], given, constants, opset=23), given)


def test_attention_as_exports_write_it_out(device):
    constants = {"scale": 0.35, "m": FLOATS[:, :, :, :3].clip(-1e9)}
    nodes = [
        node("Transpose", "k", "t", perm=[0, 1, 3, 2]),
        node("MatMul", "q t", "s"),
        node("Mul", "s scale", "c"),
        node("Add", "c m", "a"),
        node("Softmax", "a", "w", axis=-1),
        node("MatMul", "w v", "y"),
    ]
    given = {"q": Q, "k": sample(2, 4, 3, 8, seed=1), "v": sample(2, 4, 3, 6, seed=2)}
    check(graph_of(nodes, given, constants), given)


def test_keys_of_another_size_are_refused(device):
    given = {"q": Q, "k": sample(2, 2, 5, 7), "v": V}
    model = graph_of([node("Attention", "q k v", "y")], given, opset=23)
    with pytest.raises(errors.ShapeError, match=r"keys \(2, 2, 5, 7\)"):
        computed(read_graph(model), given, {"y": np.zeros((2, 4, 3, 6), np.float32)})
