"""Buffers: what goes in comes out, mistakes are refused before anything is allocated."""

import array
import copy
import ctypes
import gc
import io
import os
import pickle
import re
import sys
import threading
import weakref

import numpy as np
import pytest

from dala.devices.memory import Pool
from dala.errors import (
    ArgumentError,
    DeviceError,
    DtypeError,
    FreedError,
    LimitError,
    ShapeError,
)
from dala.gpu import compute
from dala.ir.types import DTYPES
from dala.runtime.buffer import Buffer

NAN = float("nan")
INFINITY = float("inf")


@pytest.fixture
def unchanged():
    """Nothing that the test did may still hold memory when it ends, or it fails."""
    gc.collect()
    before = compute.memory()
    yield
    gc.collect()
    after = compute.memory()
    assert (after.live_bytes, after.live_blocks) == (before.live_bytes, before.live_blocks)


# What goes in comes out


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_round_trips(dtype):
    buf = compute.buffer([0, 1, 2, 200], (2, 2), dtype)
    assert (buf.shape, buf.dtype, buf.device) == ((2, 2), dtype, "cpu")
    assert buf.size == compute.size(buf) == compute.read(buf).nbytes
    assert compute.read(buf).dtype == DTYPES[dtype].numpy
    assert compute.read(buf).tolist() == [[0, 1], [2, 200]]
    assert compute.read_list(buf) == [0, 1, 2, 200]
    assert bytes(compute.read_binary(buf)) == compute.read(buf).tobytes()


@pytest.mark.parametrize(
    "data",
    [
        [1, 2, 3, 4],
        (1, 2, 3, 4),
        [[1, 2], [3, 4]],
        range(1, 5),
        [1.0, 2.0, 3.0, 4.0],
        b"\x01\x02\x03\x04",
        bytearray(b"\x01\x02\x03\x04"),
        memoryview(b"\x01\x02\x03\x04"),
        np.array([1, 2, 3, 4], np.int64),
        np.array([[1, 3], [2, 4]], np.float64).T,
        np.array([1, 9, 2, 9, 3, 9, 4, 9], np.uint8)[::2],
        [np.int8(1), True + 1, 3.0, 4],
    ],
)
def test_data_of_many_kinds_is_taken(data):
    assert compute.read(compute.buffer(data, (2, 2), "u8")).tolist() == [[1, 2], [3, 4]]


def test_data_may_be_another_buffer():
    first = compute.buffer([1, 2, 3], (3,), "s32")
    assert compute.read_list(compute.buffer(first, (3,), "f32")) == [1.0, 2.0, 3.0]


def test_integers_among_floats_are_not_rounded_to_floats():
    values = [2**53 + 1, 1.0]
    assert compute.read_list(compute.buffer(values, (2,), "s64")) == [2**53 + 1, 1]


def test_the_extremes_of_integers_are_kept():
    for scalar in DTYPES.values():
        if scalar.is_integer:
            ends = [scalar.lowest, scalar.highest]
            assert compute.read_list(compute.buffer(ends, (2,), scalar.name)) == ends


def test_a_float_too_large_for_f32_becomes_infinite():
    values = compute.read_list(compute.buffer([1e300, -1e300, 2**70, NAN], (4,), "f32"))
    assert values[:3] == [INFINITY, -INFINITY, 2.0**70]
    assert values[3] != values[3]


def test_binary_of_any_kind_is_kept_byte_for_byte():
    floats = array.array("f", [1.5, -2.5])
    for data in (floats.tobytes(), bytearray(floats.tobytes()), memoryview(floats), floats):
        assert compute.read_list(compute.buffer_from_binary(data, (2,), "f32")) == [1.5, -2.5]


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 5, 2)])
def test_an_empty_buffer_is_valid(shape):
    for buf in (
        compute.buffer([], shape, "f32"),
        compute.buffer_zeros(shape, "f32"),
        compute.buffer_from_binary(b"", shape, "f32"),
        compute.from_numpy(np.zeros(shape, np.float32)),
        compute.from_dlpack(np.zeros(shape, np.float32)),
    ):
        assert (buf.size, buf.shape) == (0, shape)
        assert compute.read(buf).shape == shape
        assert compute.read_list(buf) == []
        assert bytes(buf) == bytes(compute.read_binary(buf)) == b""


def test_a_buffer_without_dimensions_has_one_element():
    buf = compute.buffer(2.5, (), "f64")
    assert (buf.shape, buf.size) == ((), 8)
    assert compute.read(buf) == 2.5
    assert compute.read_list(buf) == [2.5]


@pytest.mark.parametrize("shape", [3, [3], np.int64(3), (np.uint8(3),), np.array([3])])
def test_a_shape_may_be_written_in_several_ways(shape):
    made = compute.buffer_zeros(shape, "u8").shape
    assert made == (3,)
    assert type(made[0]) is int


@pytest.mark.parametrize("count", [3, 100_000])
def test_a_recycled_buffer_reads_zeros(count):
    for _ in range(3):
        buf = compute.buffer_zeros((count,), "u8")
        assert not compute.read(buf).any()
        compute.write(buf, np.full(count, 255))
        buf.free()


# What is refused


@pytest.mark.parametrize(
    "shape",
    [
        *(-1, (2, -1), 2.0, (2.0,), NAN, (NAN,), (np.float64(2),)),
        *(True, (2, True), (np.True_,), None, (None,), ((2,), 3)),
        *("", "23", b"\x02", {2, 3}, {2: 3}),
    ],
)
def test_a_shape_that_is_none_is_refused_by_name(shape):
    with pytest.raises(ShapeError, match=re.escape(repr(shape))):
        compute.buffer_zeros(shape, "f32")


@pytest.mark.parametrize(
    "shape", [(2**31,), (2**31 - 1,) * 3, (0, 2**31 - 1, 2**31 - 1, 2**31 - 1), (1,) * 33]
)
def test_a_shape_that_cannot_be_addressed_is_refused(shape):
    with pytest.raises(LimitError):
        compute.buffer_zeros(shape, "f32")


def test_more_than_the_machine_holds_is_refused_with_both_numbers():
    with pytest.raises(LimitError, match=r"4,398,046,511,104 bytes .* only [\d,]+ are available"):
        compute.buffer_zeros((2**20, 2**20), "f32")


@pytest.mark.parametrize(
    ("data", "shape", "numbers"),
    [([1, 2], (3,), "2 .* 3"), ([[1, 2], [3, 4]], (3,), "4 .* 3"), ([], (1,), "0 .* 1")],
)
def test_data_that_does_not_fill_the_shape_is_refused_with_both_numbers(data, shape, numbers):
    with pytest.raises(ShapeError, match=numbers):
        compute.buffer(data, shape, "f32")


def test_wrong_data_is_refused_before_allocation(monkeypatch):
    def allocate(self, size_bytes, *, zeroed=True):
        raise AssertionError("allocated")

    monkeypatch.setattr(Pool, "allocate", allocate)
    with pytest.raises(ShapeError):
        compute.buffer([1.0], (2**20, 2**10), "f32")
    with pytest.raises(ShapeError):
        compute.buffer_from_binary(b"1", (2**20, 2**10), "f32")
    with pytest.raises(ArgumentError):
        compute.buffer([0.5], (1,), "u8")


def test_ragged_data_is_refused():
    with pytest.raises(ShapeError, match="grid"):
        compute.buffer([[1], [2, 3]], (3,), "f32")


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (256, "u8"),
        (-1, "u8"),
        (-1, "u32"),
        (2**32, "u32"),
        (2**31, "s32"),
        (2**63, "s64"),
        (2**64, "s64"),
        (-(2**63) - 1, "s64"),
        (0.5, "s32"),
        (NAN, "s32"),
        (INFINITY, "s64"),
        (2.0**63, "s64"),
        (np.array(2.0**63), "s64"),
        (np.array(300, np.int16), "u8"),
        (np.array(-1, np.int8), "u32"),
    ],
)
def test_what_an_integer_buffer_cannot_hold_is_refused_with_its_place(value, dtype):
    with pytest.raises(ArgumentError, match="element 1 of the data is"):
        compute.buffer([0, value], (2,), dtype)
    buf = compute.buffer([7, 7], (2,), dtype)
    with pytest.raises(ArgumentError):
        compute.write(buf, [0, value])
    assert compute.read_list(buf) == [7, 7]


def test_the_first_integer_beyond_s64_is_refused_as_a_float():
    with pytest.raises(ArgumentError, match=r"element 1 of the data is 9\.22"):
        compute.buffer(np.array([0.0, 2.0**63]), (2,), "s64")


@pytest.mark.parametrize("data", [["1"], "1", [None], [1j], [{}], {1}, [10**400], object()])
@pytest.mark.parametrize("dtype", ["f32", "s64"])
def test_data_that_is_no_number_is_refused(data, dtype):
    with pytest.raises(ArgumentError):
        compute.buffer(data, (1,), dtype)


def test_bytes_are_not_values_of_f32():
    with pytest.raises(ArgumentError, match="buffer_from_binary"):
        compute.buffer(b"abcd", (4,), "f32")


@pytest.mark.parametrize("data", ["abc", 3, [1, 2, 3], memoryview(bytes(6))[::2]])
def test_what_is_no_binary_is_refused(data):
    with pytest.raises(ArgumentError, match="contiguous bytes"):
        compute.buffer_from_binary(data, (3,), "u8")


def test_binary_of_another_length_is_refused_with_both_numbers():
    with pytest.raises(ShapeError, match=r"3 bytes .* 8\."):
        compute.buffer_from_binary(b"abc", (2,), "f32")


@pytest.mark.parametrize("dtype", ["float16", ">f4", "bool", "complex64", "U3"])
def test_an_array_of_another_dtype_is_refused_by_name(dtype):
    with pytest.raises(DtypeError, match=re.escape(str(np.dtype(dtype)))):
        compute.from_numpy(np.zeros(3, dtype))
    with pytest.raises(DtypeError):
        compute.from_dlpack(np.zeros(3, dtype))


def test_from_numpy_takes_arrays_only():
    with pytest.raises(ArgumentError, match="buffer"):
        compute.from_numpy([1.0])


def test_what_is_no_buffer_is_refused():
    good = compute.buffer_zeros(1, "u8")
    for call in (compute.read, compute.shape, compute.dtype, compute.size, compute.free):
        with pytest.raises(ArgumentError, match="list"):
            call([1.0])
    with pytest.raises(ArgumentError):
        compute.free_many([good, "x"])
    assert not good.freed


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
    compute.from_dlpack(np.zeros(MEGA := 1 << 20, np.uint8)).free()
    assert compute.memory().live_bytes < MEGA


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
            compute.buffer([NAN], (1,), "u8")


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
