"""Every record of an operator is whole: one way to compute it, and only what ONNX has of it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import defs

from dala.gpu import compute
from dala.ir.types import Scalar
from dala.ml.executor import rewriting
from dala.ml.executor.elementwise_operators import ELEMENTWISE as ELEMENTWISE_RECORDS
from dala.ml.executor.host_operators import FLOW, HOST
from dala.ml.executor.layer_records import LAYERS
from dala.ml.executor.movement_operators import MOVEMENT
from dala.ml.executor.operators import OPERATORS
from dala.ml.executor.reduction_operators import REDUCTIONS
from dala.ml.onnx.contents import Node
from dala.runtime.kernels.kernel import from_source

NEWEST = defs.onnx_opset_version()
EVERY = pytest.mark.parametrize("name", OPERATORS)
ELEMENTWISE = pytest.mark.parametrize("name", [n for n, op in OPERATORS.items() if op.write])
INPUTS = {"BatchNormalization": 3, "Clip": 3}
INPUTS |= {"com.microsoft.BiasGelu": 2, "com.microsoft.Gelu": 1, "com.microsoft.QuickGelu": 1}
FOREIGN = {"SimplifiedLayerNormalization"} | {name for name in OPERATORS if "." in name}
"""Operators of ONNX Runtime, which ONNX does not describe."""
"""How many inputs an expression takes, where the operator has more or may have fewer."""


def schema_of(name: str) -> defs.OpSchema:
    return defs.get_schema(name, {"Upsample": 9, "Scatter": 10}.get(name, NEWEST))


def node_of(name: str, **attributes) -> Node:
    return Node(name, "", ("a", "b", "c"), ("y",), attributes, NEWEST)


FAMILIES = (ELEMENTWISE_RECORDS, MOVEMENT, REDUCTIONS, HOST, FLOW, LAYERS)


def test_records_stand_in_the_order_of_their_names_in_one_family_each():
    assert all(list(family) == sorted(family) for family in FAMILIES)
    assert sum(map(len, FAMILIES)) == len(OPERATORS)


@EVERY
def test_an_operator_is_one_of_onnx_with_inputs_that_it_has(name):
    if name in FOREIGN:
        pytest.skip("ONNX does not describe it")
    schema, operator = schema_of(name), OPERATORS[name]
    assert all(0 <= index < schema.max_input for index in operator.constants)
    assert len(set(operator.constants)) == len(operator.constants)


@EVERY
def test_an_operator_is_computed_in_one_way(name):
    operator = OPERATORS[name]
    ways = [operator.expand, operator.write, operator.parts]
    assert sum(way is not None for way in ways) + operator.passes_on + operator.on_host == 1
    assert not operator.on_host or operator.fold is not None


@EVERY
def test_what_belongs_to_an_expression_stands_only_where_there_is_one(name):
    operator = OPERATORS[name]
    if operator.write is None:
        assert operator.write_integers is None
        assert operator.rewrite is rewriting.unchanged
        assert not operator.mixed
    if operator.write_integers is not None:
        assert operator.takes_integers


@EVERY
def test_a_check_and_a_dtype_answer_for_a_node_without_attributes(name):
    node = node_of(name, **({"to": 1} if "Cast" in name else {}))
    assert OPERATORS[name].check(node, {}) == ""
    assert isinstance(OPERATORS[name].gives(node), Scalar | None)


KINDS = {
    "And": "bool",
    "Not": "bool",
    "Or": "bool",
    "Xor": "bool",
    "BitShift": "s32",
    **dict.fromkeys(["BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"], "u8"),
}
"""What an expression is of that is for no floats."""


@ELEMENTWISE
def test_an_expression_is_one_of_the_kernel_language(name, device):
    operator, count = OPERATORS[name], INPUTS.get(name, 0)
    if name not in FOREIGN:
        schema = schema_of(name)
        count = count or max(schema.min_input, 2 if schema.max_input > 2 else 0)
    names = [f"x{i}" for i in range(count)]
    node = node_of(name, **({"to": 1} if "Cast" in name else {}))
    kinds = [KINDS.get(name, "f32")]
    if operator.takes_integers and name not in KINDS:
        kinds.append("s32")
    for dtype in kinds:
        write = (None if dtype == "f32" else operator.write_integers) or operator.write
        text = f"def made({', '.join(names)}):\n    return {write(node, names)}"
        inputs = [compute.buffer([1, 1, 1], (3,), dtype) for _ in names]
        inputs[:1] = [compute.buffer([1, 1, 1], (3,), "bool")] if name == "Where" else inputs[:1]
        out = compute.buffer_zeros((3,), "f32")
        compute.run_kernel(from_source("made", text), inputs, out)
        assert np.isfinite(compute.read(out)).all() or name == "Atanh"
