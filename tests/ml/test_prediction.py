"""Tensors through models: arrays give arrays, buffers give buffers."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from ml.small_models import comparing, doubling, positives, sum_and_difference

from dala import errors, ml
from dala.gpu import compute


def test_an_array_gives_an_array():
    x = np.arange(4, dtype=np.float32).reshape(1, 4)
    made = ml.gpu.predict(ml.gpu.load_model(doubling()), x)
    assert isinstance(made, np.ndarray)
    assert made.tolist() == [[0.0, 2.0, 4.0, 6.0]]


def test_an_array_that_is_not_contiguous_counts_as_what_it_shows():
    x = np.arange(8, dtype=np.float32).reshape(1, 8)[:, ::2]
    made = ml.gpu.predict(ml.gpu.load_model(doubling()), x)
    assert made.tolist() == [[0.0, 4.0, 8.0, 12.0]]


@pytest.mark.parametrize("engine", ["onnxruntime", "dala"])
def test_a_tensor_without_axes_is_one_number(engine):
    model = ml.gpu.load_model(doubling(()), engine=engine)
    made = ml.gpu.predict(model, np.array(3, np.float32))
    assert (made.shape, made.item()) == ((), 6.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda name: ml.gpu.predict(name, np.zeros(3, np.float32)),
        lambda name: ml.gpu.predict_async(name, np.zeros(3, np.float32)),
        lambda name: ml.gpu.predict_frame(name, np.zeros((3, 3, 3), np.uint8)),
        lambda name: ml.gpu.top_k(np.zeros(3, np.float32), 1, name),
    ],
)
def test_the_name_of_a_model_is_no_model(call):
    with pytest.raises(errors.ArgumentError, match=r"load_model\(\) gives, not 'mobilenet_v2'"):
        call("mobilenet_v2")


def test_a_buffer_gives_a_buffer_on_its_device(device):
    x = compute.buffer([1.0, 2.0, 3.0, 4.0], (1, 4), "f32")
    with compute.device("cpu"):
        made = ml.gpu.predict(ml.gpu.load_model(doubling()), x)
    assert made.device == x.device
    assert compute.read_list(made) == [2.0, 4.0, 6.0, 8.0]


def test_several_outputs_come_by_their_names(device):
    model = ml.gpu.load_model(sum_and_difference())
    a, b = (compute.from_numpy(np.full((2, 3), value, np.float32)) for value in (5, 2))
    made = ml.gpu.predict(model, [a, b])
    assert {name: compute.read(item)[0, 0] for name, item in made.items()} == {
        "sum": 7.0,
        "difference": 3.0,
    }


def test_several_inputs_may_be_given_by_their_names():
    model = ml.gpu.load_model(sum_and_difference())
    a, b = (np.full((2, 3), value, np.float32) for value in (5, 2))
    made = ml.gpu.predict(model, {"b": b, "a": a})
    assert made["difference"][0, 0] == 3.0


@pytest.mark.parametrize("given", [{"a": 1}, {"a": 1, "b": 2, "c": 3}])
def test_names_that_are_not_the_models_are_refused(given):
    tensors = {name: np.zeros((2, 3), np.float32) for name in given}
    with pytest.raises(errors.ArgumentError, match="takes a, b"):
        ml.gpu.predict(ml.gpu.load_model(sum_and_difference()), tensors)


def test_a_wrong_count_of_inputs_is_refused():
    with pytest.raises(errors.ArgumentError, match=r"takes 2 inputs \(a, b\), but 1 were"):
        ml.gpu.predict(ml.gpu.load_model(sum_and_difference()), np.zeros((2, 3), np.float32))


def test_what_is_no_tensor_is_refused():
    with pytest.raises(errors.ArgumentError, match="not str"):
        ml.gpu.predict(ml.gpu.load_model(doubling()), "cat.png")


def test_inputs_on_two_devices_are_refused(webgpu):
    model = ml.gpu.load_model(sum_and_difference())
    here = compute.buffer_zeros((2, 3), "f32")
    with compute.device("cpu"):
        there = compute.buffer_zeros((2, 3), "f32")
    for other in (there, np.zeros((2, 3), np.float32)):
        with pytest.raises(errors.DeviceError, match="buffers of one device"):
            ml.gpu.predict(model, [here, other])


def test_a_model_for_one_at_a_time_runs_for_each_of_a_batch(device):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    model = ml.gpu.load_model(doubling())
    np.testing.assert_array_equal(ml.gpu.predict(model, x), 2 * x)
    made = ml.gpu.predict(model, compute.from_numpy(x))
    np.testing.assert_array_equal(compute.read(made), 2 * x)


def test_a_batch_of_another_shape_is_refused():
    with pytest.raises(errors.ShapeError, match=r"\(1, 4\), but \(3, 5\)"):
        ml.gpu.predict(ml.gpu.load_model(doubling()), np.zeros((3, 5), np.float32))


def test_outputs_of_bools_come_as_arrays_or_masks(device):
    model = ml.gpu.load_model(comparing())
    x = np.array([[1.0, -1.0, 0.0]], np.float32)
    assert ml.gpu.predict(model, x).tolist() == [[True, False, False]]
    mask = ml.gpu.predict(model, compute.from_numpy(x))
    assert (mask.dtype, compute.read_list(mask)) == ("bool", [True, False, False])


def test_an_output_is_as_large_as_it_turns_out(device):
    model = ml.gpu.load_model(positives())
    x = np.array([0.0, 3.0, 0.0, 4.0], np.float32)
    assert ml.gpu.predict(model, x).tolist() == [[1, 3]]
    assert compute.read_list(ml.gpu.predict(model, compute.from_numpy(x))) == [1, 3]


def test_a_prediction_can_be_waited_for_and_awaited(device):
    model = ml.gpu.load_model(doubling())
    x = np.ones((1, 4), np.float32)
    command = ml.gpu.predict_async(model, x)
    x[:] = 5.0  # too late
    assert command.wait().tolist() == [[2.0] * 4]

    async def awaited():
        return await ml.gpu.predict_async(model, compute.from_numpy(x))

    assert compute.read_list(asyncio.run(awaited())) == [10.0] * 4


def test_a_buffer_may_be_freed_while_a_prediction_runs(device):
    x = compute.buffer([1.0, 2.0, 3.0, 4.0], (1, 4), "f32")
    command = ml.gpu.predict_async(ml.gpu.load_model(doubling()), x)
    x.free()
    assert compute.read_list(command.wait()) == [2.0, 4.0, 6.0, 8.0]


def test_a_prediction_waits_for_what_is_written_before(device):
    x, y = (compute.buffer([float(n)] * 4, (1, 4), "f32") for n in (1, 0))
    for _ in range(20):
        compute.submit(kernel="elementwise_add", inputs=[x, y], output=y)
    made = ml.gpu.predict_async(ml.gpu.load_model(doubling()), y).wait()
    assert compute.read_list(made) == [40.0] * 4


def test_several_threads_may_use_one_model():
    model = ml.gpu.load_model(doubling())
    inputs = [np.full((1, 4), n, np.float32) for n in range(50)]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda x: ml.gpu.predict(model, x)[0, 0], inputs))
    assert made == [2.0 * n for n in range(50)]
