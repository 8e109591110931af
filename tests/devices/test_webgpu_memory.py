"""Memory on a WebGPU device: how it is filled, read, reused and given back."""

import gc
import threading

import numpy as np
import pytest

from dala.devices.cpu.memory import HOST
from dala.errors import DeviceError, LimitError, MemoryLimitError
from dala.gpu import compute

wgpu = pytest.importorskip("wgpu", reason="needs wgpu: pip install dala-gpu[gpu]")

from dala.base.size_classes import size_class  # noqa: E402
from dala.devices.webgpu.memory import SMALLEST_BYTES, Blocks  # noqa: E402
from dala.devices.webgpu.transfer import CHUNK_BYTES  # noqa: E402


def noise(size_bytes):
    return np.random.default_rng(size_bytes).integers(0, 256, size_bytes, np.uint8)


def gpu_buffers():
    gc.collect()
    return sum(issubclass(type(each), wgpu.GPUBuffer) for each in gc.get_objects())


SIZES = [0, 1, 2, 3, 4, 5, 7, 255, 257, 65_537]
LARGE = [CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES + 5]


@pytest.mark.parametrize("size_bytes", [*SIZES, *LARGE])
def test_bytes_come_back_as_they_were_written(gpu, size_bytes):
    memory = gpu.allocate(size_bytes, zeroed=False)
    data = noise(size_bytes)
    gpu.write(memory, data)
    assert np.array_equal(gpu.read(memory), data)


def test_the_last_bytes_are_written_alone(gpu):
    memory = gpu.allocate(8)
    gpu.write(memory, np.arange(1, 8, dtype=np.uint8))
    assert gpu.read(memory).tolist() == [1, 2, 3, 4, 5, 6, 7, 0]


@pytest.mark.parametrize("dtype", ["f32", "f64", "s32", "s64", "u32", "u8"])
def test_every_dtype_can_be_stored(gpu, dtype):
    with compute.device(gpu):
        x = compute.buffer([1, 2, 3], (3,), dtype)
        assert x.device == "webgpu"
        assert compute.read_list(x) == [1, 2, 3]
        compute.write(x, [4, 5, 6])
        assert compute.read_list(x) == [4, 5, 6]


def test_a_buffer_moves_to_the_cpu_and_back(gpu):
    with compute.device(gpu):
        x = compute.buffer([1.5, 2.5], (2,), "f32")
    there = x.to("cpu")
    assert there.device == "cpu"
    assert compute.read_list(there) == [1.5, 2.5]
    assert compute.read_list(there.to(gpu)) == [1.5, 2.5]


def test_a_copy_copies_all_bytes(gpu):
    source, target = gpu.allocate(7), gpu.allocate(7)
    gpu.write(source, noise(7))
    gpu.copy(source, target)
    assert np.array_equal(gpu.read(target), noise(7))
    gpu.copy(target, target)
    assert np.array_equal(gpu.read(target), noise(7))


@pytest.mark.parametrize("size_bytes", [3, 100_000])
def test_recycled_memory_is_zero_unless_the_caller_fills_it(gpu, size_bytes):
    gpu.trim()
    memory = gpu.allocate(size_bytes)
    serial = memory.serial
    gpu.write(memory, noise(size_bytes))
    del memory
    again = gpu.allocate(size_bytes)
    assert again.serial == serial
    assert not gpu.read(again).any()


def test_what_is_given_back_is_counted_and_trimmed(gpu):
    gpu.trim()
    before = gpu.held()
    memory = gpu.allocate(1000)
    assert gpu.held().live_bytes == before.live_bytes + 1000
    assert gpu.held().live_blocks == before.live_blocks + 1
    del memory
    held = gpu.held()
    assert (held.live_bytes, held.live_blocks) == (before.live_bytes, before.live_blocks)
    assert held.pooled_bytes == size_class(1000, SMALLEST_BYTES)
    assert gpu.trim() == size_class(1000, SMALLEST_BYTES)
    assert gpu.held().pooled_bytes == 0


def test_no_more_than_the_limit_is_kept(gpu):
    blocks = Blocks(gpu.gpu, 1 << 20, limit_bytes=1000)
    taken = [blocks.take(256)[0] for _ in range(5)]
    blocks.returned.extend(taken)
    assert blocks.held().pooled_bytes == 3 * 256
    assert blocks.take(256)[0] in taken[2:]


def test_a_block_is_never_larger_than_a_buffer_may_be(gpu):
    blocks = Blocks(gpu.gpu, 1_000_000)
    assert size_class(999_990, SMALLEST_BYTES) > 1_000_000
    assert blocks.take(999_990)[0].buffer.size == 1_000_000


def test_serials_are_never_used_again(gpu):
    gpu.trim()
    first = gpu.allocate(4).serial
    gpu.trim()
    assert gpu.allocate(4).serial > first


def test_more_than_a_buffer_holds_is_refused_with_both_numbers(gpu):
    largest = gpu.info()["max_buffer_bytes"]
    with pytest.raises(LimitError, match=f"{largest + 1:,} bytes .* at most {largest:,}"):
        gpu.allocate(largest + 1)
    with pytest.raises(LimitError):
        gpu.allocate(1 << 62)
    assert gpu.allocate(largest).buffer.size == largest


def test_read_backs_reuse_their_staging_buffers(gpu, monkeypatch):
    memory = gpu.allocate(3 * CHUNK_BYTES)
    gpu.read(memory)
    monkeypatch.setattr(gpu.gpu, "create_buffer", refuse)
    for _ in range(5):
        gpu.read(memory)


def test_only_what_is_read_is_moved(gpu, monkeypatch):
    moved = []
    encoder = type(gpu.gpu.create_command_encoder())
    copy = encoder.copy_buffer_to_buffer

    def spy(self, source, at, target, to, size):
        moved.append(size)
        copy(self, source, at, target, to, size)

    memory = gpu.allocate(CHUNK_BYTES + 5)
    monkeypatch.setattr(encoder, "copy_buffer_to_buffer", spy)
    gpu.read(memory)
    assert moved == [CHUNK_BYTES, 8]


def test_threads_may_allocate_write_and_read_at_once(gpu):
    wrong = []

    def work(seed):
        for i in range(20):
            data = noise(1000 * seed + i)
            memory = gpu.allocate(data.size, zeroed=False)
            gpu.write(memory, data)
            if not np.array_equal(gpu.read(memory), data):
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def refuse(*_, **__):
    raise wgpu.GPUOutOfMemoryError("Not enough memory left.")


def test_20_out_of_memory_is_an_error_and_the_device_goes_on(gpu, monkeypatch):
    gpu.trim()
    live = gpu.held().live_blocks
    with monkeypatch.context() as patch:
        patch.setattr(gpu.gpu, "create_buffer", refuse)
        with pytest.raises(MemoryLimitError, match="no memory left"):
            gpu.allocate(1000)
    assert gpu.held().live_blocks == live
    assert not gpu.lost
    assert not gpu.read(gpu.allocate(1000)).any()


def test_20_out_of_memory_is_tried_again_with_what_was_kept(gpu, monkeypatch):
    gpu.trim()
    gpu.allocate(1 << 20)
    assert gpu.held().pooled_bytes
    create = gpu.gpu.create_buffer

    def refuse_once(**given):
        patch.setattr(gpu.gpu, "create_buffer", create)
        refuse()

    with monkeypatch.context() as patch:
        patch.setattr(gpu.gpu, "create_buffer", refuse_once)
        memory = gpu.allocate(1000)
    assert memory.size_bytes == 1000
    assert gpu.held().pooled_bytes == 0


def test_a_failed_mapping_is_an_error_and_its_staging_buffer_is_not_reused(gpu, monkeypatch):
    memory = gpu.allocate(3 * CHUNK_BYTES)
    data = noise(memory.size_bytes)
    gpu.write(memory, data)
    buffer = type(memory.buffer)
    read_mapped = buffer.read_mapped
    failing = iter([False, True])

    def fail_second(self, *args, **named):
        if next(failing):
            raise RuntimeError("Could not map buffer (3 : aborted).")
        return read_mapped(self, *args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(buffer, "read_mapped", fail_second)
        with pytest.raises(DeviceError, match="Could not map buffer"):
            gpu.read(memory)
    assert np.array_equal(gpu.read(memory), data)


def test_27_ten_thousand_cycles_leave_nothing_behind(gpu):
    gc.collect()
    gpu.trim()
    live, host = gpu.held().live_blocks, HOST.held().live_blocks
    buffers = gpu_buffers()
    with compute.device(gpu):
        for i in range(10_000):
            compute.free(compute.buffer_zeros((i % 500 + 1,), "f32"))
    assert gpu.held().live_blocks == live
    assert HOST.held().live_blocks == host
    # One block of each size that was asked for.
    assert gpu_buffers() - buffers <= 2000 // 256 + 1
    gpu.trim()
    assert gpu_buffers() == buffers
