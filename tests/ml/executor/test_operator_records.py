"""Every record of an operator is whole: one way to compute it, and only what ONNX has of it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import defs

from dala.gpu import compute
from dala.ir.types import F32, S32
from dala.ml.executor import operator_checks, rewriting
from dala.ml.executor.operators import OPERATORS
from dala.ml.onnx.contents import Node
from dala.runtime.kernels.kernel import from_source

NEWEST = 24
EVERY = pytest.mark.parametrize("name", OPERATORS)
ELEMENTWISE = pytest.mark.parametrize("name", [n for n, op in OPERATORS.items() if op.write])
INPUTS = {"BatchNormalization": 3, "Clip": 3}
INPUTS |= {"com.microsoft.BiasGelu": 2, "com.microsoft.Gelu": 1, "com.microsoft.QuickGelu": 1}
FOREIGN = {"SimplifiedLayerNormalization"} | {name for name in OPERATORS if "." in name}
"""Operators of ONNX Runtime, which ONNX does not describe."""
"""How many inputs an expression takes, where the operator has more or may have fewer."""


def schema_of(name: str) -> defs.OpSchema:
    return defs.get_schema(name, 9 if name == "Upsample" else NEWEST)


def node_of(name: str, **attributes) -> Node:
    return Node(name, "", ("a", "b", "c"), ("y",), attributes, NEWEST)


def test_records_stand_in_the_order_of_their_names():
    assert list(OPERATORS) == sorted(OPERATORS)


@EVERY
def test_an_operator_is_one_of_onnx_with_inputs_that_it_has(name):
    if name in FOREIGN:
        pytest.skip("ONNX does not describe it")
    schema, operator = schema_of(name), OPERATORS[name]
    assert all(0 < index < schema.max_input for index in operator.constants)
    assert len(set(operator.constants)) == len(operator.constants)


@EVERY
def test_an_operator_is_computed_in_one_way_by_kernels_or_of_constants(name):
    operator = OPERATORS[name]
    ways = [operator.expand is not None, operator.write is not None, operator.passes_on]
    assert sum(ways) == operator.has_kernels
    assert operator.has_kernels or operator.fold is not None


@EVERY
def test_what_belongs_to_kernels_stands_only_where_there_are_any(name):
    operator = OPERATORS[name]
    if operator.write is None:
        assert operator.write_integers is None
        assert operator.rewrite is rewriting.unchanged
    if not operator.has_kernels:
        assert operator.check is operator_checks.nothing
        assert not operator.takes_integers
        assert operator.constants == ()
    if operator.write_integers is not None:
        assert operator.takes_integers


@EVERY
def test_a_check_and_a_dtype_answer_for_a_node_without_attributes(name):
    node = node_of(name, **({"to": 1} if name == "Cast" else {}))
    assert OPERATORS[name].check(node, {}) == ""
    assert OPERATORS[name].gives(node) in (None, F32, S32)


@ELEMENTWISE
def test_an_expression_is_one_of_the_kernel_language(name, device):
    operator, count = OPERATORS[name], INPUTS.get(name, 0)
    if name not in FOREIGN:
        schema = schema_of(name)
        count = count or max(schema.min_input, 2 if schema.max_input > 2 else 0)
    names = [f"x{i}" for i in range(count)]
    node = node_of(name, **({"to": 1} if name == "Cast" else {}))
    kinds = [("f32", operator.write)]
    if operator.takes_integers:
        kinds.append(("s32", operator.write_integers or operator.write))
    for dtype, write in kinds:
        text = f"def made({', '.join(names)}):\n    return {write(node, names)}"
        inputs = [compute.buffer([1, 2, 3], (3,), dtype) for _ in names]
        out = compute.buffer_zeros((3,), "f32" if name == "Cast" else dtype)
        compute.run_kernel(from_source("made", text), inputs, out)
        assert np.isfinite(compute.read(out)).all()
