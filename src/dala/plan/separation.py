"""Splits steps that are separable stencils into two passes with a line buffer between them."""

from __future__ import annotations

from collections.abc import Callable

from dala.base.record import changed
from dala.ir.separable import separated
from dala.plan.fusion import FusionGroup
from dala.plan.step import Step


def split(
    step: Step, between: int, why_not_fuse: Callable[[FusionGroup], str]
) -> FusionGroup | None:
    """Returns the two passes of a step as a group, or None if they would not pay.

    `between` is the number of what lies between them. Whether a step is split depends on it alone,
    so that it computes the same by itself and among others.
    """
    passes = separated(step.program)
    if passes is None:
        return None
    down, across = passes
    number = step.numbers()[down.inputs[0].name]
    kind, output = step.input_kinds()[down.inputs[0].name], step.output_kinds[0]
    if kind[1] != output[1]:  # it broadcasts
        return None
    shape = (down.output.type, output[1])
    first = changed(
        step,
        name=down.name,
        program=down,
        inputs=(number,),
        outputs=(between,),
        kinds=(kind, shape),
        params=(),
    )
    second = changed(
        step,
        name=across.name,
        program=across,
        inputs=(between,),
        kinds=(shape, output),
        params=(),
    )
    group = FusionGroup((first, second), "it is separable", halo=((0, 0), (0, 0)))
    return None if why_not_fuse(group) else group
