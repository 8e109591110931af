"""A recipe run as a pipeline of its own stages: what lies between them stays in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dala.devices.device import Device
from dala.runtime.pipelines.execution_plan import plan_for
from dala.runtime.pipelines.launch_graph import Arrangement, expanded

if TYPE_CHECKING:
    from dala.runtime.pipelines.composite import Stage


def run_fused(device: Device, stages: Sequence[Stage]) -> None:
    """Run the stages, a few rows of each at a time where the device goes by rows."""
    primitives = [
        primitive
        for stage in stages
        for primitive in expanded(stage.kernel, stage.inputs, stage.output, stage.params)
    ]
    arranged = Arrangement(primitives)
    plan_for(device, arranged, fuse=True).run(arranged)
