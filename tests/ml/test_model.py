"""Models as kernels: stages of pipelines, on either device."""

import numpy as np
import pytest
from ml.small_models import comparing, doubling, positives, sum_and_difference

from dala import errors, ml
from dala.gpu import compute


def four(*values: float) -> compute.Buffer:
    return compute.buffer(list(values), (1, 4), "f32")


def test_a_model_runs_between_two_kernels(device):
    model = ml.gpu.load_model(doubling())
    x, y, z, out = four(-1, 2, 3, 4), *(compute.buffer_zeros((1, 4), "f32") for _ in range(3))
    pipeline = compute.pipeline()
    pipeline.add(kernel="relu", inputs=[x], output=y)
    pipeline.add(kernel=model, inputs=[y], output=z)
    pipeline.add(kernel="scale", inputs=[z], output=out, params={"factor": 10.0})
    pipeline.run()
    assert compute.read_list(out) == [0.0, 40.0, 60.0, 80.0]
    compute.write(x, [1.0, 1.0, 1.0, 1.0])
    pipeline.run()
    assert compute.read_list(out) == [20.0] * 4


def test_scratch_may_lie_before_and_after_a_model(device):
    model = ml.gpu.load_model(doubling())
    x, out = four(1, 2, 3, 4), compute.buffer_zeros((1, 4), "f32")
    before, after = (compute.scratch((1, 4), "f32") for _ in range(2))
    pipeline = compute.pipeline()
    pipeline.add(kernel="relu", inputs=[x], output=before)
    pipeline.add(kernel=model, inputs=[before], output=after)
    pipeline.add(kernel="relu", inputs=[after], output=out).run()
    assert compute.read_list(out) == [2.0, 4.0, 6.0, 8.0]


def test_a_model_may_write_over_its_input(device):
    x = four(1, 2, 3, 4)
    compute.run_kernel(ml.gpu.load_model(doubling()), [x], x)
    assert compute.read_list(x) == [2.0, 4.0, 6.0, 8.0]


def test_a_model_runs_as_a_command(device):
    x, y = four(1, 2, 3, 4), compute.buffer_zeros((1, 4), "f32")
    model = ml.gpu.load_model(doubling())
    compute.wait(compute.submit(kernel=model, inputs=[x], output=y))
    assert compute.read_list(y) == [2.0, 4.0, 6.0, 8.0]


def test_a_stage_writes_the_output_that_is_named_or_the_first(device):
    model = ml.gpu.load_model(sum_and_difference())
    a, b = (compute.from_numpy(np.full((2, 3), value, np.float32)) for value in (5, 2))
    out = compute.buffer_zeros((2, 3), "f32")
    compute.run_kernel(model, [a, b], out)
    assert set(compute.read_list(out)) == {7.0}
    compute.run_kernel(model, [a, b], out, {"output": "difference"})
    assert set(compute.read_list(out)) == {3.0}


def test_the_output_of_a_stage_can_be_changed(device):
    model = ml.gpu.load_model(sum_and_difference())
    a, b = (compute.from_numpy(np.full((2, 3), value, np.float32)) for value in (5, 2))
    out = compute.buffer_zeros((2, 3), "f32")
    pipeline = compute.pipeline().add(kernel=model, inputs=[a, b], output=out, name="both")
    pipeline.run()
    pipeline.set("both", output="difference").run()
    assert set(compute.read_list(out)) == {3.0}


def test_an_output_that_is_not_there_is_refused_with_those_that_are(device):
    model = ml.gpu.load_model(sum_and_difference())
    a = compute.buffer_zeros((2, 3), "f32")
    with pytest.raises(errors.ArgumentError, match=r"sum, difference.*'difference'\?"):
        compute.run_kernel(model, [a, a], a, {"output": "diference"})


@pytest.mark.parametrize(
    ("inputs", "output", "error", "said"),
    [
        ((1, 5), (1, 4), errors.ShapeError, r"input 'x' is f32 \(1, 4\), but \(1, 5\)"),
        ((1, 4), (4,), errors.ShapeError, r"output 'y' is f32 \(1, 4\), but .* \(4,\)"),
    ],
)
def test_a_stage_that_does_not_fit_is_refused_when_it_is_added(device, inputs, output, error, said):
    x, y = compute.buffer_zeros(inputs, "f32"), compute.buffer_zeros(output, "f32")
    with pytest.raises(error, match=said):
        compute.pipeline().add(kernel=ml.gpu.load_model(doubling()), inputs=[x], output=y)


def test_buffers_of_another_dtype_are_refused(device):
    model = ml.gpu.load_model(doubling())
    x, levels = compute.buffer_zeros((1, 4), "f32"), compute.buffer_zeros((1, 4), "u8")
    with pytest.raises(errors.DtypeError, match=r"input 'x' is f32 .* but u8"):
        compute.run_kernel(model, [levels], x)
    with pytest.raises(errors.DtypeError, match=r"output 'y' is f32 .* into u8"):
        compute.run_kernel(model, [x], levels)


def test_an_output_of_bools_goes_into_a_mask(device):
    x, model = compute.buffer([1.0, -1.0, 0.0], (1, 3), "f32"), ml.gpu.load_model(comparing())
    with pytest.raises(errors.DtypeError, match=r"'larger' is bool \(1, 3\), but .* into u8"):
        compute.run_kernel(model, [x], compute.buffer_zeros((1, 3), "u8"))
    out = compute.buffer_zeros((1, 3), "bool")
    compute.run_kernel(model, [x], out)
    assert compute.read_list(out) == [True, False, False]


def test_an_axis_that_is_free_takes_any_length(device):
    model = ml.gpu.load_model(doubling(("n", 2)))
    for count in (1, 3):
        x, y = (
            compute.from_numpy(np.ones((count, 2), np.float32)),
            compute.buffer_zeros((count, 2), "f32"),
        )
        compute.run_kernel(model, [x], y)
        assert compute.read_list(y) == [2.0] * (2 * count)
    assert model.output_shape([(5, 2)]) == (5, 2)


def test_axes_that_are_free_without_a_name_have_nothing_to_do_with_each_other():
    with pytest.raises(errors.ShapeError, match=r"\(\?, 2\): how large .* not declared"):
        ml.gpu.load_model(doubling((None, 2))).output_shape([(5, 2)])


def test_an_output_whose_size_turns_out_to_be_another_is_refused():
    model = ml.gpu.load_model(positives())
    x = compute.buffer([1.0, 0.0, 2.0, 0.0], (4,), "f32")
    fitting, larger = (compute.buffer_zeros((1, n), "s64") for n in (2, 3))
    compute.run_kernel(model, [x], fitting)
    assert compute.read_list(fitting) == [0, 2]
    with pytest.raises(errors.ShapeError, match=r"\(1, 2\), but there is room for \(1, 3\)"):
        compute.run_kernel(model, [x], larger)
    with pytest.raises(errors.ShapeError, match="not declared"):
        model.output_shape([(4,)])


def test_explain_tells_of_copies_where_there_are_some(device):
    x, y = four(1, 2, 3, 4), compute.buffer_zeros((1, 4), "f32")
    model = ml.gpu.load_model(doubling())
    pipeline = compute.pipeline().add(kernel=model, inputs=[x], output=y)
    said = [pipeline.explain(), model.explain([x], y)]
    assert all(("copied" in text) == (device != "cpu") for text in said)


def test_a_model_says_what_computes_it_and_where():
    model = ml.gpu.load_model(doubling())
    assert model.engine.startswith("onnxruntime ")
    assert "CPUExecutionProvider" in model.engine
    assert model.device == "cpu"
    info = ml.gpu.model_info(model)
    assert info["engine"] == model.engine
    assert info["inputs"] == {"x": {"shape": [1, 4], "dtype": "f32"}}
    assert info["outputs"] == {"y": {"shape": [1, 4], "dtype": "f32"}}


def test_a_model_uses_as_many_threads_as_the_cpu_device(monkeypatch):
    monkeypatch.setenv("DALA_THREADS", "1")
    assert "1 thread)" in ml.gpu.load_model(doubling()).engine


def test_a_profile_sees_a_model(device):
    x, y = four(1, 2, 3, 4), compute.buffer_zeros((1, 4), "f32")
    model = ml.gpu.load_model(doubling())
    with compute.profile() as profile:
        compute.run_kernel(model, [x], y)
    assert [(item.name, item.bytes_read) for item in profile.records] == [("model", 16)]


def test_a_pipeline_with_a_model_of_a_file_is_saved_with_the_model_by_name(tmp_path):
    x, y = four(1, 2, 3, 4), compute.buffer_zeros((1, 4), "f32")
    model = ml.gpu.load_model(doubling())
    pipeline = compute.pipeline().add(kernel=model, inputs=[x], output=y)
    with pytest.raises(errors.KernelSourceError, match="kernels="):
        pipeline.save(tmp_path / "p.json", {"x": x, "y": y})
    given = {"buffers": {"x": x, "y": y}, "kernels": {"double": model}}
    pipeline.save(tmp_path / "p.json", **given)
    compute.load_pipeline(tmp_path / "p.json", **given).run()
    assert compute.read_list(y) == [2.0, 4.0, 6.0, 8.0]
