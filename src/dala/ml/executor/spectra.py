"""Fourier transforms, of whole axes and of frames, and the windows and tables beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from dala.kernels.base.builtin import written
from dala.kernels.tensor.fourier import fft
from dala.ml.executor.constant_folding import Fold
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.sizes import axis_in, require
from dala.ml.executor.steps import Steps
from dala.ml.executor.unfolding import kernel_of
from dala.ml.onnx.contents import Node
from dala.ml.onnx.tensors import NUMPY_DTYPES
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

LONGEST_TABLE, SHORT = 2048, 128
"""Frames, and axes, up to these lengths are transformed by a product with a table of waves."""


def transform(context: NodeContext) -> Iterable[Stage]:
    """DFT along an axis; complex numbers are pairs along the last axis."""
    node, x, steps = context.node, context.input(), Steps()
    rank, named = len(x.shape), context.array(2)
    require(node, rank > 1 and x.shape[-1] in (1, 2), f"{x.shape} does not end in 1 or 2")
    usual = node.get("axis", 1 if node.opset < 20 else -2)
    axis = axis_in(node, usual if named is None else named.item(), rank)
    require(node, axis < rank - 1, f"axis {axis} is that of the parts of numbers")
    inverse, half = bool(node.get("inverse", 0)), bool(node.get("onesided", 0))
    mirrored = inverse and half
    length = context.array(1)
    given = 2 * (x.shape[axis] - 1) if mirrored else x.shape[axis]
    count = given if length is None else int(length.item())
    require(node, count > 0, f"a transform of {count} elements is none")
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 : -1])
    parts = x.shape[-1]
    seen = reshaped(x, (outer, x.shape[axis], inner, parts))
    if mirrored:
        seen = steps.run(_mirroring(count, parts), [seen], (outer, count, inner, 2))
    elif count != x.shape[axis]:
        text = "def cut(x):\n    i, k, j, c = dala.position(4)\n    return x[i, k, j, c]"
        shape = (outer, count, inner, parts)
        seen = steps.run(kernel_of("cut", text, "zero"), [seen], shape)
    made = count // 2 + 1 if half and not inverse else count
    last = 1 if mirrored else 2
    out = context.output((*x.shape[:axis], made, *x.shape[axis + 1 : -1], last), x.scalar)
    if count <= SHORT and not mirrored:
        table = _waves(count, made, parts, inverse=inverse)
        _by_table(steps, seen, context.builder.uploaded("", table), made, out)
        return steps
    if seen.shape[-1] == 1:
        seen = reshaped(seen, seen.shape[:-1])
    whole = (outer, count, inner, 2)
    params = {"axis": 1, "inverse": inverse}
    if (made, last) == (count, 2):
        steps.run(fft, [seen], whole, params, into=out)
        return steps
    found = steps.run(fft, [seen], whole, params)
    text = "def taken(x):\n    i, k, j, c = dala.position(4)\n    return x[i, k, j, c]"
    steps.run(written("taken", text), [found], (outer, made, inner, last), into=out)
    return steps


def _by_table(steps: Steps, x: Buffer, table: Buffer, made: int, out: Buffer) -> None:
    """Transform (outer, count, inner, parts) by a product, for each of outer and inner."""
    outer, count, inner, parts = x.shape
    rows = steps.transpose(x, (0, 2, 1, 3))
    found = steps.multiply(reshaped(rows, (outer * inner, count * parts)), table)
    apart = reshaped(found, (outer, inner, made, 2))
    steps.transpose(apart, (0, 2, 1, 3), into=reshaped(out, (outer, made, inner, 2)))


def _mirroring(count: int, parts: int) -> Kernel:
    """A kernel for the other half of a spectrum, whose elements are conjugates of the first."""
    other = "x[i, at, j, c]" if parts == 2 else "(x[i, at, j, 0] if c == 0 else 0.0)"
    lines = [
        "i, k, j, c = dala.position(4)",
        f"first = k <= {count // 2}",
        f"at = k if first else {count} - k",
        f"return {other} if first or c == 0 else -{other}",
    ]
    return kernel_of("mirror", "def mirror(x):\n    " + "\n    ".join(lines), "zero")


def transform_frames(context: NodeContext) -> Iterable[Stage]:
    """STFT: frames of a signal under a window, each transformed."""
    node, x, steps = context.node, context.input(), Steps()
    rank_fits = len(x.shape) == 2 or (len(x.shape) == 3 and x.shape[2] in (1, 2))
    require(node, rank_fits, f"a signal of {x.shape} is not (batch, length, 1 or 2)")
    batch, total, parts = (*x.shape, 1)[:3]
    step = int(np.asarray(context.array(1)).item())
    window = context.input(2) if node.has(2) else None
    given = context.array(3)
    size = 0 if window is None else window.shape[0]
    size = size if given is None else int(given.item())
    fits = step > 0 < size <= total and (window is None or window.shape == (size,))
    require(node, fits, f"frames of {size} every {step} are none of a signal of {total}")
    frames = (total - size) // step + 1
    half = bool(node.get("onesided", 1)) and parts == 1
    bins = size // 2 + 1 if half else size
    seen, shape = reshaped(x, (batch, total, parts)), (batch, frames, size, parts)
    lines = ["b, f, k, c = dala.position(4)", f"element = x[b, f * {step} + k, c]"]
    lines.append("return element" if window is None else "return element * window[k]")
    names = "x" if window is None else "x, window"
    kernel = written("frame", f"def frame({names}):\n    " + "\n    ".join(lines))
    cut = steps.run(kernel, [seen] if window is None else [seen, window], shape)
    out = context.output((batch, frames, bins, 2), x.scalar)
    if size <= LONGEST_TABLE:
        table = context.builder.uploaded("", _waves(size, bins, parts))
        rows = reshaped(cut, (batch * frames, size * parts))
        steps.multiply(rows, table, into=reshaped(out, (batch * frames, 2 * bins)))
        return steps
    numbers = reshaped(cut, (batch * frames, size)) if parts == 1 else cut
    numbers = reshaped(numbers, (batch * frames, size, 2)) if parts == 2 else numbers
    found = steps.run(fft, [numbers], (batch * frames, size, 2), {"axis": 1, "inverse": False})
    text = "def taken(x):\n    i, k, c = dala.position(3)\n    return x[i, k, c]"
    steps.run(written("taken", text), [found], (batch * frames, bins, 2), into=out)
    return steps


def _waves(size: int, bins: int, parts: int, *, inverse: bool = False) -> np.ndarray:
    """What each part of each element contributes to both parts of each bin."""
    angles = 2 * np.pi / size * (np.outer(np.arange(size), np.arange(bins)) % size)
    angles = -angles if inverse else angles
    real = np.stack([np.cos(angles), -np.sin(angles)], -1)
    both = np.stack([real, np.stack([np.sin(angles), np.cos(angles)], -1)], 1)
    table = both[:, :parts].reshape(size * parts, 2 * bins) / (size if inverse else 1)
    return table.astype(np.float32)


# -- constants -------------------------------------------------------------------------------------


def window(terms: Sequence[float]) -> Fold:
    """Returns a window that is a sum of cosines, given its size."""

    def fold(node: Node, given: Sequence[np.ndarray | None]) -> np.ndarray:
        size = int(np.asarray(given[0]).item())
        length = size if node.get("periodic", 1) else max(size - 1, 1)
        angles = 2 * np.pi * np.arange(size) / length
        found = sum(term * np.cos(i * angles) for i, term in enumerate(terms))
        return np.asarray(found, NUMPY_DTYPES[node.get("output_datatype", 1)])

    return fold


HANN, HAMMING, BLACKMAN = (0.5, -0.5), (25 / 46, -21 / 46), (0.42, -0.5, 0.08)


def mel_weights(node: Node, given: Sequence[np.ndarray | None]) -> np.ndarray:
    """MelWeightMatrix: how much each bin of a spectrum counts for each band of the mel scale."""
    bands, size, rate, low, high = (np.asarray(item).item() for item in given)
    bins = size // 2 + 1
    edges = np.arange(0, bands + 2, dtype=np.float64)
    ends = [2595 * np.log10(1 + it / 700) for it in (low, high)]
    mels = edges * (ends[1] - ends[0]) / (bands + 2) + ends[0]
    places = ((size + 1) * (700 * (10 ** (mels / 2595) - 1)) // rate).astype(int)
    found = np.zeros((bins, bands))
    for band in range(bands):
        first, center, last = places[band : band + 3]
        rising = center - first
        if rising == 0:
            found[center, band] = 1
        else:
            found[first : center + 1, band] = (np.arange(first, center + 1) - first) / rising
        if last > center:
            found[center:last, band] = (last - np.arange(center, last)) / (last - center)
    return found.astype(NUMPY_DTYPES[node.get("output_datatype", 1)])
