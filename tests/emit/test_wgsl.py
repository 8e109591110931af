"""What is emitted as WGSL: which invocations compute what, and what they share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import dala
from dala.emit.wgsl.grid import Grid, grid_for, spread
from dala.emit.wgsl.shader import emit
from dala.gpu import compute
from dala.ir.types import dtype_of
from dala.plan.task import Task
from dala.runtime.kernels.specialization import specialized_task


def task(kernel: Callable, inputs: list[tuple[str, tuple[int, ...]]], output: tuple) -> Task:
    kinds = [(dtype_of(name), shape) for name, shape in (*inputs, output)]
    definition = dala.kernel(kernel).definition
    return specialized_task("k", definition, tuple(kinds[:-1]), tuple(kinds[-1:]), (), ())


def twice(x):
    return x * 2


def total(x):
    i, _ = dala.position(2)
    return sum(x[i, k] for k in range(x.shape[1]))


def product(a, b):
    i, j = dala.position(2)
    return sum(a[i, k] * b[k, j] for k in range(a.shape[1]))


def neighbours(x):
    i, j = dala.position(2)
    return x[i - 1, j] + x[i + 1, j]


def count(x, out: dala.Out):
    out.add(x, 1)


@pytest.mark.parametrize(
    ("kernel", "inputs", "output", "kind"),
    [
        (twice, [("f32", (100, 100))], ("f32", (100, 100)), "flat"),
        (neighbours, [("f32", (100, 100))], ("f32", (100, 100)), "grid"),
        (neighbours, [("u8", (100, 99))], ("u8", (100, 99)), "flat"),
        (neighbours, [("u8", (100, 100))], ("u8", (100, 100)), "grid"),
        (total, [("f32", (100, 64))], ("f32", (100, 1)), "rows"),
        (total, [("f32", (100, 63))], ("f32", (100, 1)), "grid"),
        (product, [("f32", (32, 64)), ("f32", (64, 32))], ("f32", (32, 32)), "products"),
        (product, [("s32", (32, 64)), ("s32", (64, 32))], ("s32", (32, 32)), "tiles"),
        (product, [("f32", (8, 64)), ("f32", (64, 32))], ("f32", (8, 32)), "grid"),
        (count, [("s32", (100,))], ("f64", (9,)), "serial"),
        (count, [("s32", (100,))], ("s64", (9,)), "flat"),
    ],
)
def test_the_grid_suits_the_task(kernel, inputs, output, kind):
    assert grid_for(task(kernel, inputs, output)).kind == kind


@pytest.mark.parametrize(
    ("kernel", "shapes"), [(total, ((9, 99), (9, 1))), (product, ((64, 64), (64, 64), (64, 64)))]
)
def test_a_sum_is_shared_through_workgroup_memory(kernel, shapes):
    given = task(kernel, [("f32", shape) for shape in shapes[:-1]], ("f32", shapes[-1]))
    text = emit(given.program, grid_for(given), frozenset(), "free").text
    assert "var<workgroup>" in text
    assert "workgroupBarrier();" in text


@pytest.mark.parametrize("groups", [1, 65_535, 65_536, 65_535 * 65_535, 65_535 * 65_535 + 1])
def test_no_axis_of_a_dispatch_has_more_groups_than_there_may_be(groups):
    x, y, z = spread(groups)
    assert max(x, y, z) <= 65_535
    assert groups <= x * y * z < groups + x * y


@pytest.mark.parametrize("domain", [(1,), (257,), (3, 5), (65_537, 1), (2, 3, 70_000)])
def test_a_dispatch_covers_its_domain(domain):
    for grid in (Grid("flat", 256, 1), Grid("grid", 64, 4), Grid("grid", 1, 256)):
        x, y, z = grid.dispatch(domain)
        rows = int(np.prod(domain[:-1]))
        if grid.kind == "flat":
            assert x * y * z * 256 >= rows * domain[-1]
        else:
            assert x * grid.columns >= domain[-1]
            assert y * z * grid.rows >= rows


@pytest.mark.usefixtures("webgpu")
def test_explain_shows_the_shader():
    x = compute.buffer_zeros((4, 4), "f32")
    shown = dala.kernel(neighbours).explain([x], compute.buffer_zeros((4, 4), "f32"))
    assert "WGSL, 1 × 1 × 1 workgroups" in shown
    assert "@compute @workgroup_size(" in shown
