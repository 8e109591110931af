"""The model of a filter: kept from frame to frame, loaded anew when its file is another."""

import os

import numpy as np
import pytest
from ml.small_models import doubling

from dala import errors, ml
from dala.images.frames import new_buffer
from dala.kernels.image.preprocess import preprocess
from dala.ml.catalog.entries import find
from dala.ml.models.choice import chosen_model
from dala.ml.models.recognition import preparation
from dala.runtime.buffers.access import read
from dala.runtime.buffers.buffer import from_numpy


def test_a_file_is_loaded_once_until_it_changes(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(doubling((1, 4)))
    first = chosen_model("filter", path)
    assert chosen_model("filter", path) is first
    path.write_bytes(doubling((1, 5)))
    os.utime(path, ns=(1, 1))  # the clock of a file system may be coarse
    assert chosen_model("filter", path).takes[0].shape == (1, 5)


def test_a_model_that_is_loaded_is_itself_and_like_no_other():
    model = ml.gpu.load_model(doubling())
    assert chosen_model("filter", model) is model
    with pytest.raises(errors.ArgumentError, match="like='yolo_v5' is for files"):
        chosen_model("filter", model, "yolo_v5")


def test_what_names_no_model_is_refused():
    with pytest.raises(errors.ArgumentError, match="filter: model is a name such as"):
        chosen_model("filter", 3)


def test_the_gray_around_a_letterbox_is_that_of_the_catalogue(device):
    entry = find("yolo_v5")
    tensor = new_buffer((1, 3, 8, 8), "f32")
    wide = from_numpy(np.zeros((4, 8, 3), np.uint8))
    preprocess.run([wide], tensor, {**preparation(entry), "layout": "nchw"})
    assert read(tensor)[0, 0, :, 0] == pytest.approx([114 / 255] * 2 + [0] * 4 + [114 / 255] * 2)
