"""The steps of a fusion group as their tiles need them: over pixels, and with inputs loaded."""

from __future__ import annotations

from collections.abc import Sequence

from dala.base.record import changed, remembered
from dala.ir.access import accesses
from dala.ir.builder import Builder
from dala.ir.nodes import Border, Input, Load, Output, Program, domain_of, walk
from dala.ir.pixels import over_pixels as program_over_pixels
from dala.plan.step import Step

MOST_CHANNELS = 4
"""The channels of a pixel."""


def over_pixels(steps: Sequence[Step]) -> list[Step] | str:
    """Returns the steps with a position for each pixel, or why they cannot share tiles."""
    width = min(step.domain[1] for step in steps)
    found = []
    for step in steps:
        known = _views(step)
        made = known[width] = known[width] if width in known else _over_pixels(step, width)
        if made is None:
            return f"{step.name} has another shape"
        found.append(made)
    return _obstacle(found) or found


@remembered
def _views(step: Step) -> dict[int, Step | None]:
    """Returns the step over pixels of rows of some widths, as far as they were asked for."""
    return {}


def _over_pixels(step: Step, width: int) -> Step | None:
    """Returns a step with a position for each pixel of a row of that width, or None."""
    channels, rest = divmod(step.domain[1], width)
    if channels == 1:
        return step
    whole = all(item.channels is None for item in step.program.outputs)
    images = {name for name in step.numbers() if _is_image(step, name)}
    if rest or channels > MOST_CHANNELS or not whole:
        return None
    program = program_over_pixels(step.program, channels, images)
    if program is None:
        return None
    kinds = list(step.kinds)
    for place, kind in enumerate(kinds):
        if place >= len(step.inputs) or step.program.inputs[place].name in images:
            kinds[place] = (kind[0], (*step.domain[:1], width, channels))
    return changed(step, program=program, kinds=tuple(kinds))


def _is_image(step: Step, name: str) -> bool:
    """Whether an input is read around the position, and has an element for each."""
    return accesses(step.program)[name].kind in ("own", "offsets") and is_aligned(step, name)


def _obstacle(steps: Sequence[Step]) -> str:
    """Returns why steps that could be fused row by row cannot be in tiles, or an empty string."""
    written = {number for step in steps for number in step.outputs}
    for step in steps:
        read = accesses(step.program)
        for name, number in step.numbers().items():
            if number not in written or read[name].kind == "unused":
                continue
            if not is_aligned(step, name):
                return f"{step.name} has another shape"
            if "wrap" in _borders(step, name) and any(map(any, read[name].offsets)):
                return f"{step.name} reads far from its own position"
        if len(borders_of(steps, step.outputs)) > 1:
            return f"{step.name} is read with several borders"
        if any(scalar.bits > 32 for scalar, _ in step.output_kinds):
            return f"{step.name} computes in 64 bits"
    return ""


def is_aligned(step: Step, name: str) -> bool:
    """Whether an input has an element, or a pixel, for each position of a step."""
    kind, channels = step.input_kinds()[name], step.program.input(name).channels
    return domain_of(kind[1], channels) == step.domain


def readers(steps: Sequence[Step], number: int) -> list[tuple[Step, str]]:
    """Returns the steps that read a buffer, and the names of the inputs that are it."""
    return [
        (step, name)
        for step in steps
        for name, source in step.numbers().items()
        if source == number and accesses(step.program)[name].kind != "unused"
    ]


def _borders(step: Step, name: str) -> set[Border]:
    """Returns the borders with which a step reads an input beside its own position."""
    return _borders_by_input(step.program).get(name, set())


@remembered
def _borders_by_input(program: Program) -> dict[str, set[Border]]:
    found: dict[str, set[Border]] = {}
    for item in walk(program.body):
        if isinstance(item, Load) and item.index is not None:
            found.setdefault(item.source, set()).add(item.border)
    return found


def borders_of(steps: Sequence[Step], numbers: Sequence[int]) -> set[Border]:
    """Returns the borders with which steps read any of some buffers."""
    return {
        border
        for number in numbers
        for step, name in readers(steps, number)
        for border in _borders(step, name)
    }


# -- loading inputs --------------------------------------------------------------------------------


def with_loads(steps: Sequence[Step]) -> tuple[list[Step], list[Step]]:
    """Returns steps that load the inputs read at several offsets, and the steps that read those."""
    written = {number for step in steps for number in step.outputs}
    loads: dict[int, Step] = {}
    for number in dict.fromkeys(number for step in steps for number in step.inputs):
        if number not in written and (load := _load(steps, number, -1 - len(loads))) is not None:
            loads[number] = load
    loaded = {number: load.outputs[0] for number, load in loads.items()}
    more = [
        changed(step, inputs=tuple(loaded.get(number, number) for number in step.inputs))
        for step in steps
    ]
    return list(loads.values()), more


def _load(steps: Sequence[Step], number: int, made: int) -> Step | None:
    """Returns a step that copies an input to the buffer `made`, or None if that would not pay."""
    reads = readers(steps, number)
    found = [accesses(step.program)[name] for step, name in reads]
    borders = borders_of(steps, [number])
    if (
        any(item.kind == "anywhere" for item in found)
        or all(len(item.offsets) < 2 for item in found)
        or not all(is_aligned(step, name) for step, name in reads)
        or len(borders) != 1
        or "wrap" in borders
    ):
        return None
    step, name = reads[0]
    kind, channels = step.input_kinds()[name], step.program.input(name).channels
    scalar, _ = kind
    if scalar.bits > 32 or (channels or 1) > MOST_CHANNELS:
        return None
    builder = Builder()
    with builder.block() as body:
        places = [None] if channels is None else range(channels)
        body.results = tuple(builder.load(scalar, "x", None, place, "clamp") for place in places)
    outputs = (Output(scalar, 2, channels),)
    program = Program("load", (Input("x", scalar, 2, channels),), (), outputs, 2, body)
    return Step("load", program, (number,), (made,), (kind, kind), ())
