"""Runs a fusion group on a WebGPU device: one shader computes a tile of all steps at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dala.base.record import remembered
from dala.devices.device import Number, check_sizes
from dala.devices.webgpu.bindings import Bindings, Compiled, compiled, empty_input
from dala.devices.webgpu.runner import check_dtypes, loop_limit
from dala.emit.argument_slots import layout_of, sizes_of
from dala.emit.wgsl.grid import grid_for, spread
from dala.emit.wgsl.tile_group import emit_tiles
from dala.emit.wgsl.tiling import Tiling, find_tiling
from dala.plan.fusion import FusionGroup
from dala.plan.step import Step
from dala.plan.watchdog import max_iterations

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from dala.devices.webgpu.device import WebGpu
    from dala.devices.webgpu.memory import GpuMemory

ZERO = bytes(16)
"""The arguments begin with a word that is 0."""
MOST_SHARED_BYTES = 32 << 10
"""The workgroup memory that is used at the most: so that two workgroups or more share a core."""
MOST_TURNS = 64
"""The positions of a step that an invocation computes, at the most."""


def why_not_fuse(device: WebGpu, group: FusionGroup, materialized: Set[int]) -> str:
    """Returns why a group does not pay in tiles, or an empty string.

    It pays if it costs less than the same group without its last step, and that step by itself.
    """
    if group.flat:
        return ""
    for step in group.steps:
        reason = _why_alone(device, step)
        if reason:
            return f"{step.name} {reason}"
    found = _tiling(device, group.steps, materialized)
    if isinstance(found, str):
        return found
    *before, last = group.steps
    apart = last.moved_bytes + _cost_bytes(device, before, {*materialized, *last.inputs})
    if found.cost_bytes > apart:
        return f"computing halos for {last.name} again would take longer than reading what is there"
    return ""


def tiles_of(device: WebGpu, group: FusionGroup, materialized: Set[int]) -> Tiling | None:
    """Returns the tiles that a group is computed in, or None if its steps do so one by one."""
    if group.flat or len(group.steps) < 2 or any(_why_alone(device, s) for s in group.steps):
        return None
    found = _tiling(device, group.steps, materialized)
    if isinstance(found, str) or found.cost_bytes >= _alone_bytes(group.steps):
        return None
    return found


def _tiling(device: WebGpu, steps: Sequence[Step], materialized: Set[int]) -> Tiling | str:
    most_bytes = min(device.limits["max-compute-workgroup-storage-size"], MOST_SHARED_BYTES)
    return find_tiling(steps, materialized, most_bytes, device.most_buffers)


def _cost_bytes(device: WebGpu, steps: Sequence[Step], materialized: Set[int]) -> float:
    """Returns what steps cost as a group, if they are one."""
    alone = _alone_bytes(steps)
    found = _tiling(device, steps, materialized) if len(steps) > 1 else ""
    return alone if isinstance(found, str) else min(alone, found.cost_bytes)


def _alone_bytes(steps: Sequence[Step]) -> int:
    return sum(step.moved_bytes for step in steps)


def _why_alone(device: WebGpu, step: Step) -> str:
    """Returns why a step shares tiles with no other, or an empty string."""
    task = step.task()
    if _has_own_grid(step):
        return "shares its reductions among a workgroup"
    most = loop_limit(device)
    if most is not None and MOST_TURNS * max_iterations(task.program, task.shapes) > most:
        return "has loops that this device may end"
    return ""


@remembered
def _has_own_grid(step: Step) -> bool:
    """Whether workgroups compute the positions of a step together, or in order."""
    return grid_for(step.task()).kind not in ("flat", "grid")


class WebGpuTileGroup(Bindings):
    """A fusion group of several steps, compiled as one shader."""

    def __init__(self, device: WebGpu, tiling: Tiling) -> None:
        super().__init__(device)
        self.tiling = tiling
        self.steps = [member.step for member in tiling.members]
        for step in self.steps:
            check_dtypes(device, step.name, step.program)
        self.name = ", ".join(step.name for step in self.steps)
        self.shader = emit_tiles(tiling)
        self.sizes = [
            sizes_of(layout_of(step.program), step.domain, step.task().shapes)
            for step in self.steps
        ]
        self.sizes_bytes = {
            number: size
            for step in self.steps
            for number, size in zip(step.buffers, step.task().sizes_bytes, strict=True)
        }
        self.groups = self._groups()
        self._code: Compiled | None = None

    def _groups(self) -> tuple[int, int, int]:
        across = -(-self.tiling.width // self.tiling.columns)
        down, more, _ = spread(-(-self.tiling.height // self.tiling.rows))
        return (across, down, more)

    def needs(self) -> set[int]:
        """Returns the memories that must exist: all but those that stay in tiles."""
        return {*self.shader.outputs, *self.shader.inputs}

    def moved_bytes(self) -> int:
        """Returns the bytes that all workgroups read and write, with halos."""
        return self.tiling.moved_bytes

    def how(self) -> str:
        """Returns how the group is computed."""
        tiling = self.tiling
        rows, columns = tiling.halo
        return (
            f"in one dispatch, by tiles of {tiling.rows} × {tiling.columns} with a halo of "
            f"{rows} × {columns}, {tiling.shared_bytes:,} bytes of workgroup memory"
        )

    def run(self, memories: Mapping[int, GpuMemory], params: Mapping[str, Number]) -> None:
        """Computes every step; memories that stay in tiles are ignored."""
        device, shader = self.device, self.shader
        device.check()
        numbers = (*shader.outputs, *shader.inputs)
        bound = [memories[number] for number in numbers]
        check_sizes(self.name, bound, [self.sizes_bytes[number] for number in numbers])
        with device.lock, device.guard():
            if self._code is None:
                counts = len(shader.outputs), len(shader.inputs)
                self._code = compiled(device, shader.text, *counts)
            packed = self._packed(params)
            if packed != self.packed:
                self.write_arguments(packed)
            bound = [item if item.size_bytes else empty_input(device) for item in bound]
            self.dispatch(self._code, bound, self.groups)

    def _packed(self, params: Mapping[str, Number]) -> bytes:
        return ZERO + b"".join(
            arguments.pack(step.domain, sizes, [params[name] for name in step.params])
            for step, sizes, arguments in zip(
                self.steps, self.sizes, self.shader.arguments, strict=True
            )
        )
