"""A recipe run as a pipeline of its own stages: what lies between them stays in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dala.devices.device import Device, forget_oldest
from dala.runtime.expansion import Arrangement, expanded
from dala.runtime.kernel import Kernel
from dala.runtime.plan import Plan

if TYPE_CHECKING:
    from dala.runtime.recipe import Stage

MOST_PLANS = 64
"""Plans that are remembered, the latest ones."""

_plans: dict[tuple[Any, ...], tuple[Plan, list[Kernel]]] = {}
"""With what each was made for: a signature names kernels by what is theirs while they live."""


def run_fused(device: Device, stages: Sequence[Stage]) -> None:
    """Run the stages, a few rows of each at a time where the device goes by rows."""
    primitives = [
        primitive
        for stage in stages
        for primitive in expanded(stage.kernel, stage.inputs, stage.output, stage.params)
    ]
    arranged = Arrangement(primitives)
    key = (device, arranged.signature)
    known = _plans.get(key)
    if known is None:
        kernels = [item.kernel for item in primitives]
        known = _plans[key] = (Plan(device, arranged, fuse=True), kernels)
        forget_oldest(_plans, MOST_PLANS)
    known[0].run(arranged)
