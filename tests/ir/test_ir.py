"""The typed IR: what is folded, unrolled, shared, refused and shown."""

from __future__ import annotations

import pytest

from dala.errors import InternalError
from dala.ir.access import Access, accesses, is_elementwise, is_flat
from dala.ir.builder import Builder
from dala.ir.dump import dump
from dala.ir.nodes import Apply, Block, Const, For, If, Load, Output, Program, Reduce, While, walk
from dala.ir.simplify import simplify
from dala.ir.types import F32, S32, U8, promote
from dala.ir.verify import verify
from dala.lang.language_names import NAMES
from dala.lang.lower import Definition, Specialization
from dala.lang.source import from_text

ROW = (F32, 1, None)


def program(source: str, *inputs, out=ROW, consts=(), fold=True) -> Program:
    definition = Definition(from_text(source, NAMES, "<test>"))
    return definition.lower(Specialization(inputs or (ROW,), (out,), consts), fold=fold)


def count(given: Program, kind: type) -> int:
    return sum(isinstance(item, kind) for item in walk(given.body))


def test_constants_are_folded():
    found = program("def k(x):\n    return x + f32(2) * 3.0 - sqrt(f32(16))")
    assert [s.op for s in walk(found.body) if isinstance(s, Apply)] == ["add", "sub"]


def test_a_common_subexpression_is_computed_once():
    found = program("def k(x):\n    a = x * x + 1.0\n    b = x * x + 1.0\n    return a * b")
    assert [s.op for s in walk(found.body) if isinstance(s, Apply)] == ["mul", "add", "mul"]
    assert count(found, Load) == 1


def test_loops_of_constant_bounds_are_unrolled():
    source = (
        "def k(x, n: const):\n    t = 0.0\n    for i in range(n):\n        t += x * i\n    return t"
    )
    assert count(program(source, consts=(("n", 4),)), For) == 0
    assert count(program(source, consts=(("n", 100_000),)), For) == 1


def test_decided_branches_and_dead_values_are_dropped():
    source = "def k(x, n: const):\n    y = exp(x)\n    if n > 3:\n        return y\n    return x"
    small = program(source, consts=(("n", 1),))
    assert walk(small.body) == [small.body.results[0]]
    assert count(program(source, consts=(("n", 4),)), If) == 0


def test_without_folding_everything_stays():
    source = "def k(x):\n    t = 0.0\n    for i in range(3):\n        t += x\n    return t"
    plain = program(source, fold=False)
    assert count(plain, For) == 1
    assert count(simplify(plain), For) == 0


def test_identities_that_would_change_bits_are_not_applied():
    found = program("def k(x):\n    return (x + 0.0) * 0.0")
    assert [s.op for s in walk(found.body) if isinstance(s, Apply)] == ["add", "mul"]


def test_what_is_read_and_where_is_known():
    source = (
        "def k(own, near, far, unused):\n    (i,) = position(1)\n"
        "    return own + near[i - 1] + near[i + 1 + 1] + far[s32(own)]"
    )
    found = accesses(program(source, ROW, ROW, ROW, ROW))
    assert found["own"] == Access("own")
    assert found["near"] == Access("offsets", frozenset({(-1,), (2,)}))
    assert found["far"] == Access("anywhere")
    assert found["unused"] == Access("unused")


def test_only_kernels_that_know_no_position_are_elementwise():
    assert is_elementwise(program("def k(x):\n    return x * 2.0"))
    assert not is_elementwise(program("def k(x):\n    (i,) = position(1)\n    return x * i"))
    assert not is_elementwise(program("def k(x):\n    return x * len(x)"))


def test_what_is_looked_up_in_other_inputs_needs_no_rows():
    look_up = "def k(x, table):\n    return table[int(x)]"
    assert is_flat(program(look_up, ROW, ROW))
    assert not is_elementwise(program(look_up, ROW, ROW))
    assert not is_flat(program("def k(x):\n    return x[0] + x"))
    assert not is_flat(program("def k(x, table):\n    return table[len(x)] + x", ROW, ROW))


def test_the_dump_names_inputs_reads_and_statements():
    text = dump(program("def k(x, a: f32):\n    (i,) = position(1)\n    return x[i - 1] * a"))
    for part in ("kernel k", "x: f32, rank 1, read at offsets (-1,)", "param a: f32", "return %2"):
        assert part in text


def test_types_meet_as_documented():
    assert promote(U8, S32) is S32
    assert promote(S32, F32) is F32
    assert promote(NAMES["s64"].scalar, F32) is NAMES["f64"].scalar  # type: ignore[attr-defined]
    assert promote(S32, NAMES["u32"].scalar) is None  # type: ignore[attr-defined]


def broken(body: Block) -> Program:
    return Program("broken", (), (), (Output(F32, 1),), 1, body)


def test_the_verifier_finds_malformed_programs():
    one, whole = Const(F32, 1.0), Const(S32, 1)
    mixed = Apply(F32, "add", (one, whole))
    stray = Apply(F32, "neg", (one,))
    wrong_op = Apply(F32, "shl", (one, one))
    for body in (
        Block([mixed], (mixed,)),
        Block([], (stray,)),
        Block([wrong_op], (wrong_op,)),
        Block([stray, stray], (stray,)),
        Block([], (whole,)),
        Block([], ()),
    ):
        with pytest.raises(InternalError, match="malformed"):
            verify(broken(body))
    verify(broken(Block([stray], (stray,))))


def test_the_builder_wraps_and_rounds_constants():
    build = Builder()
    assert build.const(U8, 300).value == 44
    assert build.const(S32, 2**31).value == -(2**31)
    assert build.const(F32, 0.1).value == pytest.approx(0.1, abs=1e-8)
    assert build.const(F32, 0.0) is not build.const(F32, -0.0)


def test_while_and_reductions_keep_their_structure():
    source = (
        "def k(x):\n    n = 0\n    while x > n:\n        n += 1\n"
        "    return sum(x[i] for i in range(len(x))) + n"
    )
    found = program(source)
    assert (count(found, While), count(found, Reduce)) == (1, 1)
