"""The kernel language, feature by feature: each kernel is run and compared with plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dala
from dala import errors
from dala.gpu import compute
from dala.runtime.kernels.kernel import from_source

VALUES = [-3.0, -1.0, 0.0, 0.5, 2.0, 7.0]
GAIN = 3
TABLE = (1.0, 10.0, 100.0)


def run(kernel, values=VALUES, dtype="f32", out_dtype=None, params=None):
    x = compute.buffer(values, (len(values),), dtype)
    out = compute.buffer_zeros((len(values),), out_dtype or dtype)
    compute.run_kernel(kernel, [x], out, params)
    return compute.read_list(out)


def test_both_sides_of_a_branch_may_set_a_name_to_one_thing(device):
    @dala.kernel
    def both(x, a: dala.f32 = 3.0):
        if x > 1.0:
            y = x
            b = a
        else:
            y = x
            b = a
        return y * b

    assert run(both) == [3.0 * value for value in VALUES]


def test_early_returns_leave_the_kernel(device):
    @dala.kernel
    def k(x):
        if x < 0.0:
            if x < -2.0:
                return -100.0
            return -1.0
        elif x == 0.0:
            return 50.0
        y = x + 1.0
        return y

    assert run(k) == [-100.0, -1.0, 50.0, 1.5, 3.0, 8.0]


def test_variables_set_in_branches_are_joined(device):
    @dala.kernel
    def k(x):
        a, b = 1, 2.0
        if x > 0.0:
            a = x
            b, a = a, b
        else:
            b -= 1.0
        return a * 10.0 + b

    assert run(k) == [11.0, 11.0, 11.0, 20.5, 22.0, 27.0]


def test_branches_of_different_types_meet(device):
    @dala.kernel
    def k(x):
        y = x * 0.5
        if x > 0.0:
            y = dala.s32(x) + 1
        z = dala.u8(y) if y > 1 else dala.s32(-7)
        if x < -2.0:
            z = dala.f64(z) / 4.0
        return y * 10.0 + z

    def plain(x):
        y = round(x) + 1 if x > 0 else x * 0.5
        z = min(max(round(y), 0), 255) if y > 1 else -7
        return y * 10 + (z / 4 if x < -2 else z)

    assert run(k) == [plain(x) for x in VALUES]


def test_loops_break_and_continue(device):
    @dala.kernel
    def k(x):
        total = 0
        for i in range(1, 10):
            if i == 3:
                continue
            if i > x:
                break
            total += i
        return total

    assert run(k) == [0.0, 0.0, 0.0, 0.0, 3.0, 25.0]


def test_a_break_leaves_its_own_loop_only(device):
    @dala.kernel
    def k(x):
        total = 0
        for i in range(5):
            for j in range(5):
                if j > i:
                    break
                total += 1
            n = 0
            while n < 10:
                n += 1
                if n > 3:
                    break
            total += n * 100
            if i >= x:
                break
        return total

    def plain(x):
        total = 0
        for i in range(5):
            total += i + 1 + 400
            if i >= x:
                break
        return total

    assert run(k) == [plain(x) for x in VALUES]


def test_while_loops_count_what_each_element_needs(device):
    @dala.kernel
    def k(x):
        turns = 0
        while x > 1.0:
            x = x / 2.0
            turns += 1
            if turns == 2:
                break
        return turns * 100.0 + x

    assert run(k) == [-3.0, -1.0, 0.0, 0.5, 101.0, 201.75]


def test_loops_nest_and_count_down(device):
    @dala.kernel
    def k(x):
        total = 0.0
        for i in range(3, 0, -1):
            for j in range(i):
                total += x * i + j
        return total

    want = [sum(x * i + j for i in range(3, 0, -1) for j in range(i)) for x in VALUES]
    assert run(k) == want


def test_run_time_bounds_may_differ_from_element_to_element(device):
    @dala.kernel
    def k(x, n: dala.s32):
        total = 0
        for i in range(dala.s32(x), n, 2):
            total += i
        return total

    values = list(range(-40, 40))
    x = compute.buffer(values, (80,), "s32")
    out = compute.buffer_zeros((80,), "s32")
    compute.run_kernel(k, [x], out, {"n": 9})
    assert compute.read_list(out) == [sum(range(v, 9, 2)) for v in values]


def test_closures_over_numbers_and_tables_are_captured_when_the_kernel_is_made(device):
    offset = 0.25

    @dala.kernel
    def k(x):
        total = offset
        for i in range(3):
            total += TABLE[i] * GAIN
        return x + total

    before = run(k)
    offset = 1000.0
    assert run(k) == before == [x + 333.25 for x in VALUES]


def test_functions_are_inlined_with_defaults_and_keywords(device):
    @dala.function
    def blend(a, b, share: dala.f32 = 0.5):
        if a < b:
            return a
        return a * (1.0 - share) + b * share

    @dala.kernel
    def k(x):
        return blend(x, 1.0) + blend(b=0.0, a=x, share=0.25)

    def plain(a, b, share=0.5):
        return a if a < b else a * (1 - share) + b * share

    assert run(k) == [plain(x, 1.0) + plain(x, 0.0, 0.25) for x in VALUES]


def test_python_names_mean_what_they_mean_in_python(device):
    @dala.kernel
    def k(x):
        return abs(x) + max(x, 0.0, 1.0) + min(x, 1.0) + int(x) + math.floor(x) + math.sqrt(4.0)

    want = [abs(x) + max(x, 0, 1) + min(x, 1) + int(x) + math.floor(x) + 2 for x in VALUES]
    assert run(k) == want


def test_powers_by_whole_numbers_are_exact(device):
    @dala.kernel
    def k(x):
        return x**3 + x**1 - 2**3

    assert run(k) == [x**3 + x - 8 for x in VALUES]


def test_const_parameters_unroll_loops(device):
    @dala.kernel
    def k(x, taps: dala.const = 1):
        (i,) = dala.position(1)
        total = 0.0
        for d in range(-taps, taps + 1):
            total += x[i + d]
        return total

    padded = np.pad(VALUES, 2, mode="edge")
    assert run(k, params={"taps": 2}) == [sum(padded[i : i + 5]) for i in range(6)]
    assert run(k) == [sum(padded[i + 1 : i + 4]) for i in range(6)]


def test_number_parameters_take_the_type_of_the_data(device):
    @dala.kernel
    def k(x, by: dala.number):
        return x + by

    assert run(k, [1, 250], "u8", params={"by": 10}) == [11, 4]
    assert run(k, [1, 250], "u8", params={"by": 10.5}) == [12, 255]
    assert run(k, [2**53 + 1], "s64", params={"by": 2}) == [2**53 + 3]
    assert run(k, [0.0], "f64", params={"by": 0.1}) == [0.1]
    with pytest.raises(errors.ArgumentError, match="300"):
        run(k, [1], "u8", params={"by": 300})


def test_integers_wrap_and_divide_downwards(device):
    @dala.kernel
    def k(x):
        return (x * 2147483647) // 3 + x % -4

    def wrapped(value):
        return (value + 2**31) % 2**32 - 2**31

    values = [-7, -1, 0, 5, 2**31 - 1]
    want = [wrapped(wrapped(v * 2147483647) // 3 + v % -4) for v in values]
    assert run(k, values, "s32") == want


def test_true_division_of_integers_gives_floats(device):
    @dala.kernel
    def k(x):
        return x / 2

    assert run(k, [1, 2, 5], "s32", "f32") == [0.5, 1.0, 2.5]


def test_conversions_round_to_even_and_saturate(device):
    @dala.kernel
    def k(x):
        return dala.f32(dala.u8(x)) + dala.f32(x > 1.0)

    assert run(k, [-5.0, 0.5, 1.5, 2.5, 300.0]) == [0.0, 0.0, 3.0, 3.0, 256.0]


def test_reductions_over_generators(device):
    @dala.kernel
    def k(x):
        n = len(x)
        low = min(x[i] for i in range(n))
        high = max(x[i] for i in range(n) if x[i] < 5.0)
        return sum(x[i] * x[j] for i in range(n) for j in range(n)) + 100.0 * low + 10.0 * high

    total = sum(VALUES) ** 2 - 300.0 + 20.0
    assert run(k) == pytest.approx([total] * 6)


def test_positions_and_shapes_of_three_axes(device):
    @dala.kernel
    def k(x):
        i, j, m = dala.position(3)
        a, b, c = dala.shape(3)
        return x[i, j, 0] * 0.0 + ((i * 10 + j) * 10 + m) + a * b * c * 1000 + len(x) * 0

    x = compute.buffer_zeros((2, 3, 4), "f32")
    out = compute.buffer_zeros((2, 3, 4), "f32")
    compute.run_kernel(k, [x], out)
    i, j, m = np.indices((2, 3, 4))
    assert (compute.read(out) == i * 100 + j * 10 + m + 24000).all()


def test_kernels_that_suit_only_some_dtypes_are_accepted(device):
    @dala.kernel
    def halves(x):
        return dala.bits(x, dala.s64) >> 52

    @dala.kernel
    def pick(x, where):
        return dala.bits(x[where], dala.s32) & 0

    assert run(halves, [1.0, 2.0], "f64", "s64") == [1023, 1024]
    x, where = compute.buffer([1.0, 2.0], (2,), "f32"), compute.buffer([1, 0, 1], (3,), "s32")
    out = compute.buffer_zeros((3,), "s32")
    compute.run_kernel(pick, [x, where], out)
    assert compute.read_list(out) == [0, 0, 0]


def test_elements_that_go_round_differently_often_read_by_the_same_counter(device):
    @dala.kernel
    def loop(x, y):
        total = 0.0
        for n in range(dala.s32(x)):
            total += y[n]
        return total

    @dala.kernel
    def reduction(x, y):
        return sum(y[n] for n in range(dala.s32(x)))

    counts = np.arange(40, dtype=np.float32) % 7
    values = np.arange(40, dtype=np.float32) * 10
    x, y = compute.from_numpy(counts), compute.from_numpy(values)
    for kernel in (loop, reduction):
        out = compute.buffer_zeros((40,), "f32")
        compute.run_kernel(kernel, [x, y], out)
        assert compute.read_list(out) == [float(values[: int(n)].sum()) for n in counts]


def test_literals_are_as_precise_as_what_they_meet(device):
    @dala.kernel
    def k(x):
        w = 0.1
        if x > 1.5:
            w = 0.2
        v = 0.3 if x > 1.5 else 0.7
        return x**0.1 + dala.mix(x, 1.0, 0.1) + x * w + v * x + x * math.sqrt(2.0)

    def plain(x):
        w, v = (0.2, 0.3) if x > 1.5 else (0.1, 0.7)
        return x**0.1 + (x + (1 - x) * 0.1) + x * w + v * x + x * math.sqrt(2.0)

    values = [1.25, 3.0]
    assert run(k, values, "f64") == pytest.approx([plain(x) for x in values], rel=1e-15)


def test_literals_that_only_look_alike_stay_apart(device):
    @dala.kernel
    def k(x):
        return 1.0 / (0.0 if x > 0.0 else -0.0)

    assert run(k, [1.0, -1.0]) == [math.inf, -math.inf]


def test_powers_of_literals_follow_ieee(device):
    @dala.kernel
    def k(x):
        return x + (0.0**-1.0) + (10.0**400.0) + (7.0 % 0.0 if x > 99.0 else 0.0)

    @dala.kernel
    def root(x):
        return x * (-8.0) ** 0.5

    assert run(k, [1.0]) == [math.inf]
    assert math.isnan(run(root, [1.0])[0])


def test_texts_may_stand_at_the_left_margin(device):
    @dala.kernel
    def k(x):
        """Text that
        goes on at the margin."""
        # and a comment
        return x + 1.0

    assert run(k, [1.0]) == [2.0]


def test_a_whole_position_is_an_index(device):
    @dala.kernel
    def k(x, y):
        p = dala.position(2)
        return x[p] + y.shape[2]

    x, y = compute.buffer([1.0, 2.0], (1, 2), "f32"), compute.buffer_zeros((1, 1, 7), "f32")
    out = compute.buffer_zeros((1, 2), "f32")
    compute.run_kernel(k, [x, y], out)
    assert compute.read_list(out) == [8.0, 9.0]


@dala.kernel
def add_columns(x, y):
    _, j = dala.position(2)
    return x + y[j]


@dala.kernel
def add_rows_and_columns(x, rows, planes):
    i, j, k = dala.position(3)
    return x + rows[i] + planes[j, k]


@dala.kernel
def look_up(x, table):
    place = dala.position(2)
    index = dala.s32(x[place])
    return x + table[index]


AS_TEXT = "def k(x, y):\n    i, j = dala.position(2)\n    return x + y[j]"


def run_on_arrays(kernel, *arrays):
    out = compute.buffer_zeros(arrays[0].shape, "f32")
    compute.run_kernel(kernel, [compute.from_numpy(item) for item in arrays], out)
    return compute.read(out)


@pytest.mark.parametrize("kernel", [add_columns, from_source("k", AS_TEXT)], ids=["def", "text"])
def test_a_name_alone_is_an_index_beside_an_input_of_more_axes(device, kernel):
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32([10, 20, 30])
    assert np.array_equal(run_on_arrays(kernel, x, y), x + y)


def test_inputs_of_different_ranks_are_indexed_by_names(device):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    rows, planes = np.float32([100, 200]), x[0] * 7
    want = x + rows[:, None, None] + planes
    assert np.array_equal(run_on_arrays(add_rows_and_columns, x, rows, planes), want)


def test_a_name_that_holds_a_position_is_as_many_indices(device):
    x, table = np.float32([[0, 2], [1, 0]]), np.float32([5, 6, 7])
    assert np.array_equal(run_on_arrays(look_up, x, table), x + table[x.astype(int)])


def test_an_input_indexed_in_two_ways_is_refused():
    def k(x):
        i, j = dala.position(2)
        return x[i] + x[i, j]

    with pytest.raises(errors.KernelTypeError, match="`x` has 2 axes, but is indexed by 1"):
        dala.kernel(k)


def test_const_parameters_may_be_conditions(device):
    @dala.kernel
    def k(x, up: dala.const, far: dala.const):
        if up and not far:
            return x + 1.0
        return x + 10.0 if up else x - 1.0

    x = np.zeros(3, np.float32)
    assert k(x, up=True, far=False).tolist() == [1.0] * 3
    assert k(x, up=True, far=True).tolist() == [10.0] * 3
    assert k(x, up=False, far=True).tolist() == [-1.0] * 3
    with pytest.raises(errors.KernelTypeError, match="a condition is needed here"):
        k(x, up=3, far=True)


def test_loops_whose_bounds_come_from_unrolled_ones_share_a_limit():
    @dala.kernel
    def triangle(x):
        total = x * 0.0
        for i in range(100):
            for j in range(i * 3):
                total = total * 0.5 + x * j
        return total

    with compute.device("cpu"):
        x, out = (compute.buffer_zeros(4, "f32") for _ in range(2))
        said = triangle.explain([x], out)
    assert 0 < said.count(" = for ") < 100
    assert len(said) < 2_000_000
