"""Encodes floats between the steps of a fusion group in 16 bits, where nobody can tell.

A float that lies in a line buffer between two steps is seen by nobody. Where it is a weighted sum
of levels and all that its readers store are levels, it is kept as an integer (`ir/fixed_point`).
"""

from __future__ import annotations

from collections.abc import Set

from dala.base.record import changed
from dala.ir.fixed_point import Encoded, decoding, encoded
from dala.ir.nodes import Program
from dala.ir.types import U16
from dala.plan.fusion import FusionGroup
from dala.plan.step import Step
from dala.plan.task import Kind


def encode_between(group: FusionGroup, materialized: Set[int]) -> FusionGroup:
    """Returns the group with what lies between its steps encoded where it can be."""
    steps = list(group.steps)
    for place, step in enumerate(steps[:-1]):
        (number, *others), made = step.outputs, encoded(step.program)
        written = [output for other in steps for output in other.outputs]
        if made is None or others or number in materialized or written.count(number) != 1:
            continue
        readers = {
            at: _decoding(other, number, made)
            for at, other in enumerate(steps)
            if number in other.inputs
        }
        found = {at: reader for at, reader in readers.items() if reader is not None}
        if not found or len(found) != len(readers):
            continue
        steps[place] = changed(
            step, program=made.program, kinds=(*step.kinds[:-1], _encoded(step.kinds[-1]))
        )
        for at, reader in found.items():
            steps[at] = reader
    return changed(group, steps=tuple(steps))


def _decoding(step: Step, number: int, made: Encoded) -> Step | None:
    """Returns the step with a buffer read in its encoded form, or None if that does not pay."""
    program: Program | None = step.program
    kinds = list(step.kinds)
    for at, (item, source) in enumerate(zip(step.program.inputs, step.inputs, strict=True)):
        if source == number and program is not None:
            program = decoding(program, item.name, made.unit, made.most)
            kinds[at] = _encoded(kinds[at])
    return None if program is None else changed(step, program=program, kinds=tuple(kinds))


def _encoded(kind: Kind) -> Kind:
    return (U16, kind[1])
