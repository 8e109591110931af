"""Two programs as one: what the first leaves at a position is what the second reads there."""

from __future__ import annotations

from dala.ir.access import accesses
from dala.ir.nodes import OUTPUT, Extent, Load, Param, Program, Value
from dala.ir.record import changed
from dala.ir.simplify import Rewriter, drop_dead

Names = dict[str, str]


def renamed(program: Program, inputs: Names, params: Names) -> Program:
    """The same program with other names of inputs and parameters; two inputs may become one."""
    copied = _Copy(inputs, params)
    with copied.builder.block() as body:
        body.results = copied.copy(program.body)
    named = {inputs[item.name]: changed(item, name=inputs[item.name]) for item in program.inputs}
    return changed(
        program,
        inputs=tuple(named.values()),
        params=tuple(changed(item, name=params[item.name]) for item in program.params),
        body=body,
    )


def fits(producer: Program, consumer: Program, source: str) -> bool:
    """Whether all that the consumer reads of an input is what the producer leaves at its place."""
    item = consumer.input(source)
    same_view = (item.channels or 1) == (producer.output.channels or 1)
    return (
        not producer.output.scattered
        and not consumer.output.scattered
        and producer.rank == consumer.rank
        and same_view
        and accesses(consumer)[source].kind in ("own", "unused")
    )


def inlined(producer: Program, consumer: Program, source: str) -> Program:
    """The consumer, computing its input `source` by itself; inputs of one name are one.

    The names of parameters are distinct, and both run over the same positions.
    """
    copied = _Copy({}, {})
    with copied.builder.block() as body:
        copied.left = copied.copy(producer.body)
        copied.source = source
        body.results = copied.copy(consumer.body)
    drop_dead(body)
    kept = [item for item in consumer.inputs if item.name != source]
    return changed(
        consumer,
        name=f"{producer.name}, {consumer.name}",
        inputs=tuple({item.name: item for item in (*producer.inputs, *kept)}.values()),
        params=(*producer.params, *consumer.params),
        body=body,
    )


class _Copy(Rewriter):
    """Copies blocks under other names, and values in place of what is read of one input."""

    source: str | None = None
    left: tuple[Value, ...] = ()

    def __init__(self, inputs: Names, params: Names) -> None:
        super().__init__()
        self._inputs = inputs
        self._params = params

    def value(self, old: Value) -> Value:
        if isinstance(old, Param):
            return self.builder.param(old.type, self._params.get(old.name, old.name))
        if isinstance(old, Extent):
            source = OUTPUT if old.source == self.source else old.source
            return self.builder.extent(self._inputs.get(source, source), old.axis)
        return super().value(old)

    def load(self, old: Load) -> Value:
        if old.source == self.source:
            return self.left[old.channel or 0]
        source = self._inputs.get(old.source, old.source)
        return super().load(changed(old, source=source))
