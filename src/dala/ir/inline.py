"""Inlines producers into their consumers, so that several programs become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dala.base.record import changed, record
from dala.ir.access import accesses
from dala.ir.nodes import OUTPUT, Extent, Input, Load, Param, Program, Value, by_output
from dala.ir.simplify import Rewriter, drop_dead

Names = Mapping[str, str]
Made = tuple[int, int]
"""A part, and one of its outputs."""


@record
class Part:
    """A program to be merged with others, and the names it goes by there.

    `made` maps inputs to the earlier part that produces them, and which of its outputs they are.
    """

    program: Program
    inputs: Names
    params: Names
    made: Mapping[str, Made]


def can_inline(producer: Program, consumer: Program, source: str, output: int = 0) -> bool:
    """Whether the consumer reads the producer's output at its own position only."""
    item = consumer.input(source)
    same_view = (item.channels or 1) == (producer.outputs[output].channels or 1)
    return (
        not producer.sites
        and not consumer.sites
        and not producer.output.scattered
        and not consumer.output.scattered
        and producer.rank == consumer.rank
        and same_view
        and accesses(consumer)[source].kind in ("own", "unused")
    )


def merged(parts: Sequence[Part], kept: Sequence[Made] = ()) -> Program:
    """Returns the last program with its producers inlined; inputs of the same name are shared.

    The new names of parameters are distinct, and all programs have the same domain. After the
    outputs of the last program come those of its producers that are `kept`.
    """
    copied = _Copy()
    left: list[list[list[Value]]] = []
    inputs: dict[str, Input] = {}
    params: list[Param] = []
    with copied.builder.block() as body:
        for part in parts:
            copied.part = part
            copied.left = {name: left[i][output] for name, (i, output) in part.made.items()}
            left.append(by_output(part.program.outputs, copied.copy(part.program.body)))
            for item in part.program.inputs:
                if item.name not in part.made:
                    name = part.inputs[item.name]
                    inputs[name] = changed(item, name=name)
            params += [changed(item, name=part.params[item.name]) for item in part.program.params]
        values = [*left[-1], *(left[i][output] for i, output in kept)]
        body.results = tuple(value for channels in values for value in channels)
    drop_dead(body)
    more = tuple(parts[i].program.outputs[output] for i, output in kept)
    return changed(
        parts[-1].program,
        outputs=(*parts[-1].program.outputs, *more),
        name=", ".join(part.program.name for part in parts),
        inputs=tuple(inputs.values()),
        params=tuple(params),
        body=body,
        narrowed=all(part.program.narrowed for part in parts),
    )


class _Copy(Rewriter):
    """Copies the blocks of parts, renaming inputs and replacing some of them by values."""

    part: Part

    def __init__(self) -> None:
        super().__init__()
        self.left: dict[str, list[Value]] = {}

    def value(self, old: Value) -> Value:
        if isinstance(old, Param):
            return self.builder.param(old.type, self.part.params[old.name])
        if isinstance(old, Extent):
            is_made = old.source in self.left or old.source == OUTPUT
            source = OUTPUT if is_made else self.part.inputs[old.source]
            return self.builder.extent(source, old.axis)
        return super().value(old)

    def load(self, old: Load) -> Value:
        if old.source in self.left:
            return self.left[old.source][old.channel or 0]
        return super().load(changed(old, source=self.part.inputs[old.source]))
