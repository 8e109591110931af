"""What a call of a kernel gives where it is not said: the shape and the dtype of its output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dala.base.lru_cache import LruCache
from dala.base.record import changed
from dala.errors import KernelError, ShapeError
from dala.ir.access import accesses
from dala.ir.nodes import Program
from dala.ir.types import BOOL, F32, S8, S64, U8, Scalar, promote
from dala.lang.example_specialization import vector_sizes
from dala.lang.findings import Findings, Returned
from dala.lang.lower import Definition, Specialization
from dala.plan.task import Kind, Shape
from dala.runtime.kernels.specialization import Consts, Types, positions, specialize

MOST_KINDS = 1024
Sized = list[tuple[str, Shape]]
"""Names of inputs, with the positions that each of them has."""


_kinds: LruCache[tuple[Any, ...], tuple[Kind, ...]] = LruCache(MOST_KINDS)


def inferred(
    name: str,
    definition: Definition,
    inputs: tuple[Kind, ...],
    consts: Consts,
    types: Types,
    shape: Shape | None,
) -> tuple[Kind, ...]:
    """Returns the dtype and shape of each output; `shape` is the one that was asked for."""
    numbers = tuple((name, repr(number)) for name, number in consts)  # 1 is not 1.0
    key = (definition, inputs, numbers, types, shape)
    return _kinds.find(key, lambda: _infer(name, definition, inputs, consts, types, shape))


def _infer(
    name: str,
    definition: Definition,
    inputs: tuple[Kind, ...],
    consts: Consts,
    types: Types,
    shape: Shape | None,
) -> tuple[Kind, ...]:
    if definition.signature.out is not None and shape is None:
        raise ShapeError(
            f"{name} writes where it likes, so nothing says how large its output is: give "
            f"shape=(…), or out= with what it is to write to."
        )
    program, findings = _tried(name, definition, inputs, consts, types, shape)
    domain = shape
    if domain is None:
        domain = _domain(name, definition, inputs, program, findings)
    returned = findings.returned or [Returned(_met(findings.yielded))]
    said = definition.returned_dtypes(len(returned))
    kinds = []
    for item, wanted in zip(returned, said, strict=True):
        extents = domain
        if shape is None and item.is_pixel:
            extents += _channels(definition, inputs)
        elif shape is None and item.vector is not None:
            extents += (item.vector,)
        elif definition.is_image and not item.is_pixel and len(returned) > 1:
            extents = domain[:2]
        scalar = wanted or _dtype(definition, inputs, item)
        if wanted is None and not findings.asks_f32:
            scalar = _stored_as(scalar, [given for given, _ in inputs])
        kinds.append((scalar, extents))
    return tuple(kinds)


def broadcast(name: str, shapes: Sized) -> Shape:
    """Returns the shape that all shapes broadcast to; raises ShapeError where there is none."""
    rank = max(len(shape) for _, shape in shapes)
    wide: list[int] = []
    for axis in range(-rank, 0):
        extents = {shape[axis] for _, shape in shapes if len(shape) >= -axis} - {1}
        if len(extents) > 1:
            shown = ", ".join(f"{item!r} is {shape}" for item, shape in shapes)
            raise ShapeError(
                f"{name}: its inputs do not broadcast to one shape: {shown}. Counted from the "
                f"last, axes are equal or 1. Index the one that is to be read elsewhere."
            )
        wide.append(extents.pop() if extents else 1)
    return tuple(wide)


def _tried(
    name: str,
    definition: Definition,
    inputs: tuple[Kind, ...],
    consts: Consts,
    types: Types,
    shape: Shape | None,
) -> tuple[Program, Findings]:
    """Returns the kernel as lowered for the rank that it asks for, and what that has shown."""
    arguments, sizes = definition.signature.inputs, vector_sizes(definition)
    axes = [
        len(positions(given, item.vector)) or 1
        for item, (_, given) in zip(arguments, inputs, strict=True)
    ]
    rank = max(axes, default=1) if shape is None else len(positions(shape, sizes[0])) or 1
    count, asks = len(sizes), shape is None
    while True:
        ends = [() if size is None else (size,) for size in (sizes * count)[:count]]
        own, here = inputs[0][0] if inputs else F32, (1,) * rank
        if definition.is_image:
            own, here = F32, (1, 1)
        outputs = tuple((own, (*here, *end)) for end in ends)
        special = specialize(name, definition, inputs, outputs, consts, types)
        findings = Findings()
        try:
            program = definition.lower(_stretching(definition, special), findings=findings)
            return program, findings
        except (KernelError, ShapeError):
            if count == 1 and len(findings.returned) > 1:
                count = len(findings.returned)
            elif asks and findings.asked_rank is not None:
                asks, rank = False, findings.asked_rank
            else:
                raise


def _stretching(definition: Definition, special: Specialization) -> Specialization:
    """Returns the specialization with all inputs of fewer axes broadcast, by whatever extents."""
    arguments, (_, rank, _) = definition.signature.inputs, special.outputs[0]
    if definition.signature.out is not None and special.inputs:
        rank = special.inputs[0][1]
    broadcast = tuple(
        (item.name, (False,) * own)
        for item, (_, own, _) in zip(arguments, special.inputs, strict=True)
        if not item.image and own < rank
    )
    return changed(special, broadcast=broadcast)


def _domain(
    name: str,
    definition: Definition,
    inputs: tuple[Kind, ...],
    program: Program,
    findings: Findings,
) -> Shape:
    """Returns the positions that the kernel runs over, by how it reads its inputs."""
    arguments = definition.signature.inputs
    sized = [
        (item.name, shape[:2] if item.image else positions(shape, item.vector))
        for item, (_, shape) in zip(arguments, inputs, strict=True)
    ]
    asked = 2 if definition.is_image else findings.asked_rank
    found = [(item, shape) for item, shape in sized if item in findings.bare]
    if found:
        shape = broadcast(name, found)
        if asked in (None, len(shape)):
            return shape
    reads = accesses(program)
    near = [(item, shape) for item, shape in sized if reads[item].kind == "offsets"]
    alike = [(item, shape) for item, shape in sized if len(shape) == asked]
    for candidates in (near, alike):
        if not found and len({shape for _, shape in candidates}) == 1:
            return candidates[0][1]
    shown = ", ".join(f"{item!r} is {shape}" for item, shape in sized)
    over = f"runs over {asked} axes" if asked else "reads no input at its own position"
    raise ShapeError(
        f"{name} {over}, and its inputs do not say how large its output is "
        f"({shown or 'there are none'}): give shape=(…), or out= with what it is to write to."
    )


def _channels(definition: Definition, inputs: Sequence[Kind]) -> Shape:
    """Returns the axis of an image's channels: as the first image has it, else that of RGBA."""
    for item, (_, shape) in zip(definition.signature.inputs, inputs, strict=True):
        if item.image:
            return shape[2:]
    return (4,)


def _dtype(definition: Definition, inputs: Sequence[Kind], returned: Returned) -> Scalar:
    """Returns the dtype that an expression is stored in; pixels are stored as the first image."""
    if returned.is_pixel:
        images = zip(definition.signature.inputs, inputs, strict=True)
        return next((scalar for item, (scalar, _) in images if item.image), F32)
    return F32 if returned.type is None else returned.type


def _met(yielded: Sequence[Scalar]) -> Scalar:
    """Returns the type in which all that is written to `out` meets."""
    met = yielded[0] if yielded else F32
    for scalar in yielded[1:]:
        met = promote(met, scalar) or S64
    return met


def _stored_as(met: Scalar, inputs: Sequence[Scalar]) -> Scalar:
    """Returns the dtype that stores what was computed: f16 where only f16 was computed with."""
    halves = {scalar for scalar in inputs if scalar.is_storage}
    others = {scalar for scalar in inputs if not scalar.is_storage} - {BOOL, U8, S8}
    return halves.pop() if met == F32 and len(halves) == 1 and not others else met
