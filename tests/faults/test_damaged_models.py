"""Models that were damaged, or made to do harm: errors before memory is had, work that ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from ml.altered_models import graph, model, node
from ml.executor.graphs import graph_of, read_graph, sample
from ml.executor.graphs import node as made
from onnx import helper, numpy_helper

from dala import errors, ml
from dala.gpu import compute
from dala.ml.models import guarded_run
from dala.ml.onnx import budget

MUTATIONS = Path(__file__).parents[1] / "ml" / "mutations.py"


@pytest.mark.skipif(sys.platform != "linux", reason="peaks of memory are read from /proc")
@pytest.mark.parametrize(
    ("engine", "device", "count"),
    [("onnxruntime", "cpu", 240), ("dala", "cpu", 180), ("dala", "webgpu", 60)],
)
def test_a_damaged_model_is_refused_or_computes_something(engine, device, count):
    given = [f"--engine={engine}", f"--device={device}", f"--count={count}", "--trace"]
    ran = subprocess.run(
        [sys.executable, str(MUTATIONS), "--seed=1", *given],
        capture_output=True,
        text=True,
        check=False,
    )
    failed = [part for part in ran.stdout.split("--seed") if "FAILED" in part or "took" in part]
    assert ran.returncode == 0, "".join(failed) + ran.stdout[-200:] + ran.stderr[-1000:]
    outcomes = ran.stdout.split("\n  ")
    assert sum(item.startswith("computed") for item in outcomes) > count // 20


GROWING = {
    "ConstantOfShape": ([made("ConstantOfShape", "s", "b")], {"s": [1 << 21, 1 << 21]}),
    "Range": (
        [made("Range", "i n k", "r"), made("Cast", "r", "b", to=1)],
        {"i": np.int64(0), "n": np.int64(1 << 42), "k": np.int64(1)},
    ),
    "Expand of a constant": ([made("Expand", "k s", "b")], {"k": 1.0, "s": [1 << 21, 1 << 21]}),
    "Tile of a constant": ([made("Tile", "k s", "b")], {"k": [[1.0]], "s": [1 << 21, 1 << 21]}),
    "Expand": ([made("Expand", "x s", "b")], {"s": [1 << 20, 2, 3]}),
    "Tile": ([made("Tile", "x s", "b")], {"s": [1 << 21, 1 << 21]}),
    "Pad": ([made("Pad", "x s", "b")], {"s": [0, 1 << 24, 1 << 24, 0]}),
    "spread": ([made("Add", "k x", "b")], {"k": np.zeros((1 << 14, 1, 1), np.float32)}),
}


@pytest.mark.parametrize("case", GROWING)
def test_what_is_out_of_proportion_is_a_limit_error_before_it_is_there(case, device, monkeypatch):
    monkeypatch.setattr(budget, "SMALLEST_BYTES", 1 << 16)
    monkeypatch.setattr(budget, "GROWTH", 2)
    nodes, constants = GROWING[case]
    nodes = [*nodes, made("ReduceMax", "b", "m", keepdims=0), made("Add", "x m", "y")]
    data = graph_of(nodes, {"x": sample(2, 3)}, constants)
    with pytest.raises(errors.LimitError, match=r"\) would take [\d,]+ bytes, of at most [\d,]+"):
        ml.gpu.predict(ml.gpu.load_model(data, engine="dala"), sample(2, 3))


@pytest.mark.parametrize("op", ["Reshape", "ConstantOfShape"])
def test_a_shape_of_a_million_axes_is_refused_at_once(op):
    nodes = [made("Tile", "two many", "s"), made(op, "x s" if op == "Reshape" else "s", "b")]
    nodes += [made("ReduceMax", "b", "m", keepdims=0), made("Add", "x m", "y")]
    data = graph_of(nodes, {"x": sample(2, 3)}, {"two": [2], "many": [1 << 20]})
    given = {"x": compute.from_numpy(sample(2, 3))}
    with pytest.raises((errors.LimitError, errors.ShapeError), match="1,048,576 axes"):
        read_graph(data).compute(given)


def test_values_that_are_too_much_together_are_a_limit_error(device, monkeypatch):
    nodes = [made("Transpose", "x", "a")]
    nodes += [made("MatMul", "a a", name) for name in "bcdefg"]
    nodes += [made("Concat", "b c d e f g", "h", axis=0), made("ReduceMax", "h", "y", keepdims=0)]
    data = graph_of(nodes, {"x": sample(64, 64)})
    loaded = ml.gpu.load_model(data, engine="dala")
    ml.gpu.predict(loaded, sample(64, 64))
    monkeypatch.setattr(budget, "SMALLEST_BYTES", 1 << 12)
    monkeypatch.setattr(budget, "GROWTH", 0)
    monkeypatch.setattr(budget.Budget, "check_value", lambda *_: None)
    with pytest.raises(errors.LimitError, match="between its nodes would take"):
        ml.gpu.predict(ml.gpu.load_model(data, engine="dala"), sample(64, 64))


def test_a_model_of_too_many_launches_is_a_limit_error(device, monkeypatch):
    monkeypatch.setattr(budget, "LAUNCHES_LIMIT", 3)
    names = ["x", "a", "b", "c", "d", "y"]
    nodes = [made("Transpose", names[i], names[i + 1]) for i in range(5)]
    loaded = ml.gpu.load_model(graph_of(nodes, {"x": sample(2, 3)}), engine="dala")
    with pytest.raises(errors.LimitError, match="more than 3 launches by now"):
        ml.gpu.predict(loaded, sample(2, 3))


def test_onnx_runtime_is_not_asked_to_make_room_for_what_is_out_of_proportion():
    scales = numpy_helper.from_array(np.array([1, 1, 1 << 12, 1 << 12], np.float32), "s")
    info = [helper.make_tensor_value_info("x", 1, [1, 1, "h", 4])]
    resized = helper.make_graph(
        [node("Resize", "x _ s", "b"), node("ReduceMax", "b", "y", keepdims=0)],
        "large",
        info,
        [helper.make_tensor_value_info("y", 1, [])],
        [scales],
    )
    with pytest.raises(errors.LimitError, match=r"'b': .* would take"):
        ml.gpu.load_model(model(resized), engine="onnxruntime")


def test_a_graph_without_inputs_is_computed(device):
    tensor = numpy_helper.from_array(np.array([[1, 2, 3, 4]], np.float32), "w")
    data = model(graph([node("Add", "w w", "y")], inputs="", initializers=[tensor]))
    for engine in ("dala", "onnxruntime"):
        loaded = ml.gpu.load_model(data, engine=engine)
        assert ml.gpu.predict(loaded, []).tolist() == [[2, 4, 6, 8]]


def endless() -> bytes:
    """A model that goes on for as long as ONNX's largest integer."""
    inner = graph(
        [node("Identity", "on", "go"), node("Add", "c c", "d")], inputs="t on c", outputs="go d"
    )
    for value, kind in ((inner.input[0], 7), (inner.input[1], 9), (inner.output[0], 9)):
        value.type.tensor_type.elem_type = kind
        del value.type.tensor_type.shape.dim[:]
    trips = numpy_helper.from_array(np.array(2**62, np.int64), "trips")
    yes = numpy_helper.from_array(np.array(True), "yes")
    return model(graph([node("Loop", "trips yes x", "y", body=inner)], initializers=[trips, yes]))


def test_loops_inside_of_a_model_end(monkeypatch):
    monkeypatch.setattr(guarded_run, "LOOPS_LIMIT_S", 0.2)
    loaded = ml.gpu.load_model(endless(), engine="onnxruntime")
    with pytest.raises(errors.KernelTimeoutError, match=r"took more than 0\.2 s"):
        ml.gpu.predict(loaded, np.ones((1, 4), np.float32))
    before = threading.active_count()
    with pytest.raises(errors.KernelTimeoutError):
        ml.gpu.predict(loaded, np.ones((1, 4), np.float32))
    assert threading.active_count() == before


INTERRUPTED = """
import sys
import numpy as np
from dala import ml
from pathlib import Path

model = ml.gpu.load_model(Path(sys.argv[1]), engine=sys.argv[2])
x = np.ones(model.takes[0].fixed, np.float32)
print("ready", flush=True)
try:
    while True:
        ml.gpu.predict(model, x)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def products() -> bytes:
    """A model of many minutes on any machine: 200 products of 3,000 × 3,000."""
    chain = [made("MatMul", f"{'x' if i == 0 else f'v{i}'} x", f"v{i + 1}") for i in range(200)]
    chain.append(made("Relu", "v200", "y"))
    return graph_of(chain, {"x": np.empty((3000, 3000), np.float32)})


@pytest.mark.parametrize("engine", ["dala", "onnxruntime"])
def test_ctrl_c_reaches_a_running_model(engine, tmp_path):
    path = tmp_path / "long.onnx"
    path.write_bytes(products() if engine == "dala" else endless())
    running = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(path), engine], stdout=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        time.sleep(1.0)  # until it computes; an interrupt before that is one, too
        running.send_signal(signal.SIGINT)
        assert running.communicate(timeout=30)[0] == "interrupted\n"
    finally:
        running.kill()


def test_a_run_that_was_brief_is_not_waited_for(monkeypatch):
    started = []
    thread = threading.Thread

    def noted(*given, **options):
        started.append(options.get("name"))
        return thread(*given, **options)

    data = model(graph([node("Relu", "x", "y")]))
    loaded = ml.gpu.load_model(data, engine="onnxruntime")
    monkeypatch.setattr(guarded_run, "BRIEF_S", 60.0)
    monkeypatch.setattr(guarded_run.threading, "Thread", noted)
    for _ in range(3):
        ml.gpu.predict(loaded, np.ones((1, 4), np.float32))
    assert started == ["dala-model"]
