"""Pipelines saved as documents, and loaded again."""

from __future__ import annotations

import json
import math
from typing import NamedTuple

import numpy as np
import pytest
from runtime.documents import (
    WGSL,
    build,
    picture,
    soften,
    twice,
    with_function,
    with_global,
    zeros,
)

import dala
from dala import errors
from dala.gpu import compute
from dala.runtime.pipelines.file import from_document

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
    assert made["version"] == 2
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


OLD = [
    ("resize", {"size": [5, 8]}, (5, 8, 3), {"shape": (5, 8)}),
    ("letterbox", {"size": [5, 8], "color": 0.5}, (5, 8, 3), {"shape": (5, 8), "color": 0.5}),
    ("resize", {"size": 4}, (4, 4, 3), {"shape": (4, 4)}),
    (
        "warp_affine",
        {"matrix": [[1, 0, 1], [0, 1, 2]], "size": [5, 8]},
        (5, 8, 3),
        {"matrix": [[1, 0, 1], [0, 1, 2]], "shape": (5, 8)},
    ),
    ("blur", {"radius": 6}, (9, 7, 3), {"radius": 6, "sigma": 1.5}),
    ("blur", {"sigma": 4.0}, (9, 7, 3), {"radius": 3, "sigma": 4.0}),
    ("blur", {}, (9, 7, 3), {"radius": 3, "sigma": 1.5}),
]
"""Stages of version 1, and what they meant."""


@pytest.mark.parametrize(("kernel", "params", "shape", "meant"), OLD)
def test_a_document_of_version_1_means_what_it_did(device, kernel, params, shape, meant):
    source, result, want = picture(shape=(9, 7, 3)), zeros(shape), zeros(shape)
    stage = {"kernel": kernel, "inputs": ["source"], "output": "result", "params": params}
    kinds = {"source": [9, 7, 3], "result": list(shape)}
    made = {
        "version": 1,
        "buffers": {name: {"shape": kind, "dtype": "f32"} for name, kind in kinds.items()},
        "stages": [stage],
    }
    buffers = {"source": source, "result": result}
    old = from_document(made, buffers, {})
    old.run()
    compute.run_kernel(kernel, [source], want, meant)
    np.testing.assert_array_equal(compute.read(result), compute.read(want))
    again = from_document(old.to_dict(buffers), buffers, {})
    compute.write(result, np.zeros(shape))
    again.run()
    np.testing.assert_array_equal(compute.read(result), compute.read(want))


def test_a_size_of_version_1_is_left_alone_where_the_kernel_is_the_users(device):
    source, result = picture(shape=(2, 3)), zeros((2, 3))
    own = "def blur(x, radius: dala.f32 = 1.0, sigma: dala.f32 = 2.0): return x * radius * sigma"
    stage = {"kernel": "blur", "inputs": ["source"], "output": "result", "params": {"radius": 3}}
    kind = {"shape": [2, 3], "dtype": "f32"}
    made = {
        "version": 1,
        "buffers": {"source": kind, "result": kind},
        "kernels": {"blur": {"source": own}},
        "stages": [stage],
    }
    from_document(made, {"source": source, "result": result}, {}).run()
    np.testing.assert_allclose(compute.read(result), compute.read(source) * 6, rtol=1e-6)


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


@pytest.mark.parametrize(("kernel", "name"), [(with_global, "GAIN"), ("closed", "offset")])
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


class Inner(NamedTuple):
    center: dala.vec2
    scale: float = 2.0

    def shifted(self, x):
        return twice(x - self.center.x) * self.scale


class Outer(NamedTuple):
    inner: Inner = Inner(np.array([1.0, 2.0]))
    offset: int = 3


@dala.function
def reached(outer: Outer, x):
    return outer.inner.shifted(x) + outer.offset


@dala.kernel
def with_classes(x, outer: Outer = Outer()):  # noqa: B008
    return reached(outer, x) + Inner((0.0, 0.0)).scale


@pytest.mark.parametrize("kernel", [with_function, with_classes])
def test_functions_and_classes_of_a_kernel_are_saved_with_it(device, tmp_path, kernel):
    x, out = compute.from_numpy(np.array([1.0, 5.0, 2.0], np.float32)), zeros((3,))
    params = {} if kernel is with_function else {"outer": Outer(Inner((2.0, 0.0), 4.0))}
    pipeline = compute.pipeline().add(kernel=kernel, inputs=[x], output=out, params=params)
    path, buffers = tmp_path / "filter.json", {"x": x, "out": out}
    pipeline.save(path, buffers)
    again = compute.buffer_zeros((3,), "f32")
    loaded = compute.load_pipeline(path, {"x": x, "out": again})
    assert loaded.stages[0].kernel is not kernel
    loaded.run()
    want = [2.0, 10.0, 4.0] if kernel is with_function else [-3.0, 29.0, 5.0]
    assert compute.read_list(again) == want
    if kernel is with_classes:
        defaults = loaded.stages[0].kernel(np.zeros(1, np.float32))
        assert np.array_equal(defaults, with_classes(np.zeros(1, np.float32)))


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
