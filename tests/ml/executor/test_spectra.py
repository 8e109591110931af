"""Fourier transforms and windows, against ONNX Runtime or ONNX's own reference."""

from __future__ import annotations

import numpy as np
import pytest
from ml.executor.graphs import check, check_reference, computed, graph_of, node, read_graph, sample

pytest.importorskip("onnxruntime")

REAL, COMPLEX = sample(2, 10, 6, 1), sample(2, 10, 6, 2)
TRANSFORMS = {
    "real": (REAL, {}),
    "half": (REAL, {"onesided": 1}),
    "complex": (COMPLEX, {}),
    "inverse": (COMPLEX, {"inverse": 1}),
}


@pytest.mark.parametrize("length", [None, 7, 144])
@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("case", TRANSFORMS)
def test_transform(case, axis, length, device):
    x, more = TRANSFORMS[case]
    inputs = "x n" if length else "x"
    layer = node("DFT", inputs, "y", axis=axis, **more)
    constants = {"n": np.int64(length)} if length else {}
    check_reference(graph_of([layer], {"x": x}, constants), {"x": x})


def test_transform_along_an_axis_that_is_an_input(device):
    layer = node("DFT", "x - a", "y")
    check_reference(graph_of([layer], {"x": REAL}, {"a": np.int64(-2)}, opset=20), {"x": REAL})


@pytest.mark.parametrize("length", [None, 11])
def test_half_a_spectrum_becomes_real_again(length, device):
    x = sample(3, 11)
    count = 2 * 5 if length is None else length
    spectrum = np.fft.rfft(x[:, :count], axis=1)
    given = {"x": np.stack([spectrum.real, spectrum.imag], -1).astype(np.float32)}
    constants = {"n": np.int64(length)} if length else {}
    inputs = "x n" if length else "x"
    layer = node("DFT", inputs, "y", axis=1, inverse=1, onesided=1)
    model = graph_of([layer], given, constants, opset=19)
    got = computed(read_graph(model), given, {"y": np.zeros((3, count, 1), np.float32)})["y"]
    np.testing.assert_allclose(got[..., 0], x[:, :count], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("windowed", [True, False])
def test_transform_of_frames(windowed, half, device):
    x = sample(2, 50, 1)
    constants = {"s": np.int64(5), **({"w": np.abs(sample(16))} if windowed else {})}
    constants |= {"n": np.int64(16)}
    layer = node("STFT", "x s w n" if windowed else "x s - n", "y", onesided=half)
    check(graph_of([layer], {"x": x}, constants), {"x": x})


def test_frames_that_are_longer_than_a_table(device):
    # Against NumPy: ONNX Runtime sums them up in f32, which is off by more.
    x = sample(1, 2400, 1)
    constants = {"s": np.int64(90), "n": np.int64(2304)}
    model = graph_of([node("STFT", "x s - n", "y")], {"x": x}, constants)
    want = np.stack([np.fft.rfft(x[0, at : at + 2304, 0]) for at in (0, 90)])
    like = {"y": np.stack([want.real, want.imag], -1)[None].astype(np.float32)}
    got = computed(read_graph(model), {"x": x}, like)["y"]
    np.testing.assert_allclose(got, like["y"], atol=1e-3)


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_window(op, periodic, device):
    x = sample(9)
    nodes = [node(op, "n", "w", periodic=periodic), node("Mul", "x w", "y")]
    check(graph_of(nodes, {"x": x}, {"n": np.int64(9)}), {"x": x})


def test_bands_of_the_mel_scale(device):
    x = sample(3, 129)
    constants = {"m": np.int64(8), "n": np.int64(256), "r": np.int64(8192)}
    constants |= {"low": np.float32(20), "high": np.float32(4000)}
    nodes = [node("MelWeightMatrix", "m n r low high", "w"), node("MatMul", "x w", "y")]
    check(graph_of(nodes, {"x": x}, constants), {"x": x})
