"""Recurrent layers, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from ml.executor.graphs import check, computed, graph_of, node, read_graph, sample

from dala import errors

pytest.importorskip("onnxruntime")

T, B, TAKEN, H = 4, 3, 5, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
X = sample(T, B, TAKEN)
LENGTHS = np.array([4, 2, 1], np.int32)


def weights(op: str, directions: int = 1) -> dict[str, np.ndarray]:
    gates = GATES[op]
    return {
        "w": sample(directions, gates * H, TAKEN, seed=1) * 0.5,
        "r": sample(directions, gates * H, H, seed=2) * 0.5,
        "b": sample(directions, 2 * gates * H, seed=3) * 0.5,
        "n": LENGTHS,
        "h": sample(directions, B, H, seed=4),
        "c": sample(directions, B, H, seed=5),
        "p": sample(directions, 3 * H, seed=6),
    }


CASES = {
    "plain": ("x w r", {}),
    "reverse": ("x w r b", {"direction": "reverse"}),
    "both_with_lengths_and_states": ("x w r b n h", {"direction": "bidirectional"}),
    "clipped": ("x w r b", {"clip": 0.4}),
}
MORE = {
    "lstm_cell": ("LSTM", "x w r b n h c p", {"direction": "bidirectional"}),
    "lstm_coupled": ("LSTM", "x w r b - h c", {"input_forget": 1}),
    "lstm_activations": (
        "LSTM",
        "x w r b",
        {"activations": ["HardSigmoid", "Softsign", "Elu"], "activation_alpha": [0.3, 0.7]},
    ),
    "gru_linear": ("GRU", "x w r b n h", {"linear_before_reset": 1, "direction": "reverse"}),
    "gru_linear_plain": ("GRU", "x w r", {"linear_before_reset": 1}),
    "rnn_relu": (
        "RNN",
        "x w r b",
        {"activations": ["Relu", "LeakyRelu"], "direction": "bidirectional"},
    ),
    "rnn_affine": (
        "RNN",
        "x w r",
        {"activations": ["Affine"], "activation_alpha": [0.5], "activation_beta": [0.1]},
    ),
}
CASES_OF_EACH = [(op, *it) for op in GATES for it in CASES.values()] + [*MORE.values()]
IDS = [f"{op}_{name}" for op in GATES for name in CASES] + [*MORE]


@pytest.mark.parametrize(("op", "inputs", "attributes"), CASES_OF_EACH, ids=IDS)
def test_recurrent_layer(op, inputs, attributes, device):
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    outputs = "y yh yc" if op == "LSTM" else "y yh"
    constants = {k: it for k, it in weights(op, directions).items() if k in inputs.split()}
    layer = node(op, inputs, outputs, hidden_size=H, **attributes)
    check(graph_of([layer], {"x": X}, constants, outputs=outputs), {"x": X})


def test_weights_that_are_computed(device):
    given = {"x": X, **{k: it for k, it in weights("GRU").items() if k in "wrb"}}
    layer = node("GRU", "x w r b", "y", hidden_size=H)
    check(graph_of([layer], given), given)


def test_the_last_state_alone(device):
    layer = node("LSTM", "x w r", "- yh", hidden_size=H)
    layer.output[0] = ""
    constants = {k: it for k, it in weights("LSTM").items() if k in "wr"}
    check(graph_of([layer], {"x": X}, constants, outputs="yh"), {"x": X})


def test_weights_of_another_size_are_refused(device):
    constants = {k: it for k, it in weights("LSTM").items() if k in "wr"}
    model = graph_of([node("LSTM", "x w r", "y", hidden_size=H)], {"x": sample(T, B, 7)}, constants)
    like = {"y": np.zeros((T, 1, B, H), np.float32)}
    with pytest.raises(errors.ShapeError, match=r"weights are \(1, 24, 5\)"):
        computed(read_graph(model), {"x": sample(T, B, 7)}, like)


def test_an_activation_that_is_not_known_is_refused(device):
    constants = {k: it for k, it in weights("RNN").items() if k in "wr"}
    layer = node("RNN", "x w r", "y", hidden_size=H, activations=["Sine"])
    model = graph_of([layer], {"x": X}, constants)
    with pytest.raises(errors.ModelError, match="sine"):
        computed(read_graph(model), {"x": X}, {"y": np.zeros((T, 1, B, H), np.float32)})
