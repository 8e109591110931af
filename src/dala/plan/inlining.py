"""Inlining of producers into their only consumer, so that the buffer between them never exists.

Which steps are merged is decided from their own programs before any is copied, so a chain of any
length is merged in linear time.
"""

from __future__ import annotations

from collections.abc import Sequence

from dala.base.record import record
from dala.ir.channels import treats_channels_alike
from dala.ir.fixed_point import in_fixed_point
from dala.ir.inline import Part, can_inline, merged
from dala.ir.nodes import walk
from dala.ir.separable import separated
from dala.plan.step import Overlaps, Step, with_aliases
from dala.plan.task import Kind

MOST_STATEMENTS = 1500
"""Statements up to which programs are merged."""
MOST_WITH_LINE_BUFFERS = 256
"""The same on devices with line buffers, where a value between two steps stays in the cache."""


def inline_producers(
    steps: Sequence[Step],
    live: set[int],
    overlaps: Overlaps,
    *,
    line_buffers: bool,
    most_buffers: int | None = None,
) -> list[Step]:
    """Returns the steps with every producer that has one consumer merged into it.

    Buffers in `live` are needed elsewhere. Of several outputs of a producer, those that others need
    are written by the merged step. On devices with line buffers a channelwise program is not merged
    into one that mixes channels: by itself it is vectorized over channels. No merged step uses more
    than `most_buffers`.
    """
    return _Inlining(steps, live, overlaps, line_buffers, most_buffers).run()


@record
class _Cluster:
    """Steps that are merged into the last of them, by their places."""

    places: tuple[int, ...]
    statements: int
    channelwise: bool
    inputs: frozenset[int]
    outputs: tuple[int, ...]
    """Those of the last step, then those of its producers that others need."""


class _Inlining:
    def __init__(
        self,
        steps: Sequence[Step],
        live: set[int],
        overlaps: Overlaps,
        line_buffers: bool,
        most_buffers: int | None,
    ) -> None:
        self.steps = steps
        self.live = live
        self.overlaps = overlaps
        self.line_buffers = line_buffers
        self.most_buffers = most_buffers
        self.most_statements = MOST_WITH_LINE_BUFFERS if line_buffers else MOST_STATEMENTS
        self.writers: dict[int, list[int]] = {}
        self.readers: dict[int, list[int]] = {}
        for place, step in enumerate(steps):
            for number in step.outputs:
                self.writers.setdefault(number, []).append(place)
            for number in set(step.inputs):
                self.readers.setdefault(number, []).append(place)
        self.clusters: dict[int, _Cluster] = {}
        """The clusters so far, by the place of their last step."""
        self.makers: dict[int, int] = {}
        """For each buffer, the place of the cluster that wrote it last."""

    def run(self) -> list[Step]:
        for place in range(len(self.steps)):
            self._add(place)
        return [self._merged(cluster) for _, cluster in sorted(self.clusters.items())]

    def _add(self, place: int) -> None:
        step = self.steps[place]
        channelwise = self.line_buffers and treats_channels_alike(step.program)
        count = len(walk(step.program.body))
        cluster = _Cluster((place,), count, channelwise, frozenset(step.inputs), step.outputs)
        for number in dict.fromkeys(step.inputs):
            made = self._producer(place, number)
            if made is None or not self._is_profitable(self.clusters[made], cluster):
                continue
            kept = self._kept(place, self.clusters[made])
            if kept and not self._can_keep(kept, made, place, cluster):
                continue
            producer = self.clusters.pop(made)
            joined = _Cluster(
                (*producer.places, *cluster.places),
                producer.statements + cluster.statements,
                producer.channelwise and cluster.channelwise,
                producer.inputs | cluster.inputs,
                (*cluster.outputs, *kept),
            )
            if self._uses_too_many(joined):
                self.clusters[made] = producer
                continue
            cluster = joined
        self.clusters[place] = cluster
        self.makers.update(dict.fromkeys(cluster.outputs, place))

    def _kept(self, place: int, producer: _Cluster) -> tuple[int, ...]:
        """Returns what a producer writes and somebody else than its consumer needs."""
        return tuple(
            number
            for number in producer.outputs
            if number in self.live or self.readers.get(number, [place]) != [place]
        )

    def _can_keep(self, kept: tuple[int, ...], made: int, place: int, cluster: _Cluster) -> bool:
        """Returns whether buffers may be written at a later place than their producer's."""
        touched = with_aliases(set(kept), self.overlaps)
        between = [self.clusters[at] for at in range(made + 1, place) if at in self.clusters]
        return not any(
            touched & other.inputs or touched.intersection(other.outputs)
            for other in (*between, cluster)
        )

    def _uses_too_many(self, cluster: _Cluster) -> bool:
        if self.most_buffers is None:
            return False
        written = {n for place in cluster.places for n in self.steps[place].outputs}
        return len(cluster.inputs - written) + len(cluster.outputs) > self.most_buffers

    def _producer(self, place: int, number: int) -> int | None:
        """Returns the place of the step that writes a buffer, if it can be merged into this one."""
        step = self.steps[place]
        writers = self.writers.get(number, [])
        if number in self.live or number in step.outputs or self.readers[number] != [place]:
            return None
        if len(writers) != 1 or writers[0] >= place:
            return None
        made = self.makers[number]
        if made not in self.clusters:
            return None
        between = [self.clusters[at] for at in range(made + 1, place) if at in self.clusters]
        written = {number for other in between for number in other.outputs}
        if with_aliases(written, self.overlaps) & self.clusters[made].inputs:
            return None
        read = [item for item in self.clusters[made].outputs if item in step.inputs]
        return made if all(self._can_inline(item, step) for item in read) else None

    def _can_inline(self, number: int, step: Step) -> bool:
        """Returns whether a step reads a buffer as it is written, at its own position only."""
        if len(self.writers[number]) != 1:
            return False
        producer = self.steps[self.writers[number][0]]
        output = producer.outputs.index(number)
        return producer.domain == step.domain and all(
            producer.output_kinds[output] == kind
            and can_inline(producer.program, step.program, item.name, output)
            for item, source, kind in zip(
                step.program.inputs, step.inputs, step.kinds, strict=False
            )
            if source == number
        )

    def _is_profitable(self, producer: _Cluster, consumer: _Cluster) -> bool:
        if self.line_buffers and separated(self.steps[producer.places[-1]].program) is not None:
            return False  # it is split instead
        mixes_channels = producer.channelwise and not consumer.channelwise
        statements = producer.statements + consumer.statements
        return not mixes_channels and statements <= self.most_statements

    def _merged(self, cluster: _Cluster) -> Step:
        places = sorted(cluster.places)
        last = self.steps[places[-1]]
        if len(places) == 1:
            return last
        members = [self.steps[place] for place in places]
        made = {
            number: (i, output)
            for i, step in enumerate(members[:-1])
            for output, number in enumerate(step.outputs)
        }
        parts: list[Part] = []
        views: dict[str, tuple[int, Kind]] = {}
        for step in members:
            names: dict[str, str] = {}
            producers: dict[str, tuple[int, int]] = {}
            # By itself, so that it computes what it does alone.
            own = in_fixed_point(step.program) if self.line_buffers else step.program
            for item, number, kind in zip(own.inputs, step.inputs, step.kinds, strict=False):
                names[item.name] = view = f"b{number} {kind[1]} {item.channels}"
                views[view] = (number, kind)
                if number in made and made[number][0] < len(parts):
                    producers[item.name] = made[number]
            params = dict(zip([item.name for item in own.params], step.params, strict=True))
            parts.append(Part(own, names, params, producers))
        more = cluster.outputs[len(last.outputs) :]
        program = merged(parts, [made[number] for number in more])
        found = [views[item.name] for item in program.inputs]
        kept = [members[i].output_kinds[output] for i, output in map(made.__getitem__, more)]
        return Step(
            ", ".join(step.name for step in members),
            program,
            tuple(number for number, _ in found),
            cluster.outputs,
            (*(kind for _, kind in found), *last.output_kinds, *kept),
            tuple(item.name for item in program.params),
        )
