"""Graph models of TensorFlow.js, loaded from their files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from ml.importers.tfjs_graphs import document, node, placeholder

from dala import errors, ml

FACTORS = np.array([2, 3, 4], np.float32)


def write(folder, shape=(1, 3)):
    """A model that multiplies three numbers, in a JSON file and two shards."""
    nodes = [placeholder("x", shape), node("y", "Mul", "x", "factors")]
    topology, shard = document(nodes, {"factors": FACTORS})
    topology["weightsManifest"][0]["paths"] = ["a.bin", "b.bin"]
    (folder / "a.bin").write_bytes(shard[:8])
    (folder / "b.bin").write_bytes(shard[8:])
    (folder / "model.json").write_text(json.dumps(topology), encoding="utf-8")
    return folder / "model.json"


def test_a_json_file_and_its_shards_are_a_model(device, tmp_path):
    model = ml.gpu.load_model(write(tmp_path), engine="dala")
    assert model.name == "model"
    made = ml.gpu.predict(model, np.ones((1, 3), np.float32))
    np.testing.assert_array_equal(made, FACTORS[None])


def test_what_is_open_is_fixed_by_shapes(tmp_path):
    path = write(tmp_path, (-1, -1))
    with pytest.raises(errors.ModelError, match="x"):
        ml.gpu.load_model(path)
    assert ml.gpu.load_model(path, shapes={"x:0": (1, 3)}).takes[0].shape == (1, 3)
    with pytest.raises(errors.ArgumentError, match=r"model\.json"):
        ml.gpu.load_model(b"", shapes={})


def test_shards_elsewhere_and_what_is_no_model_are_refused(tmp_path):
    path = write(tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("a.bin", "../a.bin"), encoding="utf-8")
    with pytest.raises(errors.ModelError, match="only files in the model's own folder"):
        ml.gpu.load_model(path)
    for content, said in (("{", "is no JSON"), ("[]", "that is an object")):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(errors.ModelError, match=said):
            ml.gpu.load_model(path)
    with pytest.raises(errors.FileError, match="cannot be read"):
        ml.gpu.load_model(tmp_path / "none.json")
