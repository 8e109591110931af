"""What cannot be saved as a document, and documents that cannot be loaded."""

from __future__ import annotations

import copy

import pytest
from runtime.documents import WGSL, document, simple, zeros

from dala import errors
from dala.gpu import compute
from dala.runtime.pipelines.file import from_document

# -- mistakes when saving --------------------------------------------------------------------------


def test_buffers_need_one_name_each(tmp_path):
    pipeline, buffers = simple()
    x, out = buffers["source"], buffers["result"]
    wrong = [
        ({"source": x}, r"stage 1 \(relu\): <Buffer f32 \(3,\) .*has no name"),
        ({**buffers, "again": x}, "two names for one buffer"),
        ({**buffers, "other": zeros((3,))}, "'other', which no stage uses"),
        ({"source": 5, "result": out}, "mapping of names to buffers"),
        ([x, out], "mapping of names to buffers"),
    ]
    for given, said in wrong:
        with pytest.raises(errors.ArgumentError, match=said):
            pipeline.save(tmp_path / "filter.json", given)
    assert list(tmp_path.iterdir()) == []


def test_a_parameter_that_cannot_be_written_is_refused():
    x, out = zeros((3,)), zeros((3,))
    pipeline = compute.pipeline().add(kernel="softmax", inputs=[x], output=out)
    pipeline._stages[0].params["axis"] = [0, {1, 2}]
    with pytest.raises(errors.ArgumentError, match=r"stage 0 \(softmax\): params.axis\[1\] is set"):
        pipeline.to_dict({"x": x, "out": out})


def test_toml_is_not_written(tmp_path):
    pipeline, buffers = simple()
    with pytest.raises(errors.ArgumentError, match="can only be read"):
        pipeline.save(tmp_path / "filter.toml", buffers)


def test_files_that_cannot_be_written_or_read_are_refused(tmp_path):
    pipeline, buffers = simple()
    with pytest.raises(errors.FileError, match="cannot be written"):
        pipeline.save(tmp_path / "missing" / "filter.json", buffers)
    with pytest.raises(errors.FileError, match="cannot be read"):
        compute.load_pipeline(tmp_path / "missing.json", buffers)


def test_a_freed_pipeline_is_not_saved():
    pipeline, buffers = simple()
    pipeline.free()
    with pytest.raises(errors.FreedError):
        pipeline.to_dict(buffers)


# -- mistakes when loading -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", b"{"),
        ("b.json", b"\xff\xfe{}"),
        ("c.json", b"[" * 100_000),
        ("d.toml", b"version = "),
        ("e.json", b""),
        ("f.json", b"cos\nsystem\n(S'true'\ntR."),
        (
            "g.json",
            b'{"version": 1, "stages": [{"params": {"a": ' + b"[" * 900 + b"]" * 900 + b"}}]}",
        ),
    ],
)
def test_what_is_not_a_document_is_refused(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(errors.ArgumentError, match=str(path)):
        compute.load_pipeline(path)


def replaced(made, path, value):
    """The document with another value at a path; None takes it out."""
    made = copy.deepcopy(made)
    *outer, last = path
    there = made
    for step in outer:
        there = there[step]
    if value is None:
        del there[last]
    else:
        there[last] = value
    return made


KIND = {"shape": [3], "dtype": "f32"}


@pytest.mark.parametrize(
    ("path", "value", "error", "said"),
    [
        (["version"], 3, errors.ArgumentError, r"\$\.version: 3 is not known here: 1 and 2"),
        (["version"], True, errors.ArgumentError, r"\$\.version: True is not known"),
        (["version"], None, errors.ArgumentError, r"\$\.version: None is not known"),
        (["extra key"], 1, errors.ArgumentError, r'\$\["extra key"\] is not one of'),
        (["fuse"], "yes", errors.ArgumentError, r"\$\.fuse: true or false"),
        (["buffers"], [], errors.ArgumentError, r"\$\.buffers: a mapping is needed, not \[\]"),
        (["buffers", "source"], None, errors.ArgumentError, "'source', which no stage uses"),
        (["buffers", "third"], KIND, errors.ArgumentError, r"\$\.buffers\.third: no such buffer"),
        (
            ["buffers", "source", "shape"],
            [4],
            errors.ShapeError,
            r"\$\.buffers\.source\.shape: .*\[4\]",
        ),
        (
            ["buffers", "source", "dtype"],
            "s32",
            errors.DtypeError,
            r"\$\.buffers\.source\.dtype: .*s32",
        ),
        (
            ["buffers", "source", "dtype"],
            "f99",
            errors.DtypeError,
            r"\$\.buffers\.source\.dtype: .*f99",
        ),
        (
            ["buffers", "source", "size"],
            1,
            errors.ArgumentError,
            r"\$\.buffers\.source: shape and dtype",
        ),
        (
            ["scratch", "source"],
            KIND,
            errors.ArgumentError,
            r"\$\.scratch\.source: \$\.buffers has",
        ),
        (["scratch", "scratch0", "shape"], [-1], errors.ShapeError, r"\$\.scratch\.scratch0: "),
        (
            ["scratch", "scratch0", "shape"],
            [2**62, 8],
            errors.LimitError,
            r"\$\.scratch\.scratch0: ",
        ),
        (["scratch", "scratch0", "shape"], [4], errors.ShapeError, r"\$\.stages\[0\]: stage 0"),
        (
            ["scratch", "scratch0", "shape"],
            3,
            errors.ArgumentError,
            r"\$\.scratch\.scratch0\.shape: a list",
        ),
        (["kernels"], 5, errors.ArgumentError, r"\$\.kernels: a mapping"),
        (["kernels", "k"], 5, errors.ArgumentError, r"\$\.kernels\.k: .*mapping, not int"),
        (
            ["kernels", ""],
            {"source": "def f(x): return x"},
            errors.ArgumentError,
            r'\$\.kernels\[""\]',
        ),
        (["kernels", "k"], {}, errors.ArgumentError, r"\$\.kernels\.k: .*`source`"),
        (["kernels", "k"], {"source": "x", "y": 1}, errors.ArgumentError, r"\$\.kernels\.k: .*'y'"),
        (
            ["kernels", "k"],
            {"language": "c"},
            errors.ArgumentError,
            r"\$\.kernels\.k: language 'c'",
        ),
        (
            ["kernels", "k"],
            {"language": []},
            errors.ArgumentError,
            r"\$\.kernels\.k: language \[\]",
        ),
        (
            ["kernels", "k"],
            {"source": "def k(x): return x", "border": "none"},
            errors.ArgumentError,
            r"\$\.kernels\.k: border 'none'",
        ),
        (
            ["kernels", "k"],
            {"source": "import os\nos.abort()"},
            errors.KernelSyntaxError,
            r"\$\.kernels\.k: ",
        ),
        (
            ["kernels", "k"],
            {"source": "def k(x): return open(x)"},
            errors.KernelSyntaxError,
            r"\$\.kernels\.k: ",
        ),
        (
            ["kernels", "k"],
            {"language": "wgsl", "source": "fn main() {}"},
            errors.KernelSyntaxError,
            r"\$\.kernels\.k: ",
        ),
        (
            ["kernels", "k"],
            {"language": "wgsl", "source": WGSL, "defaults": {"a": "x"}},
            errors.ArgumentError,
            r"\$\.kernels\.k: `defaults`",
        ),
        (
            ["kernels", "k"],
            {"language": "wgsl", "source": WGSL, "defaults": 5},
            errors.ArgumentError,
            r"\$\.kernels\.k: `defaults`",
        ),
        (
            ["kernels", "k"],
            {"language": "wgsl", "source": WGSL, "groups": [0]},
            errors.ArgumentError,
            r"\$\.kernels\.k: .*groups",
        ),
        (["stages"], None, errors.ArgumentError, r"\$\.stages: a list is needed, not nothing"),
        (["stages"], {}, errors.ArgumentError, r"\$\.stages: a list"),
        (["stages", 1], "relu", errors.ArgumentError, r"\$\.stages\[1\]: a mapping"),
        (["stages", 1, "op"], "exec", errors.ArgumentError, r"\$\.stages\[1\]: .*'exec'"),
        (["stages", 1, "op"], [], errors.ArgumentError, r"\$\.stages\[1\]: "),
        (["stages", 1, "name"], 5, errors.ArgumentError, r"\$\.stages\[1\]\.name: a text"),
        (["stages", 1, "kernel"], 5, errors.ArgumentError, r"\$\.stages\[1\]\.kernel: a text"),
        (
            ["stages", 1, "kernel"],
            "rellu",
            errors.UnknownKernelError,
            r"\$\.stages\[1\]\.kernel: .*'rellu'. Did you mean 'relu'",
        ),
        (["stages", 1, "inputs"], "x", errors.ArgumentError, r"\$\.stages\[1\]\.inputs: a list"),
        (
            ["stages", 1, "inputs", 0],
            5,
            errors.ArgumentError,
            r"\$\.stages\[1\]\.inputs\[0\]: a text",
        ),
        (
            ["stages", 1, "inputs", 0],
            "sorce",
            errors.ArgumentError,
            r"\$\.stages\[1\]\.inputs\[0\]: .*'sorce'. Did you mean 'source'",
        ),
        (["stages", 1, "inputs"], [], errors.ArgumentError, r"\$\.stages\[1\]: stage 1 \(relu\)"),
        (["stages", 1, "output"], "z", errors.ArgumentError, r"\$\.stages\[1\]\.output: .*'z'"),
        (["stages", 1, "output"], None, errors.ArgumentError, r"\$\.stages\[1\]: .*needs output"),
        (["stages", 1, "extra"], 1, errors.ArgumentError, r"\$\.stages\[1\]: .*'extra'"),
        (["stages", 1, "params"], [], errors.ArgumentError, r"\$\.stages\[1\]\.params: a mapping"),
        (["stages", 1, "params", "slop"], 1, errors.ArgumentError, r"\$\.stages\[1\]: .*'slop'"),
        (
            ["stages", 1, "params", "slope"],
            {"float": "1"},
            errors.ArgumentError,
            r"\$\.stages\[1\]\.params\.slope: a number",
        ),
    ],
)
def test_a_mistake_in_a_document_has_a_place(path, value, error, said):
    made, buffers = document()
    before = compute.Kernel.list()
    from_document(made, buffers, {})
    with pytest.raises(error, match=said):
        from_document(replaced(made, path, value), buffers, {})
    assert compute.Kernel.list() == before


def test_a_file_that_is_refused_registers_nothing():
    made, buffers = document()
    made["kernels"]["fresh"] = {"source": "def fresh(x): return x"}
    with pytest.raises(errors.ArgumentError):
        from_document(replaced(made, ["stages", 1, "output"], "z"), buffers, {})
    assert "fresh" not in compute.Kernel.list()
    from_document(made, buffers, {})
    assert "fresh" in compute.Kernel.list()


def test_what_is_given_has_to_be_used_and_of_its_kind():
    made, buffers = document()
    relu = compute.Kernel.lookup("relu")
    with pytest.raises(
        errors.ArgumentError, match=r"'rel', which no stage uses\. Did you mean 'relu"
    ):
        from_document(made, buffers, {"rel": relu})
    with pytest.raises(errors.ArgumentError, match="mapping of names to kernels"):
        from_document(made, buffers, {"relu": "relu"})
    with pytest.raises(errors.ArgumentError, match="mapping of names to buffers"):
        from_document(made, {**buffers, "source": [1.0]}, {})
    compute.free(buffers["source"])
    with pytest.raises(errors.FreedError):
        from_document(made, buffers, {})


@pytest.mark.usefixtures("webgpu")
def test_scratch_is_made_where_the_buffers_are(tmp_path):
    path = tmp_path / "filter.json"
    pipeline, buffers = simple()
    pipeline.save(path, buffers)
    with compute.device("cpu"):
        loaded = compute.load_pipeline(path, buffers)
    assert loaded.stages[0].output.device == "webgpu"
