"""Memory seen in another shape: never more of it than there is, whoever asks."""

import numpy as np
import pytest

from dala.devices import current_device, find_device
from dala.errors import ShapeError
from dala.gpu import compute
from dala.ir.types import F32, U8
from dala.kernels.tensor.elementwise import relu
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import beginning, reshaped, view


def floats(*shape: int) -> Buffer:
    return compute.from_numpy(np.ones(shape, np.float32))


@pytest.mark.parametrize("shape", [(7,), (1_000_000,), (2, 4), (5,), (-2, -3), ()])
def test_another_shape_of_other_counts_is_refused(device, shape):
    for buffer in (floats(2, 3), scratch((2, 3), "f32")):
        with pytest.raises(ShapeError):
            reshaped(buffer, shape)
    assert reshaped(floats(2, 3), (3, 2)).shape == (3, 2)


def test_the_error_of_another_shape_names_both_counts(device):
    with pytest.raises(ShapeError, match=r"6 elements, 24 bytes, but f32 \(7,\) has 7, 28 bytes"):
        reshaped(floats(2, 3), (7,))


def test_another_dtype_has_as_many_bytes(device):
    assert view(floats(2, 3), U8, (24,)).shape == (24,)
    with pytest.raises(ShapeError, match=r"25 bytes"):
        view(floats(2, 3), U8, (25,))


def test_a_beginning_is_never_more_than_there_is(device):
    assert beginning(floats(2, 3), (4,)).shape == (4,)
    with pytest.raises(ShapeError, match="28 bytes, but its memory has 24"):
        beginning(floats(2, 3), (7,))


def test_a_part_of_memory_is_never_more_than_there_is(device):
    memory = current_device().allocate(24)
    assert memory.part(20).size_bytes == 20
    with pytest.raises(ShapeError, match=r"25 bytes .* memory that has 24"):
        memory.part(25)


@pytest.mark.parametrize("shape", [(7,), (2**31 - 1, 2**31 - 1), (-1,), (-2, -3)])
def test_a_buffer_that_is_larger_than_its_memory_is_refused(device, shape):
    memory = current_device().allocate(24)
    with pytest.raises(ShapeError, match="its memory has 24"):
        Buffer(memory, F32, shape)


def test_a_task_on_memory_that_is_too_small_is_refused(device):
    small, large = floats(4).memory, floats(1000).memory
    key = (("f32", (1000,)), ("f32", (1000,)))
    runner, values = relu.prepared(current_device(), key, None)
    for inputs, output in (([small], large), ([large], small)):
        with pytest.raises(ShapeError, match=r"4,000 bytes .* 16"):
            runner.run(inputs, [output], values)
    runner.run([large], [large], values)


def test_a_group_on_memory_that_is_too_small_is_refused():
    """On the CPU, where a group is one function."""
    cpu = find_device("cpu")
    runners = []
    load = cpu.load_group

    def kept(group, needed):
        runners.append(load(group, needed))
        return runners[-1]

    with compute.device("cpu"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "load_group", kept)
        x, between, y = floats(64, 64), floats(64, 64), floats(64, 64)
        compute.pipeline().add(relu, [x], between).add(relu, [between], y).run()
        (runner,) = runners
        memories = {number: floats(64, 64).memory for number in runner.needs()}
        names = dict.fromkeys((name for step in runner.steps for name in step.params), 0.0)
        runner.run(memories, names)
        for number in memories:
            with pytest.raises(ShapeError, match=r"16,384 bytes .* 16"):
                runner.run({**memories, number: floats(4).memory}, names)


def test_a_copy_from_memory_that_is_too_small_is_refused(device):
    here = current_device()
    with pytest.raises(ShapeError, match=r"4,000 bytes .* 16"):
        here.copy(floats(4).memory, floats(1000).memory)


def test_a_write_of_more_than_there_is_room_for_is_refused(device):
    here = current_device()
    with pytest.raises(ShapeError, match=r"4,000 bytes .* 16"):
        here.write(floats(4).memory, np.ones(1000, np.float32))


def test_an_array_of_more_than_there_is_is_refused():
    with compute.device("cpu"), pytest.raises(ShapeError, match=r"20 bytes .* 16"):
        floats(4).memory.as_array(np.dtype(np.float32), (5,))


def test_a_texture_is_not_filled_from_less_than_its_pixels(webgpu):
    from dala.devices.webgpu.texture import Texture

    texture = Texture(find_device(webgpu), 64, 64)
    with pytest.raises(ShapeError, match=r"16,384 bytes .* 16"):
        texture.fill(floats(4).memory)
