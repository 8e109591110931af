"""Which positions of a scattering kernel write elements of their own; what covers the output."""

from __future__ import annotations

import pytest

from dala.ir.nodes import Apply, Load, Program, Reduce, walk
from dala.ir.siblings import grouped
from dala.ir.types import F32, S32
from dala.ir.writes import (
    covers_output,
    own_elements,
    rows_write_own_elements,
    writes_own_elements,
)
from dala.lang.language_names import NAMES
from dala.lang.lower import Definition, Specialization
from dala.lang.source import from_text


def scattering(body: str, rank: int = 1, out: int = 1) -> Program:
    names = ", ".join("ij"[:rank]) + ","
    lines = "".join(f"    {line}\n" for line in (f"{names} = position({rank})", *body.split("; ")))
    source = f"def k(x, a: s32, out: Out):\n{lines}"
    special = Specialization(((F32, rank, None),), ((F32, out, None),), (), (("a", S32),))
    return Definition(from_text(source, NAMES, "<test>")).lower(special)


@pytest.mark.parametrize(
    ("body", "rank", "out"),
    [
        ("out[i] = x", 1, 1),
        ("out[2 * i] = x; out[2 * i + 1] = 1.0", 1, 1),
        ("out[len(x) - 1 - i] = x", 1, 1),
        ("out[~i] = x", 1, 1),
        ("out[i, 0] = x; out[i, 1] = x; out[i, s32(x)] = x", 1, 2),
        ("out[a, i] = x", 1, 2),
        ("out[j, i] = x", 2, 2),
        ("out[i * x.shape[1] + j] = x", 2, 1),
        ("out.add(3 * (i * x.shape[1] + j) + 2, x)", 2, 1),
        ("out[i, j, 0] = x; out[i, j, 2] = x", 2, 3),
        ("for k in range(a):;     out.add((i, k), x)".replace(";     ", "\n        "), 1, 2),
    ],
)
def test_positions_that_write_elements_of_their_own_are_recognized(body, rank, out):
    assert own_elements(scattering(body, rank, out))


@pytest.mark.parametrize(
    ("body", "rank", "out"),
    [
        ("out[0] = x", 1, 1),
        ("out[s32(x)] = x", 1, 1),
        ("out[i] = x; out[i + 1] = x", 1, 1),
        ("out[i * a] = x", 1, 1),
        ("out[i] = x", 2, 1),
        ("out[i + j] = x", 2, 1),
        ("out[i * x.shape[0] + j] = x", 2, 1),
        ("out[i] = x; out[a - i] = x", 1, 1),
        ("out[i // 2] = x", 1, 1),
        ("out[i * (1 << 21)] = x", 1, 1),
    ],
)
def test_positions_that_may_share_an_element_are_told(body, rank, out):
    assert not own_elements(scattering(body, rank, out))


@pytest.mark.parametrize(
    ("body", "rank", "out", "apart"),
    [
        ("out.add((i, s32(x)), 1.0)", 2, 2, True),
        ("out.add((s32(x), i + 3), 1.0); out.add((0, i + 3), 1.0)", 2, 2, True),
        ("out.add((s32(x), j), 1.0)", 2, 2, False),
        ("out.add((i, s32(x)), 1.0); out.add((i + 1, 0), 1.0)", 2, 2, False),
        ("out.add(s32(x), 1.0)", 1, 1, False),
    ],
)
def test_rows_that_write_elements_of_their_own_are_recognized(body, rank, out, apart):
    program = scattering(body, rank, out)
    assert rows_write_own_elements(program, (50, 60)[:rank]) == apart


def test_positions_whose_index_wraps_around_share_elements():
    program = scattering("out.add(i * 1048576, x)")
    assert writes_own_elements(program, (2000,))
    assert not writes_own_elements(program, (5000,))


@pytest.mark.parametrize(
    ("body", "rank", "size", "covered"),
    [
        ("out[i] = x", 1, (7,), True),
        ("out[i] = x", 1, (8,), False),
        ("out[i] = x", 1, (6,), False),
        ("out[6 - i] = x", 1, (7,), True),
        ("out[len(x) - 1 - i] = x", 1, (7,), True),
        ("out[a - i] = x", 1, (7,), False),
        ("out[i, 0] = x; out[i, 1] = x; out[i, 2] = x", 1, (7, 3), True),
        ("out[i, 0] = x; out[i, 2] = x; out[i, 2] = x", 1, (7, 3), False),
        ("out[2 * i] = x; out[2 * i + 1] = x", 1, (14,), True),
        ("out.add(i, x)", 1, (7,), False),
        ("out[j, i] = x", 2, (5, 7), True),
        ("out[j, i] = x", 2, (7, 5), False),
        ("out[i * x.shape[1] + j] = x", 2, (35,), True),
    ],
)
def test_an_output_is_covered_when_every_element_is_stored_to(body, rank, size, covered):
    domain = (7, 5)[:rank]
    program = scattering(body, rank, len(size))
    assert covers_output(program, domain, {"x": domain, "out": size}) is covered


def test_a_store_under_a_condition_covers_nothing():
    program = scattering("if x > 0.0:\n        out[i] = x")
    assert own_elements(program)
    assert not covers_output(program, (7,), {"x": (7,), "out": (7,)})


def lowered(source: str) -> Program:
    special = Specialization(((F32, 2, None),), ((F32, 2, None),))
    return Definition(from_text(source, NAMES, "<test>")).lower(special)


def test_what_no_iteration_changes_is_computed_before_the_loop():
    program = lowered(
        "def k(x):\n    i, j = position(2)\n"
        "    return sum(x[i, k] * exp(x[j, 0]) for k in range(x.shape[1]))"
    )
    (loop,) = (item for item in walk(program.body) if isinstance(item, Reduce))
    assert [type(item) for item in loop.body.statements] == [Load, Apply]


def test_what_stands_in_a_branch_stays_there():
    program = lowered(
        "def k(x):\n    i, j = position(2)\n    t = x * 0.0\n    for k in range(x.shape[1]):\n"
        "        if x[i, k] > 0.0:\n            t += exp(x)\n    return t"
    )
    assert len(program.body.statements) < 5


def reductions(source: str) -> list[int]:
    """How many reductions each loop of the program's own block computes."""
    body = lowered(source).body
    return [len(group) for group in grouped(body.statements) if isinstance(group[0], Reduce)]


def test_sibling_reductions_become_one_loop():
    assert reductions(
        "def k(x):\n    i, j = position(2)\n    n = x.shape[1]\n"
        "    a = sum(x[i, k] for k in range(n))\n    b = exp(a)\n    c = x * 3.0\n"
        "    d = sum(x[i, k] * c for k in range(n))\n    return b + d"
    ) == [2]


def test_reductions_that_need_each_other_or_differ_keep_their_loops():
    assert reductions(
        "def k(x):\n    i, j = position(2)\n    n = x.shape[1]\n"
        "    a = sum(x[i, k] for k in range(n)) / n\n"
        "    b = sum((x[i, k] - a) * (x[i, k] - a) for k in range(n))\n"
        "    c = max(x[i, k] for k in range(n))\n"
        "    d = sum(x[k, j] for k in range(x.shape[0]))\n    return a + b + c + d"
    ) == [1, 1, 1, 1]
