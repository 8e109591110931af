"""Tensors in files beside a model: opened once, by no link, and read from nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from ml.altered_models import adding, function, graph, in_file, model, node, of_nodes
from onnx import TensorProto

from dala import errors, ml
from dala.gpu import compute
from dala.ml.models.model import Model
from dala.ml.onnx import external_data
from dala.ml.onnx.external_files import Outside
from dala.ml.onnx.file import check_onnx, checked_model

X = np.zeros((1, 4), np.float32)
WEIGHTS = np.array([1, 2, 3, 4], np.float32)
OTHERS = WEIGHTS + 100


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A model that adds what is in w.bin, which lies beside it."""
    found = tmp_path / "models/m.onnx"
    found.parent.mkdir()
    found.write_bytes(adding(in_file("w", [4], location="w.bin", offset=16)))
    (found.parent / "w.bin").write_bytes(bytes(16) + WEIGHTS.tobytes())
    return found


def branching(*, weights: TensorProto) -> bytes:
    """A model that adds what a branch has as an initialiser, or the other as a constant."""
    constant = node("Constant", "", "v", value=weights)
    branches = {
        "then_branch": graph([node("Add", "x w", "b")], "", "b", [weights]),
        "else_branch": graph([constant, node("Add", "x v", "b")], "", "b"),
    }
    condition = [
        node("ReduceMax", "x", "r", keepdims=0),
        node("Cast", "r", "c", to=TensorProto.BOOL),
    ]
    return of_nodes(*condition, node("If", "c", "y", **branches))


def calling(*, weights: TensorProto) -> bytes:
    """A model that adds what a function of its own has as a constant."""
    own = function("Own", node("Constant", "", "v", value=weights), node("Add", "a v", "b"))
    return of_nodes(node("Own", "x", "y", domain="own"), domains=["own"], functions=[own])


@pytest.mark.parametrize("engine", ["onnxruntime", "dala"])
def test_a_model_computes_with_what_lies_beside_it(device, path, engine):
    loaded = ml.gpu.load_model(path, engine=engine)
    assert ml.gpu.predict(loaded, X).tolist() == [[1, 2, 3, 4]]


@pytest.mark.parametrize("made", [branching, calling])
def test_tensors_of_branches_and_functions_come_from_the_models_folder(path, monkeypatch, made):
    weights = in_file("w", [4], location="w.bin", offset=16)
    path.write_bytes(made(weights=weights))
    decoy = path.parents[1] / "elsewhere"
    decoy.mkdir()
    (decoy / "w.bin").write_bytes(bytes(16) + OTHERS.tobytes())
    monkeypatch.chdir(decoy)
    loaded = ml.gpu.load_model(path)
    for x in (X, X + 1):  # the one branch, and the other
        np.testing.assert_array_equal(ml.gpu.predict(loaded, x), x + WEIGHTS)


def test_what_was_checked_is_what_is_loaded_whatever_happens_to_the_name(path):
    secret = path.parents[1] / "secret.bin"
    secret.write_bytes(bytes(16) + OTHERS.tobytes())
    found = checked_model(path)
    (path.parent / "w.bin").unlink()
    (path.parent / "w.bin").symlink_to(secret)
    for engine in ("onnxruntime", "dala"):
        model = Model("m", found, None, engine)
        assert model.outputs([X])["y"].tolist() == [[1, 2, 3, 4]]


def test_a_file_that_is_put_in_the_place_of_another_while_it_is_checked_is_not_read(path):
    with Outside(path.parent) as outside:
        assert outside.size_bytes("w", "w.bin") == 32
        (path.parent / "w.bin").unlink()
        (path.parent / "w.bin").write_bytes(bytes(16) + OTHERS.tobytes())
        assert outside.read("w", "w.bin", 16, 16) == WEIGHTS.tobytes()


def test_a_file_that_becomes_shorter_after_it_was_checked_is_refused(path):
    with Outside(path.parent) as outside:
        outside.size_bytes("w", "w.bin")
        os.truncate(path.parent / "w.bin", 20)
        with pytest.raises(errors.ModelError, match="shorter"):
            outside.read("w", "w.bin", 16, 16)


@pytest.mark.parametrize("read", [check_onnx, ml.gpu.load_model])
def test_a_file_with_a_second_name_elsewhere_is_refused(path, read):
    secret = path.parents[1] / "secret.bin"
    secret.write_bytes(bytes(32))
    (path.parent / "w.bin").unlink()
    (path.parent / "w.bin").hardlink_to(secret)
    with pytest.raises(errors.ModelError, match=r"w\.bin, which has 2 names \(hard links\)"):
        read(path)
    secret.unlink()
    read(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
@pytest.mark.parametrize("read", [check_onnx, ml.gpu.load_model])
def test_a_pipe_is_refused_and_not_waited_for(path, read):
    (path.parent / "w.bin").unlink()
    os.mkfifo(path.parent / "w.bin")
    with pytest.raises(errors.ModelError, match="no plain file"):
        read(path)


def test_a_folder_that_is_a_link_is_refused_however_deep(path):
    inner = path.parent / "a/b"
    inner.mkdir(parents=True)
    (path.parent / "w.bin").rename(inner / "w.bin")
    path.write_bytes(adding(in_file("w", [4], location="a/b/w.bin", offset=16)))
    assert ml.gpu.predict(ml.gpu.load_model(path), X).tolist() == [[1, 2, 3, 4]]
    moved = path.parents[1] / "b"
    inner.rename(moved)
    inner.symlink_to(moved)
    with pytest.raises(errors.ModelError, match="b is a symbolic link"):
        check_onnx(path)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are not listed here")
@pytest.mark.parametrize("engine", ["onnxruntime", "dala"])
def test_links_are_followed_within_a_folder_that_is_named_for_it(path, engine):
    # As the hub of Hugging Face keeps files: by links to where their contents are.
    hub = path.parent.parent
    (hub / "blobs").mkdir()
    for number, name in enumerate(("m.onnx", "w.bin")):
        (path.parent / name).rename(hub / f"blobs/{number}")
        (path.parent / name).symlink_to(f"../blobs/{number}")
    with pytest.raises(errors.ModelError, match=r"w\.bin is a symbolic link.*links_within="):
        ml.gpu.load_model(path, engine=engine)
    loaded = ml.gpu.load_model(path, links_within=hub, engine=engine)
    assert ml.gpu.predict(loaded, X).tolist() == [[1, 2, 3, 4]]
    with pytest.raises(errors.ModelError, match="links are followed only to what lies in"):
        ml.gpu.load_model(path, links_within=path.parent, engine=engine)


def test_no_file_stays_open(path):
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    loaded = ml.gpu.load_model(path)
    check_onnx(path)
    (path.parent / "w.bin").write_bytes(bytes(4))
    with pytest.raises(errors.ModelError):
        check_onnx(path)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    assert loaded.name == "m"


def test_tensors_in_the_model_say_nothing_of_files_that_they_are_not_in(path):
    weights = TensorProto(name="w", dims=[4], data_type=1, raw_data=WEIGHTS.tobytes())
    weights.external_data.add(key="location", value="/etc/passwd")
    path.write_bytes(adding(weights))
    assert ml.gpu.predict(ml.gpu.load_model(path), X).tolist() == [[1, 2, 3, 4]]


def test_values_in_the_model_do_not_count_where_it_says_that_they_are_in_a_file(path):
    weights = in_file("w", [4], location="w.bin", offset=16)
    weights.raw_data = OTHERS.tobytes()
    path.write_bytes(adding(weights))
    for engine in ("onnxruntime", "dala"):
        loaded = ml.gpu.load_model(path, engine=engine)
        assert ml.gpu.predict(loaded, X).tolist() == [[1, 2, 3, 4]]


def test_more_than_a_model_holds_in_its_branches_is_refused(path, monkeypatch):
    path.write_bytes(calling(weights=in_file("w", [4], location="w.bin", offset=16)))
    monkeypatch.setattr(external_data, "LARGEST_MODEL_BYTES", path.stat().st_size)
    with pytest.raises(errors.LimitError, match="16 bytes in other files for tensors of its"):
        ml.gpu.load_model(path)


def test_many_tensors_are_each_read_from_where_they_are(path):
    given = [in_file(f"w{i}", [4], location="w.bin", offset=16 * i) for i in range(8)]
    nodes = [node("Add", "x w0", "s0")]
    nodes += [node("Add", f"s{i - 1} w{i}", f"s{i}" if i < 7 else "y") for i in range(1, 8)]
    path.write_bytes(model(graph(nodes, initializers=given)))
    values = np.random.default_rng(3).standard_normal((8, 4)).astype(np.float32)
    (path.parent / "w.bin").write_bytes(values.tobytes())
    with compute.device("cpu"):
        for engine in ("onnxruntime", "dala"):
            got = ml.gpu.predict(ml.gpu.load_model(path, engine=engine), X)
            np.testing.assert_allclose(got[0], values.sum(axis=0), rtol=1e-5, atol=1e-5)
