"""Plans bound to memory of the host: lists of launches without Python between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dala.devices.cpu.launches import LaunchList
from dala.devices.device import Again, Memory
from dala.plan.schedule import HostCall
from dala.runtime.pipelines.launch_graph import LaunchGraph

if TYPE_CHECKING:
    from dala.runtime.pipelines.execution_plan import ExecutionPlan, Unit

ALIGNMENT_BYTES = 64
"""Code may depend on where in a line of the cache memory begins."""

Call = Callable[[Mapping[int, Memory]], None]


class BoundPlan:
    """A run of a plan on the host; the memories that it is given may change from run to run.

    Nothing that it was given is kept alive.
    """

    def __init__(
        self,
        plan: ExecutionPlan,
        graph: LaunchGraph,
        memories: Mapping[int, Memory],
        places: Sequence[int],
    ) -> None:
        self._places = list(places)
        self._serial = graph.serial
        self._slots: list[tuple[Any, int, int]] = []
        """Arrays of words, places in them, and which of the memories given is named there."""
        self._calls: list[Call] = []
        waiting: list[Again] = []
        for unit in plan.units:
            launch = _launch(plan, graph, unit, memories)
            if launch is not None:
                waiting.append(launch)
                continue
            self._join(plan, waiting)
            waiting = []
            self._calls.append(_called(graph, unit))
        self._join(plan, waiting)

    def _join(self, plan: ExecutionPlan, launches: list[Again]) -> None:
        if not launches:
            return
        made = LaunchList(plan.device.workers, launches)  # type: ignore[attr-defined]
        numbers = {place: number for number, place in enumerate(self._places)}
        for words, place in made.pointers():
            if words[place] in numbers:
                self._slots.append((words, place, numbers[words[place]]))
        self._calls.append(lambda _: made())

    def is_of(self, graph: LaunchGraph, places: Sequence[int]) -> bool:
        """Whether it is a run of a graph on memories at these addresses."""
        return self._serial == graph.serial and self._places == places

    def take(self, places: Sequence[int]) -> bool:
        """Whether it can run on memories at these addresses; if so, the next run does."""
        if places != self._places:
            pairs = zip(places, self._places, strict=True)
            if any((a - b) % ALIGNMENT_BYTES for a, b in pairs) or _order(places) != _order(
                self._places
            ):
                return False
            for words, place, number in self._slots:
                words[place] = places[number]
            self._places = list(places)
        return True

    def run(self, memories: Mapping[int, Memory]) -> None:
        for call in self._calls:
            call(memories)


def _order(places: Sequence[int]) -> list[int]:
    """Returns which of the memories are one and the same."""
    return [places.index(place) for place in places]


def _launch(
    plan: ExecutionPlan, graph: LaunchGraph, unit: Unit, memories: Mapping[int, Memory]
) -> Again | None:
    """Returns what a unit comes to; None if Python takes part in it."""
    if isinstance(unit.work, HostCall):
        return graph.bound_on_host(unit.work.place, memories)
    return plan.device.bound(unit.runner, memories, graph.values)


def _called(graph: LaunchGraph, unit: Unit) -> Call:
    if isinstance(unit.work, HostCall):
        return partial(graph.run_on_host, unit.work.place)
    runner = unit.runner
    assert runner is not None
    return lambda memories: runner.run(memories, graph.values)
