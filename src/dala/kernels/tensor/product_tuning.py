"""Measures in which tiles a device multiplies matrices fastest."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dala.base.record import value
from dala.emit.wgsl.products import ProductTile, ProductTiles
from dala.errors import DeviceError
from dala.ir.types import F32
from dala.kernels.base.builtin import written
from dala.plan.task import Task
from dala.runtime.kernels.specialization import specialized_task

if TYPE_CHECKING:
    from dala.devices.webgpu.device import WebGpu

LARGE_SIZE, SMALL_SIZE = 512, 128
RUNS = 3
"""How often a tile is measured; its best time counts."""
_TEXT = """
def multiply(a, b):
    i, j = dala.position(2)
    return sum(a[i, k] * b[k, j] for k in range(a.shape[1]))
"""


@value
class Measured:
    """How long a product of square matrices took in a tile; None where its result was wrong."""

    size: int
    tile: ProductTile
    seconds: float | None

    @property
    def gflops(self) -> float:
        return 2e-9 * self.size**3 / self.seconds if self.seconds else 0.0


def tune(
    device: WebGpu,
    most_s: float,
    sizes: tuple[int, int] = (LARGE_SIZE, SMALL_SIZE),
    told: Callable[[Measured], None] = lambda found: None,
) -> ProductTiles:
    """Returns the fastest tiles for large products and for small ones.

    The usual tile is measured whatever it takes; others as long as there is time left, half of it
    for each size. The device goes on with the tiles it had.
    """
    from dala.devices.webgpu.products import candidates

    before, best = device.products, []
    try:
        for size in sizes:
            until = time.perf_counter() + most_s / len(sizes)
            found: list[Measured] = []
            for tile in candidates(device.adapter):
                if found and time.perf_counter() > until:
                    break
                found.append(_measured(device, size, tile))
                told(found[-1])
            right = [item for item in found if item.seconds is not None]
            if not right:
                raise DeviceError(
                    f"{device.id} ({device.name}) multiplies matrices of {size} × {size} wrongly "
                    f"in every tile: its driver may be broken. Use the device 'cpu'."
                )
            best.append(min(right, key=lambda item: item.seconds or 0.0).tile)
    finally:
        device.products = before
    return ProductTiles(*best)


def _measured(device: WebGpu, size: int, tile: ProductTile) -> Measured:
    """Measures a product, once its result is what NumPy makes of it."""
    task, a, b = _problem(size)
    device.products = ProductTiles(tile, tile)
    runner = device.load(task)
    memories = [device.allocate(a.nbytes) for _ in range(3)]
    for memory, data in zip(memories, (a, b), strict=False):
        device.write(memory, data.reshape(-1).view(np.uint8))
    inputs, outputs = memories[:2], memories[2:]
    runner.run(inputs, outputs, ())
    made = device.read(outputs[0]).view(np.float32).reshape(size, size)
    if not np.allclose(made, a @ b, rtol=1e-4, atol=1e-3):
        return Measured(size, tile, None)
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        runner.run(inputs, outputs, ())
        device.synchronize()
        best = min(best, time.perf_counter() - start)
    return Measured(size, tile, best)


def _problem(size: int) -> tuple[Task, np.ndarray, np.ndarray]:
    kind = (F32, (size, size))
    definition = written("multiply", _TEXT).definition
    task = specialized_task("multiply", definition, (kind, kind), (kind,), (), ())
    random = np.random.default_rng(1)
    a, b = (random.standard_normal((size, size)).astype(np.float32) for _ in range(2))
    return task, a, b
