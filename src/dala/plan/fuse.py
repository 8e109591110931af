"""Steps of a pipeline put together: inlined where nobody keeps what lies between, then grouped.

Buffers are numbers here. A group is a run of steps that a device may compute side by side, a few
rows of each at a time; what breaks it off is written down, to be shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set

from dala.ir.access import Access, accesses, is_elementwise
from dala.ir.channels import over_channels
from dala.ir.inline import fits, inlined
from dala.ir.nodes import Load, Program, walk
from dala.ir.record import changed, record
from dala.plan.limits import STEP_LIMIT, most_turns
from dala.plan.task import Kind, Shape, Task, plain

MOST_STATEMENTS = 1500
"""Statements up to which programs are inlined into each other."""
FARTHEST_ROW = 64
"""Rows up or down that a step of a group may read of another."""

Overlaps = Mapping[int, Set[int]]
"""For each buffer that shares memory with others, which they are."""


@record
class Step:
    """A program, the buffers that it reads, in order, and the one that it writes.

    `kinds` are how it sees them, the output last: another step may see one in another shape.
    """

    name: str
    program: Program
    inputs: tuple[int, ...]
    output: int
    kinds: tuple[Kind, ...]

    def numbers(self) -> dict[str, int]:
        """The buffer that each name of an input stands for."""
        names = [item.name for item in self.program.inputs]
        return dict(zip(names, self.inputs, strict=True))

    def seen(self) -> dict[str, Kind]:
        """How each input is seen, by its name."""
        names = [item.name for item in self.program.inputs]
        return dict(zip(names, self.kinds, strict=False))

    def task(self) -> Task:
        *inputs, output = self.kinds
        return Task(self.name, self.program, tuple(inputs), output)

    @property
    def domain(self) -> Shape:
        """Its positions, rows told apart."""
        return plain(self.kinds[-1][1], self.program.output.channels)


@record
class Group:
    """Steps that are computed together, and why they begin here.

    `reach` has, for each step, the rows above and below that its readers need.
    """

    steps: tuple[Step, ...]
    reason: str
    flat: bool = False
    reach: tuple[tuple[int, int], ...] = ((0, 0),)


def inline_all(
    steps: Sequence[Step], kept: set[int], overlaps: Overlaps, *, by_rows: bool
) -> list[Step]:
    """The steps, those whose result is read in one place only computed where they are read.

    Where a device goes through groups row by row, channels that are treated alike stay so: they
    are computed faster by themselves.
    """
    left = list(steps)
    at = 0
    while at < len(left):
        found = _inlinable(left, at, kept, overlaps)
        if found is None:
            at += 1
            continue
        place, source = found
        producer, consumer = left[place], left[at]
        program = inlined(producer.program, consumer.program, source)
        if by_rows and _mixes_channels(producer.program, program):
            kept = kept | {producer.output}
            continue
        numbers = {**producer.numbers(), **consumer.numbers()}
        seen = {**producer.seen(), **consumer.seen()}
        left[at] = changed(
            consumer,
            name=program.name,
            program=program,
            inputs=tuple(numbers[item.name] for item in program.inputs),
            kinds=(*(seen[item.name] for item in program.inputs), consumer.kinds[-1]),
        )
        del left[place]
        at -= 1
    return left


def _mixes_channels(producer: Program, both: Program) -> bool:
    return over_channels(producer) is not None and over_channels(both) is None


def _inlinable(
    steps: list[Step], at: int, kept: set[int], overlaps: Overlaps
) -> tuple[int, str] | None:
    """Which earlier step can be computed inside this one, and what this one calls its result."""
    consumer = steps[at]
    for item, number in zip(consumer.program.inputs, consumer.inputs, strict=True):
        if number in kept or number == consumer.output:
            continue
        writers = [i for i in range(at) if steps[i].output == number]
        readers = [i for i, step in enumerate(steps) if number in step.inputs]
        if len(writers) != 1 or readers != [at]:
            continue
        (place,) = writers
        producer = steps[place]
        changed_since = _touched({step.output for step in steps[place + 1 : at]}, overlaps)
        sizes = [len(walk(step.program.body)) for step in (producer, consumer)]
        if (
            not changed_since & set(producer.inputs)
            and sum(sizes) <= MOST_STATEMENTS
            and consumer.inputs.count(number) == 1
            and producer.domain == consumer.domain
            and producer.kinds[-1] == consumer.seen()[item.name]
            and fits(producer.program, consumer.program, item.name)
        ):
            return place, item.name
    return None


def _touched(numbers: set[int], overlaps: Overlaps) -> set[int]:
    """The buffers, and those that share memory with one of them."""
    return numbers.union(*(overlaps.get(number, ()) for number in numbers))


def group_all(steps: Sequence[Step], overlaps: Overlaps) -> list[Group]:
    """The steps in groups; none writes memory that another step of its group sees otherwise."""
    groups: list[list[Step]] = []
    reasons: list[str] = []
    for step in steps:
        reason = "it is the first" if not groups else _obstacle(groups[-1], step, overlaps)
        if reason:
            groups.append([])
            reasons.append(reason)
        groups[-1].append(step)
    made = zip(groups, reasons, strict=True)
    return [_finished(tuple(group), reason) for group, reason in made]


def _obstacle(group: list[Step], step: Step, overlaps: Overlaps) -> str:
    """Why a step cannot be computed together with a group; empty if it can."""
    for member in (*group, step):
        alone = _loneliness(member, overlaps)
        if alone:
            return f"{member.name} {alone}"
    written = {member.output for member in group}
    read = {number for member in group for number in member.inputs}
    if step.output in written | read:
        return f"{step.name} writes what a step before it uses"
    others = written | read
    if others & set(overlaps.get(step.output, ())) or any(
        overlaps.get(number, set()) & written for number in step.inputs
    ):
        return f"{step.name} shares memory with a step before it"
    found = accesses(step.program)
    for item, number in zip(step.program.inputs, step.inputs, strict=True):
        if number in written and not _is_near(found[item.name], step.program, item.name):
            return f"{step.name} reads far from its own position"
    if _is_flat((*group, step)) or _is_by_rows((*group, step)):
        return ""
    return f"{step.name} has another shape"


def _loneliness(step: Step, overlaps: Overlaps) -> str:
    if step.program.output.scattered:
        return "writes anywhere"
    if most_turns(step.program, step.task().shapes) > STEP_LIMIT:
        return "has a loop that may not end"
    if _touched({step.output}, overlaps) & set(step.inputs):
        return "writes over its own input"
    if 0 in step.kinds[-1][1]:
        return "has nothing to compute"
    return ""


def _is_near(access: Access, program: Program, source: str) -> bool:
    if access.kind in ("own", "unused"):
        return True
    if access.kind != "offsets" or program.rank != 2:
        return False
    borders = {
        item.border
        for item in walk(program.body)
        if isinstance(item, Load) and item.source == source and item.index is not None
    }
    rows = [offset[0] for offset in access.offsets]
    far = max(map(abs, rows)) > FARTHEST_ROW
    return not far and ("wrap" not in borders or not any(rows))


def _is_flat(steps: Sequence[Step]) -> bool:
    counts = {math.prod(step.task().domain) for step in steps}
    return len(counts) == 1 and all(is_elementwise(step.program) for step in steps)


def _is_by_rows(steps: Sequence[Step]) -> bool:
    """Whether all have as many rows, enough of them for borders to stay near."""
    domains = [step.domain for step in steps]
    if any(len(domain) != 2 for domain in domains) or len({d[0] for d in domains}) != 1:
        return False
    if not all(_rows_are_rows(step, domains[0][0]) for step in steps):
        return False
    reach = _reach(steps)
    return domains[0][0] > 2 * max(sum(rows) for rows in reach)


def _rows_are_rows(step: Step, height: int) -> bool:
    """Whether what the step reads at offsets has a row for each of its own."""
    found = accesses(step.program)
    return all(
        kind[1][:1] == (height,)
        for name, kind in step.seen().items()
        if found[name].kind in ("own", "offsets")
    )


def _reach(steps: Sequence[Step]) -> tuple[tuple[int, int], ...]:
    """The rows above and below those of the last step that each has to compute."""
    reach = [(0, 0)] * len(steps)
    places = {step.output: i for i, step in enumerate(steps)}
    for i in range(len(steps) - 1, -1, -1):
        step = steps[i]
        found = accesses(step.program)
        for item, number in zip(step.program.inputs, step.inputs, strict=True):
            place = places.get(number)
            if place is None or place >= i:
                continue
            up, down = _rows_read(found[item.name], step.program, item.name)
            above, below = reach[place]
            reach[place] = (max(above, reach[i][0] + up), max(below, reach[i][1] + down))
    return tuple(reach)


def _rows_read(access: Access, program: Program, source: str) -> tuple[int, int]:
    rows = [offset[0] for offset in access.offsets] or [0]
    up, down = max(0, -min(rows)), max(0, *rows)
    turns_back = any(
        isinstance(item, Load) and item.source == source and item.border in ("mirror", "reflect")
        for item in walk(program.body)
    )
    # At an edge these rules answer with rows on the other side.
    return (max(up, down), max(up, down)) if turns_back else (up, down)


def _finished(steps: tuple[Step, ...], reason: str) -> Group:
    if len(steps) == 1:
        return Group(steps, reason)
    flat = _is_flat(steps)
    return Group(steps, reason, flat, ((0, 0),) * len(steps) if flat else _reach(steps))
