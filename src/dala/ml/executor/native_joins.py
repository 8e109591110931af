"""Values one after another along an axis, by code for the CPU that copies rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, partial

from dala.emit.llvm.row_copies import row_copies
from dala.kernels.tensor.gathering import SHARED_BYTES
from dala.plan.chunks import CHUNKS_PER_THREAD, Chunks
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.pipelines.composite import Stage
from dala.runtime.pipelines.native import NativeKernel

ALONE_BYTES = 1 << 17
"""What one thread copies as soon as two."""


def joins(out: Buffer, axis: int) -> bool:
    """Whether rows are many, or small: threads share one that is large."""
    return math.prod(out.shape[:axis]) > 1 or 0 < out.size < SHARED_BYTES


def joined_stage(parts: Sequence[Buffer], out: Buffer, axis: int) -> Stage:
    """Returns the stage that joins parts along an axis."""
    rows = math.prod(out.shape[:axis])
    sizes = tuple(item.size // rows for item in (out, *parts))
    return Stage(_kernel(rows, sizes), parts, out)


@cache
def _kernel(rows: int, sizes: tuple[int, ...]) -> NativeKernel:
    count = len(sizes) - 1
    names = tuple(f"x{i}" for i in range(count))
    return NativeKernel(
        "concat", names, partial(_text, count), sizes, partial(_cut, rows, sizes[0])
    )


@cache
def _text(count: int) -> str:
    return row_copies(count)


def _cut(rows: int, size: int, threads: int) -> Chunks:
    count = 1 if rows * size < ALONE_BYTES else min(rows, threads * CHUNKS_PER_THREAD)
    each = -(-rows // count)
    return Chunks(rows, 1, -(-rows // each), each, by_rows=True)
