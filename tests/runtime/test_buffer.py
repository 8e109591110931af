"""Buffers: what goes in comes out, mistakes are refused before anything is allocated."""

import array
import re

import numpy as np
import pytest

from dala.devices.cpu.memory import Pool
from dala.errors import (
    ArgumentError,
    DtypeError,
    LimitError,
    ShapeError,
)
from dala.gpu import compute
from dala.ir.types import DTYPES

NAN = float("nan")
INFINITY = float("inf")


# What goes in comes out


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_round_trips(dtype):
    most = min(int(DTYPES[dtype].highest), 200) if DTYPES[dtype].kind != "f" else 200
    data = [0, 1, 1, most]
    buf = compute.buffer(data, (2, 2), dtype)
    assert (buf.shape, buf.dtype, buf.device) == ((2, 2), dtype, "cpu")
    assert buf.size == compute.size(buf) == compute.read(buf).nbytes
    assert compute.read(buf).dtype == DTYPES[dtype].numpy
    assert compute.read(buf).tolist() == [data[:2], data[2:]]
    assert compute.read_list(buf) == data
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
        if not scalar.is_float:
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


@pytest.mark.parametrize("dtype", ["float128", ">f4", "complex64", "U3"])
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
