"""A warm run: how many calls of Python it makes, and that it makes nothing on the device."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ml.executor.graphs import computed, expected, graph_of, node, read_graph, sample
from ml.executor.test_graph import SHARED, real

from dala import errors
from dala.devices import current_device
from dala.gpu import compute
from dala.ml import gpu
from dala.ml.executor.graph import Graph

MOST_CALLS = 250
"""Calls of a warm run of any graph on any device."""

X = sample(1, 3, 16, 16)
CLASSIFIER = graph_of(
    [
        node("Conv", "x w b", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", "c", "r"),
        node("Conv", "r depth", "d", kernel_shape=[3, 3], pads=[1, 1, 1, 1], group=8),
        node("Clip", "d low high", "k"),
        node("Add", "k r", "s"),
        node("GlobalAveragePool", "s", "g"),
        node("Flatten", "g", "f"),
        node("Gemm", "f m", "z"),
        node("Softmax", "z", "y"),
    ],
    {"x": X},
    {
        "w": sample(8, 3, 3, 3, seed=1),
        "b": sample(8, seed=2),
        "depth": sample(8, 1, 3, 3, seed=3),
        "low": 0.0,
        "high": 6.0,
        "m": sample(8, 5, seed=4),
    },
)
PYRAMID = graph_of(
    [
        node("MaxPool", "x", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("ConvTranspose", "p t", "u", kernel_shape=[2, 2], strides=[2, 2]),
        node("Concat", "x u", "c", axis=1),
        node("Transpose", "c", "q", perm=[0, 2, 3, 1]),
        node("ReduceMean", "q", "m", axes=[1], keepdims=1),
        node("Sub", "q m", "d"),
        node("Sigmoid", "d", "y"),
    ],
    {"x": X},
    {"t": sample(3, 2, 2, 2, seed=5)},
)
GRAPHS = pytest.mark.parametrize("model", [CLASSIFIER, PYRAMID], ids=["classifier", "pyramid"])


def calls_of(call: Callable[[], None]) -> int:
    """How many functions of Python are called."""
    count = 0

    def profile(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


@pytest.fixture
def created(device, monkeypatch):
    """What is made on the device from now on."""
    found: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        real_one = getattr(owner, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            found[name] += 1
            return real_one(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    def start() -> Counter[str]:
        here = current_device()
        for name in ("allocate", "load", "load_group", "load_wgsl"):
            count(here, name)
        if here.backend == "webgpu":
            for name in dir(here.gpu):
                if name.startswith("create_") and name != "create_command_encoder":
                    count(type(here.gpu), name)
        return found

    return start


def warm(model: bytes, inputs: dict[str, np.ndarray]) -> tuple[Graph, Callable[[], None]]:
    """A graph, what runs it on its buffers, after it ran twice."""
    graph, want = read_graph(model), expected(model, inputs)
    given = {name: compute.from_numpy(item) for name, item in inputs.items()}
    rooms = {name: compute.buffer_zeros(item.shape, "f32") for name, item in want.items()}

    def run() -> None:
        graph.run(given, rooms)

    run()
    run()
    for name, item in want.items():
        np.testing.assert_allclose(compute.read(rooms[name]), item, rtol=1e-3, atol=1e-3)
    return graph, run


@GRAPHS
def test_a_warm_run_makes_few_calls_and_nothing_on_the_device(model, created):
    _, run = warm(model, {"x": X})
    found = created()
    assert calls_of(run) <= MOST_CALLS
    assert not found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shape"), [("mobilenet_v2", (1, 3, 224, 224)), ("blazeface", (1, 128, 128, 3))]
)
def test_a_warm_run_of_a_real_model_makes_few_calls_and_nothing_on_the_device(name, shape, created):
    model = real(name)
    (given,) = read_graph(model).inputs
    _, run = warm(model, {given.name: sample(*shape)})
    found = created()
    assert calls_of(run) <= MOST_CALLS
    assert not found


@GRAPHS
def test_other_buffers_are_run_without_another_plan(model, created):
    graph, _ = warm(model, {"x": X})
    want = expected(model, {"x": X[..., ::-1].copy()})
    x = compute.from_numpy(X[..., ::-1].copy())
    y = compute.buffer_zeros(want["y"].shape, "f32")
    found = created()
    graph.run({"x": x}, {"y": y})
    assert not {"load", "load_group", "load_wgsl", "create_compute_pipeline"} & found.keys()
    np.testing.assert_allclose(compute.read(y), want["y"], rtol=1e-3, atol=1e-3)


@GRAPHS
def test_a_run_and_the_stages_of_a_pipeline_agree_to_the_bit(model, device):
    graph, want = read_graph(model), expected(model, {"x": X})
    stages = computed(graph, {"x": X}, want)["y"]
    y = compute.buffer_zeros(want["y"].shape, "f32")
    graph.run({"x": compute.from_numpy(X)}, {"y": y})
    assert compute.read(y).tobytes() == stages.tobytes()


@GRAPHS
def test_a_pipeline_makes_few_calls_and_follows_its_buffers(model, device):
    graph, want = read_graph(model), expected(model, {"x": X})
    x = compute.from_numpy(X)
    y = compute.buffer_zeros(want["y"].shape, "f32")
    pipeline, stages = compute.pipeline(), list(graph.stages({"x": x}, {"y": y}))
    for stage in stages:
        pipeline.add(stage.kernel, stage.inputs, stage.output, stage.params)
    for _ in range(3):
        pipeline.run()
    assert calls_of(pipeline.run) <= MOST_CALLS
    compute.write(x, X[..., ::-1].copy())
    pipeline.run()
    turned = expected(model, {"x": X[..., ::-1].copy()})["y"]
    np.testing.assert_allclose(compute.read(y), turned, rtol=1e-3, atol=1e-3)
    last = stages[-1].output
    other = compute.buffer_zeros(last.shape, "f32")
    pipeline.bind(last, other)
    for _ in range(3):
        compute.write(other, np.zeros(last.shape, np.float32))
        pipeline.run()
        made = compute.read(other).reshape(turned.shape)
        np.testing.assert_allclose(made, turned, rtol=1e-3, atol=1e-3)


@GRAPHS
def test_buffers_that_were_freed_are_refused_and_the_next_run_works(model, device):
    graph, run = warm(model, {"x": X})
    x, y = compute.from_numpy(X), compute.buffer_zeros(expected(model, {"x": X})["y"].shape, "f32")
    x.free()
    with pytest.raises(errors.FreedError, match="was freed"):
        graph.run({"x": x}, {"y": y})
    run()


@pytest.mark.slow
def test_a_warm_model_makes_at_most_a_thousand_calls_however_it_is_run(webgpu):
    x = compute.from_numpy(sample(1, 3, 224, 224))
    out = compute.buffer_zeros((1, 1000), "f32")
    real("mobilenet_v2")
    model = gpu.load_model(SHARED / "models/mobilenet_v2.onnx", engine="dala")
    pipeline = compute.pipeline().add(kernel=model, inputs=[x], output=out)
    ways: list[Callable[[], object]] = [
        lambda: gpu.predict(model, x),
        lambda: gpu.predict(model, sample(1, 3, 224, 224)),
        lambda: model.run([x], out),
        pipeline.run,
    ]
    for run in ways:
        run()
        run()
        assert calls_of(run) <= 1000
