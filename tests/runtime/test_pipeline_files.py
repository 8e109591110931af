"""Pipelines saved as documents, and loaded again."""

from __future__ import annotations

import copy
import json
import math

import numpy as np
import pytest

import dala
from dala import clamp, errors
from dala.gpu import compute
from dala.runtime.pipeline_file import from_document

GAIN = 2.0


@dala.kernel(border="mirror")
def soften(x, amount: dala.f32 = 0.5):
    """A name, a docstring, and two lines."""
    i, j = dala.position(2)
    around = sum(x[i + a - 1, j] for a in range(3)) / 3.0
    return clamp(x + amount * (around - x), 0.0, max(1.0, x))


@dala.function
def twice(x):
    return 2.0 * x


@dala.kernel
def with_function(x):
    return twice(x)


@dala.kernel
def with_global(x, gain: dala.f32 = GAIN):
    return gain * x


WGSL = """
    struct Params { a: f32, b: f32, }
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> out: array<f32>;
    @group(0) @binding(2) var<uniform> params: Params;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if (id.x < arrayLength(&out)) { out[id.x] = params.a * x[id.x] + params.b; }
    }
"""


def picture(seed=0, shape=(9, 7)):
    rng = np.random.default_rng(seed)
    return compute.from_numpy(rng.random(shape, np.float32))


def zeros(shape=(9, 7), dtype="f32"):
    return compute.buffer_zeros(shape, dtype)


def build(source, result, *, fuse=True):
    first, second = compute.scratch((9, 7), "f32"), compute.scratch((7, 9), "f32")
    pipeline = compute.pipeline(fuse=fuse)
    pipeline.add(
        kernel="scale", inputs=[source], output=first, params={"factor": np.float32(1.5)}, name="up"
    )
    pipeline.add(kernel=soften, inputs=[first], output=first, params={"amount": 0.25})
    pipeline.add(op="barrier")
    pipeline.add(kernel="transpose", inputs=[first], output=second, params={"axes": (1, 0)})
    pipeline.add(op="copy_buffer", inputs=[second], output=result, name="keep")
    return pipeline


def simple():
    x, out = zeros((3,)), zeros((3,))
    scratch = compute.scratch((3,), "f32")
    pipeline = compute.pipeline().add(kernel="abs", inputs=[x], output=scratch)
    pipeline.add(kernel="relu", inputs=[scratch], output=out, params={"slope": 0.5})
    return pipeline, {"source": x, "result": out}


def document():
    pipeline, buffers = simple()
    return pipeline.to_dict(buffers), buffers


# -- there and back --------------------------------------------------------------------------------


@pytest.mark.parametrize("fuse", [True, False])
def test_a_loaded_pipeline_computes_the_same_on_other_buffers(device, tmp_path, fuse):
    path = tmp_path / "filter.json"
    source, result = picture(), zeros((7, 9))
    pipeline = build(source, result, fuse=fuse)
    pipeline.run()
    pipeline.save(path, buffers={"source": source, "result": result})
    other, out = picture(), zeros((7, 9))
    loaded = compute.load_pipeline(path, buffers={"source": other, "result": out})
    assert loaded.fuse is fuse
    assert [(s.op, s.name) for s in loaded.stages] == [(s.op, s.name) for s in pipeline.stages]
    loaded.run()
    assert compute.read(out).any()
    assert np.array_equal(compute.read(out), compute.read(result))
    loaded.set("up", factor=3.0).run()
    assert not np.array_equal(compute.read(out), compute.read(result))


def test_a_document_says_what_runs_on_what():
    source, result = picture(), zeros((7, 9))
    made = build(source, result).to_dict({"source": source, "result": result})
    assert made["version"] == 1
    assert made["buffers"] == {
        "source": {"shape": [9, 7], "dtype": "f32"},
        "result": {"shape": [7, 9], "dtype": "f32"},
    }
    assert made["scratch"] == {
        "scratch0": {"shape": [9, 7], "dtype": "f32"},
        "scratch1": {"shape": [7, 9], "dtype": "f32"},
    }
    assert list(made["kernels"]) == ["soften"]
    assert made["kernels"]["soften"]["border"] == "mirror"
    assert made["kernels"]["soften"]["source"].startswith("def soften(x, amount: dala.f32 = 0.5):")
    assert made["stages"] == [
        {
            "op": "run_kernel",
            "name": "up",
            "kernel": "scale",
            "inputs": ["source"],
            "output": "scratch0",
            "params": {"factor": 1.5},
        },
        {
            "op": "run_kernel",
            "name": "soften",
            "kernel": "soften",
            "inputs": ["scratch0"],
            "output": "scratch0",
            "params": {"amount": 0.25},
        },
        {"op": "barrier", "name": "barrier"},
        {
            "op": "run_kernel",
            "name": "transpose",
            "kernel": "transpose",
            "inputs": ["scratch0"],
            "output": "scratch1",
            "params": {"axes": [1, 0]},
        },
        {"op": "copy_buffer", "name": "keep", "inputs": ["scratch1"], "output": "result"},
    ]
    assert json.loads(json.dumps(made)) == made
    again = from_document(made, {"source": source, "result": result}, {})
    assert again.to_dict({"source": source, "result": result}) == made


def test_scratch_may_be_named_and_names_do_not_collide():
    x, out, inner = zeros((3,)), zeros((3,)), compute.scratch((3,), "f32")
    pipeline = compute.pipeline().add(kernel="abs", inputs=[x], output=inner)
    pipeline.add(kernel="relu", inputs=[inner], output=out)
    made = pipeline.to_dict({"scratch0": x, "out": out})
    assert list(made["buffers"]) == ["scratch0", "out"]
    assert list(made["scratch"]) == ["scratch1"]
    assert list(pipeline.to_dict({"x": x, "out": out, "between": inner})["scratch"]) == ["between"]


def test_toml_is_read_too(device, tmp_path):
    path = tmp_path / "filter.toml"
    path.write_text(
        """
        version = 1

        [buffers]
        source = { shape = [3], dtype = "f32" }
        result = { shape = [3], dtype = "f32" }

        [scratch.inner]
        shape = [3]
        dtype = "f32"

        [kernels.half]
        source = '''
        def half(x):
            return x * 0.5
        '''

        [[stages]]
        kernel = "half"
        inputs = ["source"]
        output = "inner"

        [[stages]]
        kernel = "clamp"
        inputs = ["inner"]
        output = "result"
        params = { low = -inf, high = 1.0 }
        """
    )
    x, out = compute.buffer([-8.0, 1.0, 9.0], (3,), "f32"), zeros((3,))
    compute.Pipeline.load(path, buffers={"source": x, "result": out}).run()
    assert compute.read_list(out) == [-4.0, 0.5, 1.0]


def test_numbers_that_json_has_no_words_for_come_back(tmp_path):
    x, out = compute.buffer([-8.0, 1.0, 9.0], (3,), "f32"), zeros((3,))
    pipeline = compute.pipeline()
    low_and_high = {"low": -math.inf, "high": np.float64(1.0)}
    pipeline.add(kernel="clamp", inputs=[x], output=out, params=low_and_high)
    path = tmp_path / "filter.json"
    pipeline.save(path, {"x": x, "out": out})
    json.loads(path.read_text(), parse_constant=pytest.fail)
    loaded = compute.load_pipeline(path, {"x": x, "out": out})
    assert loaded.stages[0].params == {"low": -math.inf, "high": 1.0}


# -- kernels ---------------------------------------------------------------------------------------


def test_a_kernel_of_a_file_is_registered_where_its_name_is_free(tmp_path):
    path = tmp_path / "filter.json"
    x, out = picture(), zeros()
    buffers = {"x": x, "out": out}
    compute.pipeline().add(kernel=soften, inputs=[x], output=out).save(path, buffers)
    loaded = compute.load_pipeline(path, buffers)
    assert compute.Kernel.lookup("soften") is loaded.stages[0].kernel is not soften
    again = compute.load_pipeline(path, buffers)
    assert compute.Kernel.lookup("soften") is loaded.stages[0].kernel
    assert again.stages[0].kernel is not loaded.stages[0].kernel


def test_a_kernel_in_place_of_a_built_in_one_is_saved_as_text():
    x, out = zeros((3,)), zeros((3,))
    ours = compute.Kernel.lookup("relu")
    compute.Kernel.register("relu", "def relu(x): return x + 1.0", replace=True)
    made = (
        compute.pipeline().add(kernel="relu", inputs=[x], output=out).to_dict({"x": x, "out": out})
    )
    compute.Kernel.register("relu", ours, replace=True)
    from_document(made, {"x": x, "out": out}, {}).run()
    assert compute.read_list(out) == [1.0, 1.0, 1.0]
    assert compute.Kernel.lookup("relu") is ours


@pytest.mark.parametrize(
    ("kernel", "name"), [(with_function, "twice"), (with_global, "GAIN"), ("closed", "offset")]
)
def test_a_kernel_that_uses_what_is_outside_is_saved_by_name_only(tmp_path, kernel, name):
    if kernel == "closed":
        offset = 3.0

        @dala.kernel
        def closed(x):
            return x + offset

        kernel = closed
    x, out = zeros((3,)), zeros((3,))
    pipeline = compute.pipeline().add(kernel=kernel, inputs=[x], output=out)
    path, buffers = tmp_path / "filter.json", {"x": x, "out": out}
    with pytest.raises(errors.KernelSourceError, match=rf"stage 0 .*`{name}`.*kernels="):
        pipeline.save(path, buffers)
    assert not path.exists()
    pipeline.save(path, buffers, kernels={"mine": kernel})
    assert json.loads(path.read_text())["kernels"] == {}
    with pytest.raises(errors.UnknownKernelError, match=r"\$\.stages\[0\]\.kernel.*kernels="):
        compute.load_pipeline(path, buffers)
    loaded = compute.load_pipeline(path, buffers, kernels={"mine": kernel})
    assert loaded.stages[0].kernel is kernel


def test_two_kernels_of_one_name_are_refused():
    x, y, out = zeros((3,)), zeros((3,)), zeros((3,))
    other = dala.kernel(name="relu")(soften_like)
    pipeline = compute.pipeline().add(kernel="relu", inputs=[x], output=y)
    pipeline.add(kernel=other, inputs=[y], output=out)
    with pytest.raises(errors.ArgumentError, match="two kernels are named 'relu'"):
        pipeline.to_dict({"x": x, "y": y, "out": out})


def soften_like(x):
    return x * 0.5


@pytest.mark.usefixtures("webgpu")
def test_wgsl_is_saved_with_its_defaults_and_groups(tmp_path):
    x, out = compute.buffer([1.0, 2.0], (2,), "f32"), zeros((2,))
    path, buffers = tmp_path / "filter.json", {"x": x, "out": out}
    given = {"language": "wgsl", "params": {"b": 5.0}}
    kernel = compute.Kernel.register("line", WGSL, groups=(1, 1, 1), **given)
    pipeline = compute.pipeline()
    pipeline.add(kernel=kernel, inputs=[x], output=out, params={"a": 3.0}).save(path, buffers)
    compute.Kernel.unregister("line")
    loaded = compute.load_pipeline(path, buffers)
    loaded.run()
    assert compute.read_list(out) == [8.0, 11.0]
    assert loaded.stages[0].kernel.groups == (1, 1, 1)
    by_shape = compute.Kernel.register("other", WGSL, groups=lambda shape: (1, 1, 1), **given)
    pipeline = compute.pipeline()
    pipeline.add(kernel=by_shape, inputs=[x], output=out, params={"a": 3.0})
    with pytest.raises(errors.KernelSourceError, match="groups are a function"):
        pipeline.save(path, buffers)


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
        (["version"], 2, errors.ArgumentError, r"\$\.version: 2 is not known"),
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
