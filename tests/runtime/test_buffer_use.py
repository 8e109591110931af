"""Buffers in use: refilled, seen by others, shared, freed."""

import copy
import ctypes
import gc
import io
import os
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest

from dala.errors import (
    ArgumentError,
    DeviceError,
    FreedError,
    ShapeError,
)
from dala.gpu import compute
from dala.ir.types import DTYPES
from dala.runtime.buffers.buffer import Buffer


@pytest.fixture
def unchanged():
    """Nothing that the test did may still hold memory when it ends, or it fails."""
    gc.collect()
    before = compute.memory()
    yield
    gc.collect()
    after = compute.memory()
    assert (after.live_bytes, after.live_blocks) == (before.live_bytes, before.live_blocks)


# Refilling


@pytest.mark.parametrize(
    "data", [[1.5, 2.5], np.array([1.5, 2.5]), np.array([1.5, 2.5], "f4").tobytes()]
)
def test_write_refills_in_place(data):
    buf = compute.buffer_zeros((2,), "f32")
    address = buf.memory.address
    compute.write(buf, data)
    assert compute.read_list(buf) == [1.5, 2.5]
    assert buf.memory.address == address


def test_write_takes_the_binary_of_another_buffer():
    source, target = compute.buffer([1.5, 2.5], 2, "f32"), compute.buffer_zeros(2, "f32")
    compute.write(target, compute.read_binary(source))
    assert compute.read_list(target) == [1.5, 2.5]


def test_write_reads_its_own_memory_correctly():
    buf = compute.buffer([1, 2, 3, 4], 4, "s32")
    compute.write(buf, np.asarray(buf)[::-1])
    assert compute.read_list(buf) == [4, 3, 2, 1]


@pytest.mark.parametrize("data", [[1.0], [1.0, 2.0, 3.0], b"1234567", b"123456789"])
def test_write_refuses_another_size(data):
    buf = compute.buffer([7.0, 7.0], 2, "f32")
    with pytest.raises(ShapeError):
        compute.write(buf, data)
    assert compute.read_list(buf) == [7.0, 7.0]


# Views and copies


def test_read_and_from_numpy_copy():
    source = np.ones(3, np.float32)
    buf = compute.from_numpy(source)
    copied, also = compute.read(buf), compute.to_numpy(buf)
    source[0] = copied[1] = also[2] = 9.0
    assert compute.read_list(buf) == [1.0, 1.0, 1.0]


def test_asarray_is_a_view_and_a_copy_where_asked():
    buf = compute.buffer([1.0, 2.0], 2, "f32")
    np.asarray(buf)[0] = 5.0
    buf.__array__()[1] = 6.0
    np.array(buf)[0] = buf.__array__(copy=True)[0] = 9.0
    assert compute.read_list(buf) == [5.0, 6.0]
    assert np.asarray(buf, np.float64).tolist() == [5.0, 6.0]
    assert buf.__array__(np.int32).dtype == np.int32
    with pytest.raises(ValueError, match="without a copy"):
        buf.__array__(np.int32, copy=False)


def test_dlpack_is_a_view():
    buf = compute.buffer([1.0, 2.0], (2, 1), "f32")
    np.from_dlpack(buf)[0, 0] = 5.0
    np.from_dlpack(buf, copy=True)[0, 0] = 9.0
    assert compute.read_list(buf) == [5.0, 2.0]
    assert buf.__dlpack_device__() == (1, 0)


def test_memoryview_bytes_and_files_see_the_memory():
    buf = compute.buffer([1.0, 2.0, 3.0, 4.0], (2, 2), "f32")
    view = memoryview(buf)
    assert (view.format, view.shape, view.readonly) == ("f", (2, 2), False)
    view[0, 1] = 5.0
    assert compute.read_list(buf) == [1.0, 5.0, 3.0, 4.0]
    assert bytes(buf) == compute.read(buf).tobytes()
    file = io.BytesIO()
    file.write(buf)
    assert file.getvalue() == bytes(buf)
    assert bytes(buf.__buffer__(0)) == bytes(buf)


def test_exported_memory_is_released(unchanged):
    buf = compute.buffer([1.0], 1, "f32")
    before = sys.getrefcount(buf)
    for _ in range(100):
        memoryview(buf).release()
        bytes(buf)
    assert sys.getrefcount(buf) == before


def test_read_binary_is_a_view_that_cannot_be_written():
    buf = compute.buffer([1, 2], (2, 1), "u32")
    view = compute.read_binary(buf)
    compute.write(buf, [3, 4])
    assert (view.format, view.shape, view.readonly) == ("B", (8,), True)
    assert view.tobytes() == np.array([3, 4], np.uint32).tobytes()


def test_pickle_and_copy_give_a_buffer_of_its_own():
    buf = compute.buffer([1.0, 2.0], (2, 1), "f32")
    for other in (pickle.loads(pickle.dumps(buf)), copy.copy(buf), copy.deepcopy(buf)):
        assert (other.shape, other.dtype) == ((2, 1), "f32")
        compute.write(other, [9.0, 9.0])
    assert compute.read_list(buf) == [1.0, 2.0]


@pytest.mark.parametrize("count", [3, 100_000])
def test_views_outlive_free(count, unchanged):
    buf = compute.buffer(np.arange(count), count, "f32")
    views = [
        np.asarray(buf),
        buf.__array__()[1:],
        np.from_dlpack(buf),
        np.asarray(memoryview(buf)),
        np.asarray(compute.read_binary(buf)),
    ]
    held = compute.memory().live_blocks
    buf.free()
    others = [compute.buffer(np.full(count, 9), count, "f32") for _ in range(10)]
    gc.collect()
    assert [view[-1] for view in views[:4]] == [count - 1] * 4
    assert compute.memory().live_blocks == held + len(others)


# Sharing


def test_from_dlpack_shares_an_array_and_keeps_it():
    source = np.arange(6, dtype=np.int32).reshape(2, 3)
    buf = compute.from_dlpack(source)
    source[0, 0] = 9
    assert buf.memory.address == source.ctypes.data
    alive = weakref.ref(source)
    del source
    gc.collect()
    assert compute.read(buf).tolist() == [[9, 1, 2], [3, 4, 5]]
    assert alive() is not None
    buf.free()
    assert alive() is None


def test_from_dlpack_takes_any_tensor_that_speaks_it():
    class Tensor:
        def __init__(self, values):
            self.values = values
            self.__dlpack__ = values.__dlpack__
            self.__dlpack_device__ = values.__dlpack_device__

    values = np.ones(4, np.float64)
    buf = compute.from_dlpack(Tensor(values))
    values[2] = 3.0
    assert compute.read_list(buf) == [1.0, 1.0, 3.0, 1.0]


def test_from_dlpack_copies_what_it_cannot_share():
    frozen = np.arange(4, dtype=np.float32)
    frozen.flags.writeable = False
    crooked = np.frombuffer(bytearray(17), np.uint8)[1:].view(np.float32)
    for source in (np.arange(8, dtype=np.float32)[::2], np.ones((2, 3), "f4").T, frozen, crooked):
        buf = compute.from_dlpack(source)
        assert buf.memory.address != source.ctypes.data
        assert compute.read(buf).tolist() == source.tolist()


def test_from_dlpack_does_not_count_or_pool_what_it_borrowed(unchanged):
    before = compute.memory()
    borrowed = compute.from_dlpack(np.zeros(1 << 20, np.uint8))
    assert compute.memory().live_bytes == before.live_bytes
    borrowed.free()
    assert compute.memory().pooled_bytes == before.pooled_bytes


def test_a_tensor_on_another_device_is_refused_with_advice():
    class OnGpu:
        def __dlpack_device__(self):
            return (2, 0)

    with pytest.raises(DeviceError, match=r"tensor\.cpu\(\)"):
        compute.from_dlpack(OnGpu())
    with pytest.raises(ArgumentError, match="list"):
        compute.from_dlpack([1.0])


def test_a_tensor_that_refuses_to_be_shared_says_why():
    class Stubborn:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **options):
            raise BufferError("call detach() first")

    with pytest.raises(ArgumentError, match=r"call detach\(\) first"):
        compute.from_dlpack(Stubborn())


# Freeing


@pytest.mark.parametrize(
    "use",
    [
        compute.read,
        compute.to_numpy,
        compute.read_list,
        compute.read_binary,
        lambda buf: compute.write(buf, [1.0]),
        lambda buf: buf.memory,
        np.asarray,
        np.from_dlpack,
        memoryview,
        bytes,
        lambda buf: io.BytesIO().write(buf),
        pickle.dumps,
    ],
)
def test_a_freed_buffer_cannot_be_used(use):
    buf = compute.buffer([1.0], (1,), "f32")
    compute.free(buf)
    compute.free(buf)
    with pytest.raises(FreedError, match=r"<Buffer f32 \(1,\) cpu, freed>"):
        use(buf)
    assert (buf.shape, buf.dtype, buf.size, buf.freed) == ((1,), "f32", 4, True)


def test_a_with_block_frees_at_its_end():
    with compute.buffer_zeros((2, 3), "f32") as buf:
        assert repr(buf) == "<Buffer f32 (2, 3) cpu>"
    assert buf.freed


def test_free_many_frees_all():
    buffers = [compute.buffer_zeros(3, "u8") for _ in range(3)]
    compute.free_many(iter(buffers))
    assert all(buf.freed for buf in buffers)


@pytest.mark.parametrize("count", [3, 100_000])
def test_ten_thousand_cycles_hold_nothing(count, unchanged):
    before = compute.memory()
    for cycle in range(10_000):
        buf = compute.buffer_zeros(count, "u8")
        if cycle % 2:
            buf.free()
    del buf
    assert compute.memory().live_blocks == before.live_blocks
    assert compute.memory().pooled_bytes <= before.pooled_bytes + 3 * count


def test_memory_counts_what_is_held_and_trim_gives_the_rest_back(unchanged):
    compute.trim()
    before = compute.memory().live_bytes
    buf = compute.buffer_zeros((1000, 1000), "f32")
    assert compute.memory().live_bytes == before + buf.size
    buf.free()
    assert compute.memory().live_bytes == before
    assert compute.memory().pooled_bytes >= buf.size
    assert compute.trim() >= buf.size
    assert compute.memory().pooled_bytes == 0


def test_an_error_leaves_nothing_behind(unchanged):
    for _ in range(10):
        with pytest.raises(ShapeError):
            compute.buffer([1.0], (3,), "f32")
        with pytest.raises(ArgumentError):
            compute.buffer([float("nan")], (1,), "u8")


def test_threads_make_use_and_free_buffers_side_by_side(unchanged):
    wrong = []

    def work(seed):
        for turn in range(100):
            size = 10 if turn % 2 else 70_000
            buf = compute.buffer_zeros(size, "u8")
            view = np.asarray(buf)
            if view.any():
                wrong.append(seed)
            view[...] = seed
            buf.free()
            if not (view == seed).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_buffers_of_its_own():
    buf = compute.buffer([1.0, 2.0], 2, "f32")
    child = os.fork()
    if child == 0:
        compute.write(buf, [9.0, 9.0])
        fine = compute.read_list(buf) == [9.0, 9.0] and not any(
            bytes(compute.buffer_zeros(9, "u8"))
        )
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert compute.read_list(buf) == [1.0, 2.0]


def test_kernels_find_the_memory_by_plain_attributes():
    buf = compute.buffer([1.5], 1, "f32")
    assert isinstance(buf, Buffer)
    assert ctypes.c_float.from_address(buf._memory.address).value == 1.5
    assert buf.scalar is DTYPES["f32"]
