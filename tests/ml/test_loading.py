"""Models by their names, from files and from bytes."""

import sys
from pathlib import Path

import numpy as np
import pytest
from ml.small_models import FLOAT, UINT8, doubling, model_of
from onnx import helper

from dala import errors, ml


def looking_like(shape=(1, 3, 224, 224), kind=FLOAT) -> bytes:
    nodes = [
        helper.make_node("Cast", ["input"], ["numbers"], to=FLOAT),
        helper.make_node("GlobalAveragePool", ["numbers"], ["mean"]),
    ]
    return model_of(nodes, [("input", kind, shape)], [("mean", FLOAT, (1, shape[1], 1, 1))])


@pytest.mark.parametrize("as_path", [str, Path])
def test_a_file_is_loaded_as_it_declares_itself(tmp_path, as_path):
    (tmp_path / "twice.onnx").write_bytes(doubling())
    model = ml.gpu.load_model(as_path(tmp_path / "twice.onnx"))
    assert model.name == "twice"
    assert repr(model) == "<Model twice(x: f32 (1, 4))>"
    assert ml.gpu.predict(model, np.ones((1, 4), np.float32)).tolist() == [[2.0] * 4]


def test_a_file_without_a_task_says_what_to_do_with_an_image():
    model = ml.gpu.load_model(doubling())
    with pytest.raises(errors.ArgumentError, match=r"like=.*predict"):
        model(np.zeros((4, 4, 3), np.uint8))


def test_a_name_that_is_unknown_is_refused_with_near_ones():
    with pytest.raises(errors.UnknownModelError, match="'mobilenet_v2'"):
        ml.gpu.load_model("mobilenet_v3")
    with pytest.raises(errors.UnknownModelError, match="'posenet'"):
        ml.gpu.load_model(doubling(), like="poznet")
    with pytest.raises(errors.UnknownModelError):
        ml.gpu.model_info("poznet")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(errors.FileError, match=r"gone\.onnx"):
        ml.gpu.load_model(tmp_path / "gone.onnx")


def test_a_name_too_long_for_any_file_is_refused_as_a_name_or_as_a_file():
    with pytest.raises(errors.UnknownModelError):
        ml.gpu.load_model("m" * 5000)
    with pytest.raises(errors.FileError):
        ml.gpu.load_model("models/" + "m" * 5000)


def test_what_is_no_source_is_refused():
    with pytest.raises(errors.ArgumentError, match="not int"):
        ml.gpu.load_model(3)


def test_a_name_takes_no_like():
    with pytest.raises(errors.ArgumentError, match="like='posenet' is for files"):
        ml.gpu.load_model("mobilenet_v2", like="posenet")


def test_a_file_may_be_fed_as_a_model_of_the_catalogue():
    model = ml.gpu.load_model(looking_like(), like="mobilenet_v2")
    info = ml.gpu.model_info(model)
    assert (info["like"], info["task"], info["name"]) == ("mobilenet_v2", "classification", "model")


@pytest.mark.parametrize(("shape", "kind"), [((1, 4, 128, 128), FLOAT), ((1, 3, 224, 224), UINT8)])
def test_a_file_that_cannot_be_fed_so_is_refused(shape, kind):
    with pytest.raises(errors.ModelError, match=r"not like mobilenet_v2.*f32 \(1, 3, 224, 224\)"):
        ml.gpu.load_model(looking_like(shape, kind), like="mobilenet_v2")


def test_without_onnx_runtime_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(errors.ModelError, match=r"pip install 'dala-gpu\[ml\]'"):
        ml.gpu.load_model(doubling(), engine="onnxruntime")


def test_tensors_may_lie_in_a_file_beside_the_model(tmp_path):
    import onnx

    made = onnx.load_from_string(doubling((1, 300)))
    made.graph.initializer[0].CopyFrom(
        onnx.numpy_helper.from_array(np.full((1, 300), 2.0, np.float32), "two")
    )
    where = tmp_path / "twice.onnx"
    onnx.save(made, where, save_as_external_data=True, location="twice.bin", size_threshold=0)
    assert (tmp_path / "twice.bin").exists()
    x = np.ones((1, 300), np.float32)
    assert ml.gpu.predict(ml.gpu.load_model(where), x)[0, 299] == 2.0
