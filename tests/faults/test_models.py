"""Faults 37 to 40: models that are no models, point elsewhere, claim too much, or cannot run."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from ml.altered_models import adding, function, graph, in_file, model, node, of_nodes, tensor
from ml.small_models import doubling
from onnx import TensorProto, load_from_string

from dala import errors, ml
from dala.ml.onnx.file import check_onnx


@pytest.fixture(autouse=True)
def the_next_good_model_works(device):
    """After a fault, a good model is loaded and run on the device."""
    yield
    good = ml.gpu.load_model(doubling())
    assert ml.gpu.predict(good, np.ones((1, 4), np.float32)).tolist() == [[2.0] * 4]


def refused(path, kind, text):
    """Every way in refuses the file; what it says."""
    for way in (check_onnx, ml.gpu.load_model):
        with pytest.raises(kind, match=text) as caught:
            way(path)
        assert path.name in str(caught.value)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "bad.onnx"


# -- 37 ------------------------------------------------------------------------------------------


class Harmful:
    """What runs a command when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def archive_of(name: str, data: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr(name, data)
    return stream.getvalue()


@pytest.mark.parametrize("suffix", [".onnx", ".pt", ".pkl", ""])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_37_a_pickle_is_refused_by_its_content(tmp_path, suffix, protocol):
    path = tmp_path / f"bad{suffix}"
    path.write_bytes(pickle.dumps(Harmful(tmp_path / "ran"), protocol))
    refused(path, errors.ModelError, "pickle.*nothing is unpickled: export")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("value", [{"w": [1.0]}, [1, 2], (1, 2)])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_37_a_pickle_of_plain_values_is_refused_too(path, value, protocol):
    path.write_bytes(pickle.dumps(value, protocol))
    refused(path, errors.ModelError, "pickle")


@pytest.mark.parametrize("suffix", [".onnx", ".pt", ".pth"])
def test_37_an_archive_of_pytorch_is_refused_by_its_content(tmp_path, suffix):
    path = tmp_path / f"bad{suffix}"
    path.write_bytes(archive_of("archive/data.pkl", pickle.dumps(Harmful(tmp_path / "ran"), 2)))
    refused(path, errors.ModelError, r"archive of PyTorch.*export the model to ONNX")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (archive_of("a.txt", b""), "zip archive"),
        (b"\x1c\x00\x00\x00TFL3" + bytes(40), "TensorFlow Lite"),
        (b"\x20\x00\x00\x00ORTM" + bytes(40), r"\.ort"),
        (b"\x89HDF\r\n\x1a\n" + bytes(40), "HDF5"),
        (b"\x40" + bytes(7) + b'{"w": {}}', "safetensors"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        (b"<!DOCTYPE html><html>", "HTML"),
        (json.dumps({"format": "graph-model"}).encode(), "TensorFlow.js"),
        (b"\x93NUMPY\x01\x00", "NumPy"),
        (b"some words", "no ONNX file"),
        (bytes(100), "no ONNX file"),
        (b"\xff" * 100, "no ONNX file"),
        (b"", "empty"),
    ],
)
def test_37_what_is_no_onnx_is_refused_and_named(path, data, text):
    path.write_bytes(data)
    refused(path, errors.ModelError, text)


# -- 38 ------------------------------------------------------------------------------------------


@pytest.fixture
def secret(tmp_path_factory):
    found = tmp_path_factory.mktemp("elsewhere") / "secret.bin"
    found.write_bytes(bytes(16))
    return found


@pytest.mark.parametrize(
    "location", ["../{0}/secret.bin", "a/../../{0}/secret.bin", "..\\secret.bin"]
)
def test_38_external_data_above_the_folder_is_refused(path, secret, location):
    (path.parent / "a").mkdir()
    path.write_bytes(adding(in_file("w", [4], location=location.format(secret.parent.name))))
    refused(path, errors.ModelError, r"'w'.*only files in the model's own folder")


@pytest.mark.parametrize("location", ["{0}", "C:\\secret.bin", "\\\\host\\secret.bin", "~/secret"])
def test_38_external_data_at_an_absolute_path_is_refused(path, secret, location):
    path.write_bytes(adding(in_file("w", [4], location=location.format(secret))))
    refused(path, errors.ModelError, "only files in the model's own folder")


def test_38_external_data_through_a_link_is_refused(path, secret):
    (path.parent / "w.bin").symlink_to(secret)
    path.write_bytes(adding(in_file("w", [4], location="w.bin")))
    refused(path, errors.ModelError, r"w\.bin is a symbolic link")


@pytest.mark.skipif(os.name == "nt", reason="a backslash separates folders there")
def test_38_external_data_through_a_link_with_a_backslash_in_its_name_is_refused(path, secret):
    (path.parent / "a").mkdir()
    (path.parent / "a/w.bin").write_bytes(bytes(16))
    (path.parent / "a\\w.bin").symlink_to(secret)
    path.write_bytes(adding(in_file("w", [4], location="a\\w.bin")))
    refused(path, errors.ModelError, r"is a symbolic link")


def test_38_external_data_in_a_linked_folder_is_refused(path, secret):
    (path.parent / "inner").symlink_to(secret.parent)
    path.write_bytes(adding(in_file("w", [4], location="inner/secret.bin")))
    refused(path, errors.ModelError, r"inner is a symbolic link")


def test_38_external_data_of_a_constant_in_a_branch_is_refused(path, secret):
    constant = node("Constant", "", "b", "hidden", value=in_file("v", [4], location=str(secret)))
    branch = graph([constant], inputs="", outputs="b")
    nodes = [
        node("Cast", "x", "c", to=TensorProto.BOOL),
        node("If", "c", "y", then_branch=branch, else_branch=branch),
    ]
    path.write_bytes(of_nodes(*nodes))
    refused(path, errors.ModelError, r"node 'hidden'.*only files in the model's own folder")


def test_38_external_data_of_a_function_is_refused(path, secret):
    constant = node("Constant", "", "v", value=in_file("v", [4], location=str(secret)))
    own = function("Own", constant, node("Add", "a v", "b"))
    call = node("Own", "x", "y", domain="own")
    path.write_bytes(of_nodes(call, domains=["own"], functions=[own]))
    refused(path, errors.ModelError, "only files in the model's own folder")


# -- 39 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dims", "text"),
    [
        ([2_000_000_000], r"'w' claims \(2000000000,\) of f32, 8,000,000,000 bytes.*has 0"),
        ([1 << 20, 1 << 20], "4,398,046,511,104 bytes"),
        ([1 << 40, 1 << 40], "which no memory holds"),
        ([0, 1 << 62], "which no memory holds"),
        ([(1 << 63) - 1], "which no memory holds"),
        ([-1], "cannot be negative"),
        ([-4, -1], "cannot be negative"),
        ([1] * 40, "40 dimensions"),
        ([5], "20 bytes, and the file has 0"),
    ],
)
def test_39_a_tensor_without_the_bytes_behind_it_is_refused(path, dims, text):
    path.write_bytes(adding(tensor("w", dims)))
    refused(path, (errors.ModelError, errors.LimitError), text)


def test_39_values_that_are_not_raw_are_counted_too(path):
    weights = TensorProto(name="w", dims=[2_000_000_000], data_type=1, float_data=[1.0])
    path.write_bytes(adding(weights))
    refused(path, errors.ModelError, "2,000,000,000 values, and the file has 1")


def test_39_a_constant_that_claims_too_much_is_refused(path):
    constant = node("Constant", "", "w", "large", value=tensor("v", [1 << 31]))
    path.write_bytes(of_nodes(constant, node("Add", "x w", "y")))
    refused(path, errors.ModelError, "node 'large'.*8,589,934,592 bytes")


def test_39_external_data_that_claims_too_much_is_refused(path):
    (path.parent / "w.bin").write_bytes(bytes(16))
    path.write_bytes(adding(in_file("w", [1 << 40], location="w.bin")))
    refused(path, errors.ModelError, r"4,398,046,511,104 bytes, from byte 0 .*which has 16")


def test_39_external_data_with_holes_is_refused_by_its_sum(path):
    with (path.parent / "w.bin").open("wb") as file:
        file.truncate(1 << 33)
    weights = [in_file(f"w{i}", [1 << 31], location="w.bin") for i in range(3)]
    path.write_bytes(model(graph([node("Add", "x w0", "y")], initializers=weights)))
    refused(path, errors.LimitError, "25,769,803,776 bytes in other files")


def test_39_an_input_that_no_memory_holds_is_refused(path):
    path.write_bytes(doubling((1 << 20, 1 << 20)))
    refused(path, errors.LimitError, r"input 'x' .*1048576, 1048576")


def test_39_a_field_that_claims_terabytes_is_refused(path):
    path.write_bytes(b"\x08\x08\x3a\x80\x80\x80\x80\x80\x80\x01" + bytes(8))
    refused(path, errors.ModelError, r"claims 4,398,046,511,104 bytes, and 8 are left")


# -- 40 ------------------------------------------------------------------------------------------

LOOP = [node("Add", "x b", "a", "first"), node("Relu", "a", "b", "second"), node("Neg", "b", "y")]


def branching(*nodes):
    branch = graph(nodes, inputs="", outputs="b")
    return [
        node("Cast", "x", "c", to=TensorProto.BOOL),
        node("If", "c", "y", "fork", then_branch=branch, else_branch=branch),
    ]


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        (LOOP, r"node 'first' \(Add\) and node 'second' \(Relu\) wait for each other in a cycle"),
        ([node("Add", "x y", "y", "self")], r"node 'self' \(Add\) waits for itself"),
        (
            branching(node("Neg", "x", "t"), node("Add", "y t", "b")),
            "node 'fork' .If. waits for itself",
        ),
        (branching(*LOOP[:2]), "_branch of node 'fork'.*'first' .*cycle of 2"),
        ([node("Blur", "x", "y", "what")], r"node 'what' \(Blur\).* has no operator 'Blur'"),
        ([node("Upsample", "x x", "y", "old")], r"node 'old'.* has no operator 'Upsample'"),
        ([node("Relu", "x", "y", "what", domain="com.x")], "node 'what' .*'com.x'.* not known"),
        (branching(node("Blur", "x", "b", "what")), "_branch of node 'fork' .*node 'what'"),
        ([node("Relu", "z", "y", "lost")], r"node 'lost' \(Relu\) reads 'z', which no node makes"),
        (branching(node("Relu", "z", "b", "lost")), "node 'fork' .*node 'lost' .*reads 'z'"),
        ([node("Relu", "x", "a")], "gives out 'y', which no node makes"),
        ([node("Add", "x", "y", "lone")], "node 'lone' .*has 1 inputs; Add has 2"),
        ([node("Add", "x _", "y", "lone")], "node 'lone' .*lacks its input 'B'"),
        ([node("Relu", "x", "y", "a"), node("Neg", "x", "y", "b")], "'b' .*makes 'y'.*node 'a'"),
        ([node("Relu", "x", "x", "again")], "node 'again' .*makes 'x', which is given already"),
        ([node("Relu", "z", "y")], "the unnamed node .Relu. that makes 'y' reads 'z'"),
    ],
)
def test_40_a_graph_that_cannot_run_is_refused_with_its_node(path, nodes, text):
    path.write_bytes(of_nodes(*nodes))
    refused(path, errors.ModelError, text)


def test_40_a_function_that_calls_itself_is_refused(path):
    own = [
        function("F", node("G", "a", "b", domain="own")),
        function("G", node("F", "a", "b", domain="own")),
    ]
    call = node("F", "x", "y", domain="own")
    path.write_bytes(of_nodes(call, domains=["own"], functions=own))
    refused(path, errors.ModelError, "function 'F' calls itself")


def test_40_an_unknown_operator_in_a_function_is_refused(path):
    own = function("F", node("Blur", "a", "b", "what"))
    path.write_bytes(of_nodes(node("F", "x", "y", domain="own"), domains=["own"], functions=[own]))
    refused(path, errors.ModelError, "function 'F': node 'what'")


def test_40_two_outputs_of_one_name_are_refused(path):
    made = load_from_string(of_nodes(node("Relu", "x", "y")))
    made.graph.output.append(made.graph.output[0])
    path.write_bytes(made.SerializeToString())
    refused(path, errors.ModelError, "two outputs 'y'")
