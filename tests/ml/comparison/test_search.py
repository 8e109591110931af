"""Faults that are put into one node of the executor are found there, whatever the network is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import need_webgpu
from ml.comparison.faulty_graphs import CONSTANTS, SHAPE, WINDOW, fault, faults, mobile
from ml.executor.graphs import expected, graph_of, node, sample

from dala import errors, ml
from dala.cli import main
from dala.ml.comparison import search


@pytest.mark.slow
def test_of_a_hundred_faults_each_is_found_at_its_node():
    need_webgpu()
    seed = 5
    print(f"{seed=}")
    missed = []
    for data, kind, op, victim, device in faults(100, seed):
        devices = ("cpu",) if device == "cpu" else ("webgpu",) if device else ("cpu", "webgpu")
        with fault(kind, op, victim, device):
            found = ml.parity(data, {"x": sample(*SHAPE)}, devices=devices)
        row = None if found.first is None else found.first.row
        if row is None or row.node != victim or row.fused != (kind == "fused"):
            missed.append((kind, op, victim, device, row and (row.node, row.operator)))
    assert missed == []


def test_a_network_without_a_fault_agrees(device):
    found = ml.parity(mobile(2)[0], {"x": sample(*SHAPE)}, devices=[device])
    assert found
    assert found.accumulated == {device: ""}
    assert {row.fused for row in found.rows} == {True, False}
    assert list(found.lines())[-1] == "model: 14 nodes agree with onnxruntime"


def test_without_onnx_runtime_devices_are_compared_with_each_other(webgpu, monkeypatch):
    monkeypatch.setattr(search, "has_onnx_runtime", lambda: False)
    data = mobile(1)[0]
    assert ml.parity(data)
    with fault("weight", "Conv", "2 depthwise", "webgpu"):
        found = ml.parity(data)
    assert found.reference == "cpu"
    assert found.first.row.node == "2 depthwise"
    assert found.first.row.device == "webgpu"


def test_where_differences_add_up_is_told():
    with fault("weight", "Conv", "0 pointwise", None):
        found = ml.parity(mobile(1)[0], {"x": sample(*SHAPE)}, devices=["cpu"], every=True)
        assert found.accumulated == {"cpu": "0 pointwise"}
    assert [row.node for row in found.rows if not row.fits and not row.fused] == ["0 pointwise"]


@pytest.mark.parametrize("kind", ["weight", "fused"])
def test_the_smallest_model_that_shows_a_fault_is_written_and_shows_it(kind, tmp_path, capsys):
    op, victim = ("Conv", "2 depthwise") if kind == "weight" else ("Clip", "1 clip")
    data = mobile(1)[0]
    (tmp_path / "m.onnx").write_bytes(data)
    np.savez(tmp_path / "x.npz", x=sample(*SHAPE))
    given = ["parity", str(tmp_path / "m.onnx"), str(tmp_path / "x.npz"), "-d", "cpu"]
    with fault(kind, op, victim, None):
        assert main([*given, "-o", str(tmp_path), "--json"]) == 1
        told = json.loads(capsys.readouterr().out)
        assert told["first"]["node"] == victim
        assert len(told["first"]["nodes"]) == (1 if kind == "weight" else 2)
        path = told["first"]["written"]
        again = ["parity", path, path.replace(".onnx", ".npz"), "-d", "cpu", "-o", str(tmp_path)]
        assert main(again) == 1
        assert (
            f"the first node that differs from onnxruntime is {victim}" in capsys.readouterr().out
        )
    assert main(again) == 0
    assert "agree with onnxruntime" in capsys.readouterr().out
    with np.load(path.replace(".onnx", ".npz")) as held:
        inputs = {name: held[name] for name in held.files}
    assert expected(Path(path).read_bytes(), inputs).keys() == {"v1" if kind == "fused" else "v2"}


def test_another_shape_than_the_reference_has_is_a_fault():
    moved = graph_of([node("Transpose", "x", "y", perm=[0, 1, 3, 2])], {"x": sample(1, 4, 2, 6)})
    with fault("attribute", "Transpose", "Transpose of y", None):
        found = ml.parity(moved, devices=["cpu"])
    assert found.first.row.deviation.note == "(1, 4, 2, 6), not (1, 4, 6, 2)"


def test_what_the_engine_refuses_is_told_and_is_no_difference():
    nodes = [
        node("Conv", "x w bias", "a", **WINDOW),
        node("Mean", "a a", "b"),
        node("Det", "b", "y"),
    ]
    found = ml.parity(graph_of(nodes, {"x": sample(*SHAPE)}, CONSTANTS), devices=["cpu"])
    assert found
    assert any("is not computed on cpu" in line for line in found.lines())


def test_inputs_that_do_not_fit_are_refused(tmp_path):
    data = mobile(1)[0]
    with pytest.raises(errors.ArgumentError, match="takes x, but z was given"):
        ml.parity(data, {"z": sample(*SHAPE)})
    with pytest.raises(errors.ShapeError, match="resize it"):
        ml.parity(data, {"x": sample(1, 4, 6, 7)})
    (tmp_path / "x.npz").write_bytes(b"nothing")
    (tmp_path / "m.onnx").write_bytes(data)
    assert main(["parity", str(tmp_path / "m.onnx"), str(tmp_path / "x.npz")]) == 1
