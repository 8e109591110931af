"""A recipe run as a pipeline of its own stages: what lies between them stays in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dala.devices.device import Device, forget_oldest
from dala.runtime.arguments import Params
from dala.runtime.buffer import Buffer
from dala.runtime.expansion import Arrangement, expanded
from dala.runtime.kernel import Kernel
from dala.runtime.plan import Plan

if TYPE_CHECKING:
    from dala.runtime.recipe import Recipe

MOST_PLANS = 64
"""Plans that are remembered, the latest ones."""

_plans: dict[tuple[Any, ...], tuple[Plan, list[Kernel]]] = {}
"""With what each was made for: a signature names kernels by what is theirs while they live."""


def run_fused(
    device: Device, recipe: Recipe, inputs: Sequence[Buffer], output: Buffer, params: Params | None
) -> None:
    """Compute the output, a few rows of every stage at a time where the device goes by rows."""
    primitives = list(expanded(recipe, inputs, output, params or {}))
    arranged = Arrangement(primitives)
    key = (device, arranged.signature)
    known = _plans.get(key)
    if known is None:
        kernels = [item.kernel for item in primitives]
        known = _plans[key] = (Plan(device, arranged, fuse=True), kernels)
        forget_oldest(_plans, MOST_PLANS)
    known[0].run(arranged.buffers, arranged.values)
