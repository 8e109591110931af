"""The reference interpreter itself, on cases worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from reference.case import Case, run_reference


def interpret(source, *inputs, shape=None, dtype="s32", **rest):
    arrays = tuple(np.asarray(item) for item in inputs)
    case = Case(source, arrays, shape or arrays[0].shape, dtype, **rest)
    (plain,), (folded,) = run_reference(case, fold=False), run_reference(case)
    assert np.array_equal(plain, folded, equal_nan=True)
    return plain.tolist()


def s32(*values):
    return np.array(values, np.int32)


BORDERS = {
    "clamp": [10, 10, 10, 10, 10, 20, 30, 30, 30, 30, 30],
    "mirror": [10, 20, 30, 20, 10, 20, 30, 20, 10, 20, 30],
    "reflect": [30, 30, 20, 10, 10, 20, 30, 30, 20, 10, 10],
    "wrap": [30, 10, 20, 30, 10, 20, 30, 10, 20, 30, 10],
    "zero": [0, 0, 0, 0, 10, 20, 30, 0, 0, 0, 0],
}


@pytest.mark.parametrize("border", BORDERS)
def test_a_read_outside_follows_the_border_rule(border):
    source = "def k(x):\n    (i,) = position(1)\n    return x[i - 4]"
    assert interpret(source, s32(10, 20, 30), shape=(11,), border=border) == BORDERS[border]


@pytest.mark.parametrize(("border", "outside"), [(b, 0 if b == "zero" else 7) for b in BORDERS])
def test_a_single_element_is_found_from_anywhere(border, outside):
    source = "def k(x):\n    (i,) = position(1)\n    return x[i - 2]"
    expected = [outside, outside, 7, outside]
    assert interpret(source, s32(7), shape=(4,), border=border) == expected


@pytest.mark.parametrize("border", BORDERS)
def test_an_empty_input_reads_as_zero(border):
    source = "def k(x):\n    (i,) = position(1)\n    return x[i] + 5"
    assert interpret(source, s32(), shape=(2,), border=border) == [5, 5]


def test_each_axis_has_its_own_border():
    source = "def k(x):\n    i, j = position(2)\n    return x[i + 1, j - 1]"
    x = np.array([[1, 2, 3], [4, 5, 6]], np.int32)
    assert interpret(source, x) == [[4, 4, 5], [4, 4, 5]]
    assert interpret(source, x, border="wrap") == [[6, 4, 5], [3, 1, 2]]


def test_positions_and_sizes_are_those_of_the_axes():
    source = "def k(x):\n    i, j = position(2)\n    return 100 * i + 10 * j + x.shape[0]"
    assert interpret(source, s32(1, 2, 3, 4), shape=(2, 3)) == [[4, 14, 24], [104, 114, 124]]


def test_a_while_loop_stops_at_each_position_by_itself():
    source = """def k(x):
        turns = 0
        while x > 1:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            turns += 1
        return turns * 1000 + x"""
    assert interpret(source, s32(1, 2, 3, 6, 0)) == [1, 1001, 7001, 8001, 0]


def test_a_for_loop_counts_as_range_does_at_each_position():
    source = """def k(x):
        seen = 0
        for n in range(x, 10, 4):
            seen = seen * 100 + n
        for n in range(3, x, -2):
            seen = seen * 100 + n
        return seen"""
    assert interpret(source, s32(10, 5, 1, 0)) == [0, 509, 1050903, 4080301]


def test_a_counter_does_not_wrap_at_the_end_of_its_type():
    source = """def k(x):
        turns = 0
        for n in range(x, 2147483647, 100):
            turns += 1
        return turns"""
    assert interpret(source, s32(2147483646, 2147483500, 2147483647)) == [1, 2, 0]


def test_break_and_continue_concern_only_their_own_position():
    source = """def k(x):
        total = 0
        for n in range(6):
            if n == x:
                continue
            if n > x + 2:
                break
            total += n
        return total"""
    assert interpret(source, s32(0, 1, 9, -3)) == [3, 5, 15, 0]


def test_branches_return_early():
    source = """def k(x):
        if x < 0:
            return -1
        elif x > 5:
            return 100
        y = x * 2
        return y"""
    assert interpret(source, s32(-4, 0, 3, 6)) == [-1, 0, 6, 100]


def test_an_integer_sum_wraps_and_an_empty_minimum_is_the_highest():
    total = "def k(x):\n    return sum(x for n in range(3))"
    assert interpret(total, s32(2147483647, -5)) == [2147483645, -15]
    least = "def k(x):\n    return min(x + n for n in range(x))"
    assert interpret(least, s32(0, 2)) == [2147483647, 2]


def test_a_sum_of_f32_is_rounded_once():
    source = "def k(x):\n    return sum(x[n] for n in range(3))"
    x = np.array([1e8, 1.0, -1e8], np.float32)
    assert interpret(source, x, shape=(1,), dtype="f32") == [1.0]


def test_an_image_is_read_and_written_by_channels():
    source = "def k(image: Image):\n    p = image.pixel\n    return rgba(p.b, p.r, p.g)"
    pixels = np.array([[[0, 51, 255], [1, 2, 3]]], np.uint8)
    found = interpret(source, pixels, shape=(1, 2, 4), dtype="u8")
    assert found == [[[255, 0, 51, 255], [3, 1, 2, 255]]]


def test_a_gray_image_is_stored_without_an_axis_for_channels():
    source = "def k(image: Image):\n    y, x = position(2)\n    return 1.0 - image[y, x + 1]"
    assert interpret(source, np.array([[0, 255, 100]], np.uint8), dtype="u8") == [[0, 155, 155]]


def test_writes_go_anywhere_and_outside_they_are_skipped():
    source = "def k(x, out: Out):\n    (i,) = position(1)\n    out[i * 2 - 2] = x"
    assert interpret(source, s32(1, 2, 3, 4, 5), shape=(5,)) == [2, 0, 3, 0, 4]


def test_of_two_writes_to_one_place_the_later_position_wins():
    source = "def k(x, out: Out):\n    out[x] = x * 10 + position(1)[0]"
    assert interpret(source, s32(1, 1, 0, 1), shape=(3,)) == [2, 13, 0]


def test_additions_to_one_place_add_up_where_the_branch_is_taken():
    source = """def k(x, out: Out):
        if x != 7:
            out.add(x, 1)
        else:
            out.add(0, 100)"""
    assert interpret(source, s32(1, 7, 1, 2, -1, 7, 3), shape=(3,)) == [200, 2, 1]


def test_writes_in_a_loop_stop_with_the_loop():
    source = """def k(x, out: Out):
        i, j = position(2)
        for n in range(x):
            out.add((j, i), n + 1)"""
    assert interpret(source, np.array([[0, 1], [2, 3]], np.int32)) == [[0, 3], [1, 6]]


def test_parameters_take_their_own_type():
    source = "def k(x, a: u8, b: f32):\n    return f64(x) * a + b"
    found = interpret(source, s32(1, -2), dtype="f64", params={"a": 250, "b": 0.1})
    assert found == [250 + float(np.float32(0.1)), -500 + float(np.float32(0.1))]
