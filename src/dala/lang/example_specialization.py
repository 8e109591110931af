"""Finds a specialization that a kernel compiles for, so that mistakes show without a device."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from dala.base.record import remembered
from dala.errors import KernelError, ShapeError
from dala.ir.types import BOOL, F16, F32, F64, S8, S16, S32, S64, U8, U16, U32, U64, Scalar
from dala.lang.findings import Findings
from dala.lang.language_names import INTRINSICS, MatrixMarker, VectorMarker
from dala.lang.lower import Definition, Specialization
from dala.lang.outputs import Spec
from dala.lang.references import referred
from dala.lang.signature import static_object
from dala.lang.structs import is_struct

_MOST_MIXED = 4
"""Kernels with more inputs are not tried with every combination of dtypes."""


def example_of(definition: Definition) -> Specialization:
    """Returns dtypes and ranks that the kernel compiles for, preferring f32.

    Raises the first error if no combination works.
    """
    return _example(definition)[0]


@remembered
def vector_sizes(definition: Definition) -> tuple[int | None, ...]:
    """Returns the size of the vectors of each output; None for one of numbers or pixels.

    Where no output has vectors, one None stands for all of them.
    """
    said = _said_sizes(definition)
    if definition.signature.out is not None or any(said) or not _has_vectors(definition):
        return said
    try:
        return _sizes(definition, _example(definition)[1])
    except (KernelError, ShapeError):
        return said  # lowering for given buffers tells what is wrong


@remembered
def _example(definition: Definition) -> tuple[Specialization, Findings]:
    """Returns the first specialization that compiles, and what lowering it has shown."""
    first: KernelError | ShapeError | None = None
    for scalars in _dtypes(definition):
        for rank, own_rank in _ranks(definition):
            found = _fitted(definition, scalars, rank, own_rank)
            if isinstance(found, tuple):
                return found
            first = first or found
    assert first is not None
    raise first


def _said_sizes(definition: Definition) -> tuple[int | None, ...]:
    """Returns the sizes of vectors that the return annotation names."""
    return tuple(size for _, size in definition.signature.returns)


def _sizes(definition: Definition, findings: Findings) -> tuple[int | None, ...]:
    """Returns the sizes of vectors that an annotation names, or that were found returned."""
    said, found = _said_sizes(definition), tuple(item.vector for item in findings.returned)
    return said if any(said) or not found else found


def _has_vectors(definition: Definition) -> bool:
    signature = definition.signature
    if any(item.vector for item in signature.inputs):
        return True
    if any(item.composite for item in signature.params):
        return True
    return any(
        isinstance(found, VectorMarker | MatrixMarker) or is_struct(found) or is_struct(type(found))
        for found in referred(definition.source)
    )


def _fitted(
    definition: Definition, scalars: tuple[Scalar, ...], rank: int, own_rank: int
) -> tuple[Specialization, Findings] | KernelError | ShapeError:
    """Returns a specialization whose ranks match how each buffer is indexed, or the error."""
    ranks, conditions = _written_ranks(definition.source.tree), frozenset[str]()
    sizes: tuple[int | None, ...] = _said_sizes(definition)
    names = definition.input_names
    first: KernelError | ShapeError | None = None
    for _ in range(2 * len(definition.signature.inputs) + 3):
        dtypes = zip(names or ("",), scalars, strict=True)
        scalars = tuple(BOOL if name in conditions else scalar for name, scalar in dtypes)
        guess = _guess(definition, scalars, rank, own_rank, ranks, sizes)
        findings = Findings()
        try:
            definition.lower(guess, findings=findings)
            return guess, findings
        except (KernelError, ShapeError) as error:
            found = _sizes(definition, findings)
            first = first or (error if len(found) == len(sizes) else None)
        learned = {**ranks, **findings.indexed}
        if learned == ranks and found == sizes and findings.conditions <= conditions:
            break
        ranks, sizes, conditions = learned, found, conditions | findings.conditions
    assert first is not None
    return first


def _dtypes(definition: Definition) -> Iterator[tuple[Scalar, ...]]:
    """Yields candidate dtypes of the inputs: the same for all, then floats and indices mixed."""
    count = max(1, len(definition.signature.inputs))
    for scalar in (F32, S32, U8, U32, F64, S64, F16, U16, S16, S8, U64):
        yield (scalar,) * count
    if count <= _MOST_MIXED:
        yield from product((F32, S32), repeat=count)


def _ranks(definition: Definition) -> list[tuple[int, int]]:
    """Returns candidate ranks of the output, and of inputs whose rank is not evident."""
    places = (INTRINSICS["position"], INTRINSICS["shape"])
    source = definition.source
    asked = [
        call.args[0].value
        for call in ast.walk(source.tree)
        if isinstance(call, ast.Call)
        and any(static_object(source, call.func) is place for place in places)
        and len(call.args) == 1
        and isinstance(call.args[0], ast.Constant)
    ]
    ranks = [rank for rank in asked if type(rank) is int and 1 <= rank <= 8][:1]
    if definition.is_image:
        ranks = [2]
    outputs = ranks or [1, 2, 3, 4]
    alike = [(rank, rank) for rank in outputs]
    return alike + [(rank, own) for rank in outputs for own in (1, 2, 3, 4) if own != rank]


def _guess(
    definition: Definition,
    scalars: tuple[Scalar, ...],
    rank: int,
    own_rank: int,
    ranks: dict[str, int],
    sizes: tuple[int | None, ...],
) -> Specialization:
    signature, scalar = definition.signature, scalars[0]
    inputs = tuple(
        (F32, 2, 4) if item.image else (own, ranks.get(item.name, own_rank), item.vector)
        for item, own in zip(signature.inputs, scalars, strict=False)
    )
    out_rank = ranks.get(signature.out or "", rank)
    outputs: tuple[Spec, ...] = tuple((scalar, out_rank, size) for size in sizes)
    if definition.is_image and not signature.out:
        outputs = tuple((F32, 2, size or 4) for size in sizes)
    conditions = _written_conditions(definition.source.tree)
    consts = tuple(
        (item.name, (item.name in conditions or 1) if item.required else item.default)
        for item in signature.params
        if item.kind == "const"
    )
    types = tuple((item.name, scalar) for item in signature.params if item.kind == "number")
    over = inputs[0][1] if signature.out is not None and inputs else outputs[0][1]
    broadcast = tuple(
        (item.name, (False,) * own)
        for item, (_, own, _) in zip(signature.inputs, inputs, strict=True)
        if not item.image and own < over
    )
    return Specialization(inputs, outputs, consts, types, broadcast)


@lru_cache(maxsize=16)
def _written_ranks(tree: ast.FunctionDef) -> dict[str, int]:
    """Returns the apparent rank of each name; an index that is a name counts as one number."""
    ranks: dict[str, int] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=name), attr="shape"),
                slice=ast.Constant(value=int(axis)),
            ):
                ranks[name] = max(ranks.get(name, 1), axis + 1)
            case ast.Assign(
                targets=[ast.Tuple(elts=extents)],
                value=ast.Attribute(value=ast.Name(id=name), attr="shape"),
            ):
                ranks[name] = len(extents)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="add" | "min" | "max"),
                args=[ast.Tuple(elts=indices), _],
            ):
                ranks[name] = len(indices)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=indices)):
                ranks[name] = len(indices)
            case ast.Subscript(value=ast.Name(id=name)):
                ranks.setdefault(name, 1)
    return ranks


@lru_cache(maxsize=16)
def _written_conditions(tree: ast.FunctionDef) -> set[str]:
    """Returns the names that stand by themselves where a condition is needed."""
    tests: list[ast.expr] = []
    for node in ast.walk(tree):
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                tests.append(test)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                tests.append(operand)
            case ast.BoolOp(values=values):
                tests.extend(values)
    return {test.id for test in tests if isinstance(test, ast.Name)}
