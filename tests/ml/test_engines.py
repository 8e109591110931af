"""What computes a model: ONNX Runtime on the host, or dala's own kernels where the buffers are."""

import subprocess
import sys

import numpy as np
import pytest
from ml.executor.graphs import graph_of
from ml.small_models import (
    FLOAT,
    INT64,
    UINT8,
    doubling,
    model_of,
    number,
    sum_and_difference,
)
from onnx import helper

from dala import errors, ml
from dala.devices import current_device
from dala.devices.webgpu.transfer import Transfers
from dala.gpu import compute
from dala.ml.models.engine import Engine
from dala.ml.models.kernel_engine import KernelEngine
from dala.ml.models.masks import mask_kernel
from dala.ml.models.onnx_runtime import OnnxRuntime


def classes() -> bytes:
    """`best` is where a row of x is largest, as integers of 64 bits."""
    node = helper.make_node("ArgMax", ["x"], ["best"], axis=1, keepdims=0)
    return model_of([node], [("x", FLOAT, (2, 3))], [("best", 7, (2,))])


def bright_people() -> bytes:
    """Classes as those of deeplab: 15, a person, where the image is white, 0 where it is black."""
    nodes = [
        helper.make_node("Cast", ["image"], ["levels"], to=FLOAT),
        helper.make_node("ReduceMean", ["levels"], ["mean"], axes=[3], keepdims=0),
        helper.make_node("Div", ["mean", "seventeen"], ["share"]),
        helper.make_node("Cast", ["share"], ["classes"], to=INT64),
    ]
    shape = (1, 513, 513)
    takes, gives = [("image", UINT8, (*shape, 3))], [("classes", INT64, shape)]
    return model_of(nodes, takes, gives, [number("seventeen", 17.0)])


@pytest.fixture
def read_backs(monkeypatch):
    """The sizes of what was read back from a WebGPU device."""
    found = []
    read = Transfers.read

    def counted(self, device, memory):
        found.append(memory.size_bytes)
        return read(self, device, memory)

    monkeypatch.setattr(Transfers, "read", counted)
    return found


def test_kernels_compute_a_model_on_the_device(device):
    model = ml.gpu.load_model(doubling(), engine="dala")
    assert model.engine.startswith("dala ")
    assert model.device == device
    assert ml.gpu.model_info(model)["copies"] == "none"
    x = compute.buffer([1.0, 2.0, 3.0, 4.0], (1, 4), "f32")
    assert compute.read_list(ml.gpu.predict(model, x)) == [2.0, 4.0, 6.0, 8.0]


def test_nothing_leaves_the_device_between_two_kernels(webgpu, read_backs):
    model = ml.gpu.load_model(doubling(), engine="dala")
    x, out = compute.buffer([1.0, 2.0, 3.0, 4.0], (1, 4), "f32"), compute.buffer_zeros(4, "f32")
    before, after = (compute.scratch((1, 4), "f32") for _ in range(2))
    out = compute.buffer_zeros((1, 4), "f32")
    pipeline = compute.pipeline()
    pipeline.add(kernel="relu", inputs=[x], output=before)
    pipeline.add(kernel=model, inputs=[before], output=after)
    pipeline.add(kernel="scale", inputs=[after], output=out, params={"factor": 10.0})
    pipeline.run()
    assert read_backs == []
    assert compute.read_list(out) == [20.0, 40.0, 60.0, 80.0]
    assert "copied" not in pipeline.explain()


def test_onnx_runtime_is_told_to_be_on_the_host(webgpu, read_backs):
    model = ml.gpu.load_model(doubling(), engine="onnxruntime")
    assert (model.engine.split()[0], model.device) == ("onnxruntime", "cpu")
    assert (
        ml.gpu.model_info(model)["copies"] == "its inputs from webgpu to the host, its outputs back"
    )
    x, y = (compute.buffer_zeros((1, 4), "f32") for _ in range(2))
    compute.run_kernel(model, [x], y)
    assert read_backs == [16]


def test_a_software_gpu_leaves_models_to_onnx_runtime_unless_told(webgpu):
    assert not current_device().info()["hardware"], "this test is for Mesa's software GPU"
    assert ml.gpu.load_model(doubling()).device == "cpu"


def determinant() -> bytes:
    x = np.ones((2, 2), np.float32)
    return graph_of([helper.make_node("Det", ["x"], ["y"])], {"x": x})


def test_a_hardware_gpu_computes_models_itself_where_it_can(webgpu, monkeypatch):
    monkeypatch.setattr(current_device(), "is_gpu", True)
    assert ml.gpu.load_model(doubling()).device == webgpu
    assert ml.gpu.load_model(determinant()).device == "cpu"  # no kernel for Det


def test_a_hardware_gpu_leaves_to_onnx_runtime_what_shows_to_be_too_much_in_the_layout(
    webgpu, monkeypatch
):
    monkeypatch.setattr(current_device(), "is_gpu", True)
    x = np.array([[1.0, 3.0]])  # f64, which layers do not take
    node = helper.make_node("LayerNormalization", ["x", "scale"], ["y"], epsilon=0.0)
    model = ml.gpu.load_model(graph_of([node], {"x": x}, {"scale": np.ones(2)}, opset=17))
    assert model.device == "cpu"
    assert ml.gpu.predict(model, x).tolist() == [[-1.0, 1.0]]


@pytest.mark.parametrize("as_stage", [False, True])
def test_what_kernels_refuse_when_they_run_is_computed_on_the_host(webgpu, monkeypatch, as_stage):
    def refuse(self, *_):
        raise errors.ModelError("no kernel lays this out")

    monkeypatch.setattr(current_device(), "is_gpu", True)
    for way in ("compute", "run", "stages"):
        monkeypatch.setattr(KernelEngine, way, refuse)
    model = ml.gpu.load_model(classes())
    x = compute.from_numpy(np.array([[1, 5, 2], [9, 0, 3]], np.float32))
    out = compute.buffer_zeros((2,), "s32")

    def compute_it():
        if not as_stage:
            return ml.gpu.predict(model, x)
        pipeline = compute.pipeline()
        pipeline.add(kernel=model, inputs=[x], output=out)
        pipeline.run()
        return out

    with pytest.warns(RuntimeWarning, match="onnxruntime.*because.*no kernel lays this out"):
        made = compute_it()
    assert compute.read_list(made) == [1, 0]
    assert (model.device, model.engine.split()[0]) == ("cpu", "onnxruntime")
    assert compute.read_list(ml.gpu.predict(model, x)) == [1, 0]  # and says nothing any more
    with pytest.raises(errors.ModelError, match="no kernel lays this out"):
        ml.gpu.predict(ml.gpu.load_model(classes(), engine="dala"), x)
    with pytest.raises(errors.ShapeError):  # what is the caller's mistake stays one
        ml.gpu.predict(model, compute.buffer_zeros((2, 4), "f32"))


def test_the_cpu_leaves_models_to_onnx_runtime_unless_told():
    with compute.device("cpu"):
        assert ml.gpu.load_model(doubling()).engine.startswith("onnxruntime")


def test_kernels_write_the_output_that_is_named(device):
    model = ml.gpu.load_model(sum_and_difference(), engine="dala")
    a, b = (compute.from_numpy(np.full((2, 3), value, np.float32)) for value in (5, 2))
    out = compute.buffer_zeros((2, 3), "f32")
    compute.run_kernel(model, [a, b], out, {"output": "difference"})
    assert set(compute.read_list(out)) == {3.0}
    made = ml.gpu.predict(model, [a, b])
    assert compute.read(made["sum"])[0, 0] == 7.0


def test_integers_of_64_bits_come_as_such_or_as_the_buffer_has_them(device):
    model = ml.gpu.load_model(classes(), engine="dala")
    x = compute.from_numpy(np.array([[1, 5, 2], [9, 0, 3]], np.float32))
    made = ml.gpu.predict(model, x)
    assert (made.dtype, compute.read_list(made)) == ("s64", [1, 0])
    out = compute.buffer_zeros((2,), "s32")
    compute.run_kernel(model, [x], out)
    assert compute.read_list(out) == [1, 0]


def test_kernels_run_for_each_of_a_batch(device):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    model = ml.gpu.load_model(doubling(), engine="dala")
    made = ml.gpu.predict(model, compute.from_numpy(x))
    np.testing.assert_array_equal(compute.read(made), 2 * x)


def test_arrays_are_computed_on_the_current_device(webgpu, read_backs):
    x = np.ones((1, 4), np.float32)
    for engine, sizes in (("onnxruntime", []), ("dala", [16])):
        made = ml.gpu.predict(ml.gpu.load_model(doubling(), engine=engine), x)
        assert made.tolist() == [[2.0] * 4]
        assert read_backs == sizes


def test_a_prediction_runs_on_the_device_that_was_current_when_it_was_asked_for(webgpu, read_backs):
    model = ml.gpu.load_model(doubling(), engine="dala")
    command = ml.gpu.predict_async(model, np.ones((1, 4), np.float32))
    assert command.wait().tolist() == [[2.0] * 4]
    assert read_backs == [16]


def test_arrays_have_the_dtype_that_the_model_declares(device):
    x = np.array([[1, 5, 2], [3, 1, 0]], np.float32)
    made = [
        ml.gpu.predict(ml.gpu.load_model(classes(), engine=engine), x)
        for engine in ("onnxruntime", "dala")
    ]
    assert [item.dtype for item in made] == [np.int64, np.int64]
    assert [item.tolist() for item in made] == [[1, 0], [1, 0]]


@pytest.mark.parametrize("engine", ["onnxruntime", "dala"])
def test_a_mask_of_people_is_made_by_the_engine_that_was_chosen(engine, webgpu):
    model = ml.gpu.load_model(bright_people(), like="deeplab", engine=engine)
    image = np.zeros((513, 513, 3), np.uint8)
    image[:200, 100:] = 255
    mask = compute.buffer_zeros((513, 513), "f32")
    pipeline = compute.pipeline()
    kernel = mask_kernel("blur", model)
    pipeline.add(kernel=kernel, inputs=[compute.from_numpy(image)], output=mask)
    pipeline.run()
    np.testing.assert_array_equal(compute.read(mask), image[..., 0] / 255)
    assert ("computed on the host" in pipeline.explain()) == (engine == "onnxruntime")


def test_what_kernels_refuse_for_given_shapes_says_which_engine_to_take(device):
    node = helper.make_node("MaxPool", ["x"], ["y"], name="pool", kernel_shape=[2, 2], strides=[1])
    given, made = [("x", FLOAT, (1, 1, 4, 4))], [("y", FLOAT, (1, 1, 3, 3))]
    model = ml.gpu.load_model(model_of([node], given, made), engine="dala")
    with pytest.raises(errors.ModelError, match=r"model: MaxPool \(pool\).*engine='onnxruntime'"):
        ml.gpu.predict(model, [np.ones((1, 1, 4, 4), np.float32)])


def test_explain_tells_of_the_device_of_the_buffers_whatever_the_current_one(webgpu, monkeypatch):
    model = ml.gpu.load_model(doubling())
    x, y = (compute.buffer_zeros((1, 4), "f32") for _ in range(2))
    monkeypatch.setattr(model, "runs_on", lambda device: device.id == webgpu)
    with compute.device("cpu"):
        assert model.explain([x], y).startswith("model is computed by dala ")


def test_what_kernels_cannot_compute_is_named():
    with pytest.raises(errors.ModelError, match=r"Det.*engine='onnxruntime'"):
        ml.gpu.load_model(determinant(), engine="dala")


def test_an_engine_that_is_unknown_is_refused():
    with pytest.raises(errors.ArgumentError, match="'tensorrt' is not one of auto, onnxruntime"):
        ml.gpu.load_model(doubling(), engine="tensorrt")


def test_buffers_that_do_not_fit_are_refused_by_kernels_too(device):
    model = ml.gpu.load_model(doubling(), engine="dala")
    x, y = compute.buffer_zeros((1, 5), "f32"), compute.buffer_zeros((1, 4), "f32")
    with pytest.raises(errors.ShapeError, match=r"\(1, 4\), but \(1, 5\)"):
        compute.run_kernel(model, [x], y)
    with pytest.raises(errors.DtypeError):
        compute.run_kernel(model, [y], compute.buffer_zeros((1, 4), "u8"))


RUN_WITHOUT = """
import importlib.abc, sys
import numpy as np

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("onnxruntime", "onnx"):
            raise ImportError(f"{name} is not here")

sys.meta_path.insert(0, Refuse())
from pathlib import Path
from dala import errors, ml
from dala.gpu import compute

model = ml.gpu.load_model(Path(sys.argv[1]), engine="dala")
x = np.arange(6, dtype=np.float32).reshape(2, 3)
assert ml.gpu.predict(model, x).tolist() == (2 * x).tolist()
out = compute.buffer_zeros((2, 3), "f32")
compute.run_kernel(model, [compute.from_numpy(x)], out)
assert compute.read(out).tolist() == (2 * x).tolist()
of_bytes = ml.gpu.load_model(Path(sys.argv[1]).read_bytes(), engine="dala")
assert ml.gpu.predict(of_bytes, x).sum() == 30
assert not {"onnxruntime", "onnx"} & set(sys.modules)
with compute.device("cpu"):
    alone = ml.gpu.load_model(Path(sys.argv[1]))
    assert alone.engine.startswith("dala "), alone.engine
    assert ml.gpu.predict(alone, x).sum() == 30
try:
    ml.gpu.load_model(Path(sys.argv[1]), engine="onnxruntime")
except errors.ModelError as error:
    assert "not installed" in str(error) and "engine='dala'" in str(error), error
else:
    raise AssertionError("it was loaded")
"""


def test_kernels_compute_a_model_where_neither_onnx_runtime_nor_onnx_is_installed(tmp_path):
    path = tmp_path / "doubling.onnx"
    path.write_bytes(doubling((2, 3)))
    ran = subprocess.run(
        [sys.executable, "-c", RUN_WITHOUT, str(path)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("kind", [KernelEngine, OnnxRuntime])
def test_engines_have_all_that_the_protocol_asks_for(kind):
    asked = {name for name in vars(Engine) if not name.startswith("_")} | {"on_device"}
    assert asked >= {"run", "stages", "compute_arrays", "copies"}
    assert not [name for name in asked if not hasattr(kind, name)]
