"""What published GPUs could do at best: bytes and operations of each dispatch, computed only.

A dispatch takes at least as long as its operations take at the peak of an adapter, and as its
buffers, each moved once, take at its bandwidth. What is measured is in other sections.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import models, page
from benchmarks.harness import show_seconds
from dala.emit.wgsl.products import HARDWARE
from dala.gpu import compute
from dala.runtime.pipelines.composite import Stage

SIZES = (256, 512, 1024, 4096)
NAME = "roofline"


@dataclass(frozen=True)
class Published:
    """An adapter, its peak in f32 and its bandwidth, as its maker states them."""

    name: str
    tflops: float
    gb_per_s: float

    def seconds(self, dispatch: Dispatch) -> float:
        return max(self.compute_s(dispatch), dispatch.size_bytes / (self.gb_per_s * 1e9))

    def compute_s(self, dispatch: Dispatch) -> float:
        return dispatch.operations / (self.tflops * 1e12)


ADAPTERS = (
    Published("Intel Iris Xe MAX", 2.5, 68),
    Published("Apple M2, 10 cores", 3.6, 100),
    Published("Intel Arc A770", 19.7, 512),
    Published("NVIDIA RTX 4090", 82.6, 1008),
)


@dataclass(frozen=True)
class Dispatch:
    """A kernel on its buffers: how many operations on floats it takes, and how many bytes."""

    kind: str
    operations: int
    size_bytes: int


def dispatch_of(stage: Stage) -> Dispatch:
    """The dispatch of a model's stage; what is no sum of products counts once for each element."""
    made = int(np.prod(stage.output.shape))
    moved = sum(_size_bytes(item) for item in (*stage.inputs, stage.output))
    params, shapes = dict(stage.params), [item.shape for item in stage.inputs]
    if stage.kernel.name == "convolve_depthwise":
        taps = params["tall"] * params["wide"]
        return Dispatch("depthwise", 2 * made * taps, moved)
    if stage.kernel.name == "convolve" and params:
        terms = params["tall"] * params["wide"] * params["channels"]
        return Dispatch("several taps", 2 * made * terms, moved)
    if stage.kernel.name == "convolve":
        return Dispatch("single tap", 2 * made * shapes[1][1], moved)
    if stage.kernel.name == "dense":
        return Dispatch("dense", 2 * made * shapes[0][1], moved)
    return Dispatch("other", made, moved)


def _size_bytes(buffer: compute.Buffer) -> int:
    return int(np.prod(buffer.shape)) * buffer.scalar.size_bytes


def of_mobilenet(weights: Path) -> list[Dispatch]:
    """The dispatches of MobileNetV2, as they are made for a device that runs WGSL."""
    from dala.ml.executor.graph import Graph
    from dala.ml.onnx.contents import read_contents

    with compute.device("webgpu"):
        graph = Graph(read_contents(weights.name, weights.read_bytes()))
        given = {"input": compute.buffer_zeros((1, 3, 224, 224), "f32")}
        rooms = {"logits": compute.buffer_zeros((1, 1000), "f32")}
        return [dispatch_of(stage) for stage in graph.stages(given, rooms)]


def of_product(size: int) -> Dispatch:
    return Dispatch(f"matmul {size}³", 2 * size**3, 12 * size**2)


def requested_bytes(size: int) -> int:
    """What the workgroups of a product ask for: each its rows and its columns, and its elements."""
    tile = HARDWARE.large if size * size >= 1 << 16 else HARDWARE.small
    across, down = -(-size // tile.width), -(-size // tile.height)
    return 4 * size * across * down * (tile.height + tile.width) + 4 * size**2


def rows(name: str, dispatches: Sequence[Dispatch]) -> Iterator[str]:
    operations = sum(item.operations for item in dispatches)
    moved = sum(item.size_bytes for item in dispatches)
    cells = [name, str(len(dispatches)), f"{operations / 1e9:.3g}", f"{moved / 1e6:.3g}"]
    cells.append(f"{operations / moved:.3g}")
    for adapter in ADAPTERS:
        least = sum(map(adapter.seconds, dispatches))
        bound = sum(adapter.compute_s(item) for item in dispatches) / least
        cells.append(f"{show_seconds(least)} ({bound:.0%})")
    yield "| " + " | ".join(cells) + " |"


def section() -> str:
    """The text of the page: a line for each kind of dispatch of the model, and for products."""
    dispatches = of_mobilenet(models.weights())
    head = ["work", "dispatches", "GFLOP", "MB", "FLOP per byte"]
    head += [f"{item.name} ({item.tflops} TFLOP/s, {item.gb_per_s:g} GB/s)" for item in ADAPTERS]
    lines = ["## Roofline", "", "**Computed, not measured**: no GPU was there.", *_explained(), ""]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    kinds = dict.fromkeys(item.kind for item in dispatches)
    for kind in kinds:
        lines += rows(f"mobilenet_v2: {kind}", [item for item in dispatches if item.kind == kind])
    lines += rows("mobilenet_v2", dispatches)
    for size in SIZES:
        lines += rows(f"matmul {size}³", [of_product(size)])
    tile = HARDWARE.large
    lines += [
        "",
        f"Of products, workgroups ask for more than each buffer once: in tiles of "
        f"{tile.height} × {tile.width} "
        + ", ".join(f"{requested_bytes(size) / 1e6:,.0f} MB ({size}³)" for size in SIZES)
        + f", {2 * SIZES[-1] ** 3 / requested_bytes(SIZES[-1]):.3g} FLOP for each byte; "
        "what a cache answers of that never reaches memory.",
    ]
    return "\n".join(lines)


def _explained() -> list[str]:
    return [
        "For each dispatch the time that its operations take at an adapter's published peak of",
        "f32, or that its buffers take at the published bandwidth if each is moved once, whichever",
        "is longer, added up. In brackets the share that the operations would take alone: at 100 %",
        "the work is bound by them, below by memory. Launches and waiting come on top.",
    ]


def write() -> None:
    """Put the section into the page; all else stays as it was."""
    text = page.PAGE.read_text(encoding="utf-8")
    page.PAGE.write_text(page.placed(text, NAME, section()), encoding="utf-8")
