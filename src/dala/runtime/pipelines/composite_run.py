"""Composite kernels run as one launch graph: values between their stages stay in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dala.devices.device import Device
from dala.runtime.pipelines.execution_plan import plan_for
from dala.runtime.pipelines.launch_graph import LaunchGraph, expand

if TYPE_CHECKING:
    from dala.runtime.pipelines.composite import Stage


def run_fused(device: Device, stages: Sequence[Stage]) -> None:
    """Runs stages by the plan of their graph."""
    graph = LaunchGraph(
        [
            invocation
            for stage in stages
            for invocation in expand(stage.kernel, stage.inputs, stage.output, stage.params)
        ]
    )
    plan_for(device, graph, fuse=True).run(graph)
