"""Transposed convolutions on the CPU, in phases: convolutions without zeros between elements.

Every so many pixels of the output meet the same taps with elements: those are a convolution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from dala.devices import current_device
from dala.kernels.tensor.windows import Windows
from dala.ml.executor import native_convolutions as native
from dala.ml.executor.channels_last import TO_LAST
from dala.ml.executor.epilogue import Epilogue
from dala.ml.executor.node_context import NodeContext
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.pipelines.composite import Stage


def has_phases(windows: Sequence[Windows], groups: int) -> bool:
    """Whether code for the CPU convolves the phases of windows as they lie in the result."""
    alike = groups == 1 and len(windows) == 2 and all(item.apart == 1 for item in windows)
    return alike and current_device().is_host


def in_phases(context: NodeContext, windows: Sequence[Windows]) -> Iterator[Stage]:
    """Defers a transposed convolution, with constant weights, to code for the CPU."""
    made = context.shape(1)[1]
    shape = (context.shape()[0], made, windows[0].count, windows[1].count)
    x, bias = context.ordered_input(TO_LAST), context.bias(2, made, "tiles", native.arranged_bias)
    steps = (windows[0].step, windows[1].step)
    phases = []
    for at in np.ndindex(*steps):
        found = [_met(item, n) for item, n in zip(windows, at, strict=True)]
        taps = tuple(
            slice(first, None, step) for (first, _), step in zip(found, steps, strict=True)
        )
        role = ("phase", at, steps, *(first for first, _ in found))
        by = context.weight(1, role, partial(_arranged_part, taps))
        phase = native.Phase((int(at[0]), int(at[1])), steps)
        phases.append((by, (found[0][1], found[1][1]), phase))

    def finish(epilogue: Epilogue, operands: Sequence[Buffer], out: Buffer) -> Iterator[Stage]:
        for by, parts, phase in phases:
            if parts[0].count > 0 and parts[1].count > 0:
                given = [x, by, bias, *operands]
                yield native.convolution_stage(given, out, parts, 1, epilogue, phase)

    return context.defer(shape, finish, partial(native.takes, shape), channels_last=True)


def _met(windows: Windows, phase: int) -> tuple[int, Windows]:
    """Returns the first tap that meets an element, and the windows over elements alone."""
    before = windows.size - 1 - windows.before
    first = (before - phase) % windows.step
    size = len(range(first, windows.size, windows.step))
    count = len(range(phase, windows.count, windows.step))
    return first, Windows(size, 1, 1, (before - phase - first) // windows.step, count)


def _arranged_part(taps: tuple[slice, ...], weight: np.ndarray) -> np.ndarray:
    """Weights (c, o, kh, kw) as those of the convolution of one phase, arranged."""
    turned = weight[..., ::-1, ::-1].transpose(1, 0, 2, 3)
    return native.arranged(turned[(slice(None), slice(None), *taps)], 1)
