"""Steps computed inside others: where nobody keeps what lies between, it never exists.

Which steps go together is decided from their own programs, before any is copied: a chain of any
length is put together in one go.
"""

from __future__ import annotations

from collections.abc import Sequence

from dala.base.record import record
from dala.ir.channels import over_channels
from dala.ir.inline import Part, fits, merged
from dala.ir.nodes import walk
from dala.plan.step import Overlaps, Step, touched
from dala.plan.task import Kind

MOST_STATEMENTS = 1500
"""Statements up to which programs are computed inside each other."""
MOST_BY_ROWS = 256
"""The same where what lies between is cheap, as it stays in the cache of a core."""


@record
class _Cluster:
    """Steps that are computed inside the last of them, by their places."""

    places: tuple[int, ...]
    statements: int
    alike: bool
    """Whether every channel is treated alike."""
    inputs: frozenset[int]


def inline_all(
    steps: Sequence[Step], kept: set[int], overlaps: Overlaps, *, by_rows: bool
) -> list[Step]:
    """The steps, those whose result is read in one place only computed where they are read.

    Where a device goes through groups row by row, channels that are treated alike stay so: they
    are computed faster by themselves.
    """
    return _Inlining(steps, kept, overlaps, by_rows).run()


class _Inlining:
    def __init__(
        self, steps: Sequence[Step], kept: set[int], overlaps: Overlaps, by_rows: bool
    ) -> None:
        self.steps = steps
        self.kept = kept
        self.overlaps = overlaps
        self.by_rows = by_rows
        self.most = MOST_BY_ROWS if by_rows else MOST_STATEMENTS
        self.writers: dict[int, list[int]] = {}
        self.readers: dict[int, list[int]] = {}
        for place, step in enumerate(steps):
            self.writers.setdefault(step.output, []).append(place)
            for number in set(step.inputs):
                self.readers.setdefault(number, []).append(place)
        self.clusters: dict[int, _Cluster] = {}
        """What is computed so far, by the place where it is."""

    def run(self) -> list[Step]:
        for place in range(len(self.steps)):
            self._add(place)
        return [self._step(cluster) for _, cluster in sorted(self.clusters.items())]

    def _add(self, place: int) -> None:
        step = self.steps[place]
        alike = self.by_rows and over_channels(step.program) is not None
        count = len(walk(step.program.body))
        cluster = _Cluster((place,), count, alike, frozenset(step.inputs))
        for number in dict.fromkeys(step.inputs):
            made = self._producer(place, number)
            if made is None or not self._pays(self.clusters[made], cluster):
                continue
            producer = self.clusters.pop(made)
            cluster = _Cluster(
                (*producer.places, *cluster.places),
                producer.statements + cluster.statements,
                producer.alike and cluster.alike,
                producer.inputs | cluster.inputs,
            )
        self.clusters[place] = cluster

    def _producer(self, place: int, number: int) -> int | None:
        """Where the step stands that makes a buffer and can be computed inside this one."""
        step = self.steps[place]
        writers = self.writers.get(number, [])
        if number in self.kept or number == step.output or self.readers[number] != [place]:
            return None
        if len(writers) != 1 or writers[0] >= place:
            return None
        (made,) = writers
        producer = self.steps[made]
        standing = [at for at in range(made + 1, place) if at in self.clusters]
        since = touched({self.steps[at].output for at in standing}, self.overlaps)
        if (
            made in self.clusters
            and not since & self.clusters[made].inputs
            and producer.domain == step.domain
            and all(
                producer.kinds[-1] == kind and fits(producer.program, step.program, item.name)
                for item, source, kind in zip(
                    step.program.inputs, step.inputs, step.kinds, strict=False
                )
                if source == number
            )
        ):
            return made
        return None

    def _pays(self, producer: _Cluster, consumer: _Cluster) -> bool:
        """Whether one program is computed faster than two."""
        mixes = producer.alike and not consumer.alike
        return not mixes and producer.statements + consumer.statements <= self.most

    def _step(self, cluster: _Cluster) -> Step:
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
            sources: dict[str, int] = {}
            own = step.program
            for item, number, kind in zip(own.inputs, step.inputs, step.kinds, strict=False):
                names[item.name] = view = f"b{number} {kind[1]} {item.channels}"
                views[view] = (number, kind)
                if number in made:
                    sources[item.name] = made[number]
            params = dict(zip([item.name for item in own.params], step.params, strict=True))
            parts.append(Part(own, names, params, sources))
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
