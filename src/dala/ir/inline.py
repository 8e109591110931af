"""Inlines producers into their consumers, so that several programs become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dala.base.record import changed, record
from dala.ir.access import accesses
from dala.ir.nodes import OUTPUT, Extent, Input, Load, Param, Program, Value
from dala.ir.simplify import Rewriter, drop_dead

Names = Mapping[str, str]


@record
class Part:
    """A program to be merged with others, and the names it goes by there.

    `made` maps inputs to the index of the earlier part that produces them.
    """

    program: Program
    inputs: Names
    params: Names
    made: Mapping[str, int]


def can_inline(producer: Program, consumer: Program, source: str) -> bool:
    """Whether the consumer reads the producer's output at its own position only."""
    item = consumer.input(source)
    same_view = (item.channels or 1) == (producer.output.channels or 1)
    return (
        not producer.sites
        and not consumer.sites
        and not producer.output.scattered
        and not consumer.output.scattered
        and producer.rank == consumer.rank
        and same_view
        and accesses(consumer)[source].kind in ("own", "unused")
    )


def merged(parts: Sequence[Part]) -> Program:
    """Returns the last program with its producers inlined; inputs of the same name are shared.

    The new names of parameters are distinct, and all programs have the same domain.
    """
    copied = _Copy()
    left: list[tuple[Value, ...]] = []
    inputs: dict[str, Input] = {}
    params: list[Param] = []
    with copied.builder.block() as body:
        for part in parts:
            copied.part = part
            copied.left = {name: left[place] for name, place in part.made.items()}
            left.append(copied.copy(part.program.body))
            for item in part.program.inputs:
                if item.name not in part.made:
                    name = part.inputs[item.name]
                    inputs[name] = changed(item, name=name)
            params += [changed(item, name=part.params[item.name]) for item in part.program.params]
        body.results = left[-1]
    drop_dead(body)
    return changed(
        parts[-1].program,
        name=", ".join(part.program.name for part in parts),
        inputs=tuple(inputs.values()),
        params=tuple(params),
        body=body,
    )


class _Copy(Rewriter):
    """Copies the blocks of parts, renaming inputs and replacing some of them by values."""

    part: Part

    def __init__(self) -> None:
        super().__init__()
        self.left: dict[str, tuple[Value, ...]] = {}

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
