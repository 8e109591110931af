"""Inlining of producers into their only consumer, so that the buffer between them never exists.

Which steps are merged is decided from their own programs before any is copied, so a chain of any
length is merged in linear time.
"""

from __future__ import annotations

from collections.abc import Sequence

from dala.base.record import record
from dala.ir.channels import over_channels
from dala.ir.inline import Part, can_inline, merged
from dala.ir.nodes import walk
from dala.plan.step import Overlaps, Step, with_aliases
from dala.plan.task import Kind

MOST_STATEMENTS = 1500
"""Statements up to which programs are merged."""
MOST_WITH_LINE_BUFFERS = 256
"""The same on devices with line buffers, where a value between two steps stays in the cache."""


def inline_producers(
    steps: Sequence[Step], live: set[int], overlaps: Overlaps, *, line_buffers: bool
) -> list[Step]:
    """Returns the steps with every producer that has one consumer merged into it.

    Buffers in `live` are needed elsewhere. On devices with line buffers a channelwise program is
    not merged into one that mixes channels: by itself it is vectorized over channels.
    """
    return _Inlining(steps, live, overlaps, line_buffers).run()


@record
class _Cluster:
    """Steps that are merged into the last of them, by their places."""

    places: tuple[int, ...]
    statements: int
    channelwise: bool
    inputs: frozenset[int]


class _Inlining:
    def __init__(
        self, steps: Sequence[Step], live: set[int], overlaps: Overlaps, line_buffers: bool
    ) -> None:
        self.steps = steps
        self.live = live
        self.overlaps = overlaps
        self.line_buffers = line_buffers
        self.most_statements = MOST_WITH_LINE_BUFFERS if line_buffers else MOST_STATEMENTS
        self.writers: dict[int, list[int]] = {}
        self.readers: dict[int, list[int]] = {}
        for place, step in enumerate(steps):
            self.writers.setdefault(step.output, []).append(place)
            for number in set(step.inputs):
                self.readers.setdefault(number, []).append(place)
        self.clusters: dict[int, _Cluster] = {}
        """The clusters so far, by the place of their last step."""

    def run(self) -> list[Step]:
        for place in range(len(self.steps)):
            self._add(place)
        return [self._merged(cluster) for _, cluster in sorted(self.clusters.items())]

    def _add(self, place: int) -> None:
        step = self.steps[place]
        channelwise = self.line_buffers and over_channels(step.program) is not None
        count = len(walk(step.program.body))
        cluster = _Cluster((place,), count, channelwise, frozenset(step.inputs))
        for number in dict.fromkeys(step.inputs):
            made = self._producer(place, number)
            if made is None or not self._is_profitable(self.clusters[made], cluster):
                continue
            producer = self.clusters.pop(made)
            cluster = _Cluster(
                (*producer.places, *cluster.places),
                producer.statements + cluster.statements,
                producer.channelwise and cluster.channelwise,
                producer.inputs | cluster.inputs,
            )
        self.clusters[place] = cluster

    def _producer(self, place: int, number: int) -> int | None:
        """Returns the place of the step that writes a buffer, if it can be merged into this one."""
        step = self.steps[place]
        writers = self.writers.get(number, [])
        if number in self.live or number == step.output or self.readers[number] != [place]:
            return None
        if len(writers) != 1 or writers[0] >= place:
            return None
        (made,) = writers
        producer = self.steps[made]
        between = [at for at in range(made + 1, place) if at in self.clusters]
        overwritten = with_aliases({self.steps[at].output for at in between}, self.overlaps)
        if (
            made in self.clusters
            and not overwritten & self.clusters[made].inputs
            and producer.domain == step.domain
            and all(
                producer.kinds[-1] == kind and can_inline(producer.program, step.program, item.name)
                for item, source, kind in zip(
                    step.program.inputs, step.inputs, step.kinds, strict=False
                )
                if source == number
            )
        ):
            return made
        return None

    def _is_profitable(self, producer: _Cluster, consumer: _Cluster) -> bool:
        mixes_channels = producer.channelwise and not consumer.channelwise
        statements = producer.statements + consumer.statements
        return not mixes_channels and statements <= self.most_statements

    def _merged(self, cluster: _Cluster) -> Step:
        places = sorted(cluster.places)
        last = self.steps[places[-1]]
        if len(places) == 1:
            return last
        members = [self.steps[place] for place in places]
        made = {step.output: i for i, step in enumerate(members[:-1])}
        parts: list[Part] = []
        views: dict[str, tuple[int, Kind]] = {}
        for step in members:
            names: dict[str, str] = {}
            producers: dict[str, int] = {}
            own = step.program
            for item, number, kind in zip(own.inputs, step.inputs, step.kinds, strict=False):
                names[item.name] = view = f"b{number} {kind[1]} {item.channels}"
                views[view] = (number, kind)
                if number in made:
                    producers[item.name] = made[number]
            params = dict(zip([item.name for item in own.params], step.params, strict=True))
            parts.append(Part(own, names, params, producers))
        program = merged(parts)
        found = [views[item.name] for item in program.inputs]
        return Step(
            ", ".join(step.name for step in members),
            program,
            tuple(number for number, _ in found),
            last.output,
            (*(kind for _, kind in found), last.kinds[-1]),
            tuple(item.name for item in program.params),
        )
