"""Convolutions and products by code that is written for the CPU, of planes with channels last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, partial

import numpy as np

from dala.base.record import value
from dala.devices import CPU, current_device
from dala.emit.llvm.channels_last import Ending, lanes_of
from dala.emit.llvm.dense_convolution import BLOCK, dense_convolution, packed, padded_bias
from dala.emit.llvm.depthwise_convolution import depthwise_convolution, lined_up
from dala.kernels.tensor.windows import Windows, are_single
from dala.ml.executor.epilogue import Epilogue, Shape
from dala.plan.chunks import Chunks
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.pipelines.composite import Stage
from dala.runtime.pipelines.native import NativeKernel

MOST_OPERANDS = 6
MOST_DEPTHWISE_TAPS = 49
"""More taps would be too much code."""
SHARED_PRODUCTS = 1 << 18
"""Multiplications that are worth sharing among threads that are awake: a few microseconds."""
CHUNKS_PER_THREAD = 4
CHUNK_BYTES = 1 << 18
"""What a chunk reads of the input, at the most: it stays in the cache for all output channels."""
STRIP_PIXELS = 48
"""Pixels that a product takes at a time, where there are many: whole tiles."""
FEW_PIXELS = 96
"""Up to so many, threads share output channels rather than pixels, if there are enough."""

Pair = tuple[Windows, Windows]


def is_depthwise(channels: int, made: int, groups: int) -> bool:
    return groups == channels == made and channels > 1


def is_native(channels: int, made: int, groups: int, windows: Pair) -> bool:
    """Whether the current device has code for such a convolution."""
    few = windows[0].size * windows[1].size <= MOST_DEPTHWISE_TAPS
    deep = is_depthwise(channels, made, groups) and few
    return current_device().is_host and (groups == 1 or deep)


def takes(shape: Shape, operands: Sequence[Shape]) -> bool:
    """Whether operands are as large as the output (n, c, h, w), or have an element a channel."""
    return len(operands) <= MOST_OPERANDS and all(
        _is_whole(shape, item) or _is_row(shape, item) for item in operands
    )


def _is_whole(shape: Shape, operand: Shape) -> bool:
    return tuple(operand) == tuple(shape)


def _is_row(shape: Shape, operand: Shape) -> bool:
    padded = (1,) * (len(shape) - len(operand)) + tuple(operand)
    return padded == (1, shape[1], *(1,) * (len(shape) - 2))


def arranged(weight: np.ndarray, groups: int) -> np.ndarray:
    """Weights (o, c / groups, kh, kw) in the order in which the code needs them."""
    lanes = lanes_of(CPU.target())
    made, channels = weight.shape[:2]
    if channels == 1 and groups == made > 1:
        return lined_up(weight[:, 0], lanes)
    return packed(weight.transpose(2, 3, 1, 0).reshape(-1, made), lanes)


def arranged_matrix(weight: np.ndarray) -> np.ndarray:
    """A matrix (k, o) in the order in which the code needs it."""
    return packed(weight, lanes_of(CPU.target()))


def arranged_bias(bias: np.ndarray) -> np.ndarray:
    """A bias with zeros up to a whole register."""
    return padded_bias(bias, lanes_of(CPU.target()))


def convolution_stage(
    inputs: Sequence[Buffer],
    out: Buffer,
    windows: Pair,
    groups: int,
    epilogue: Epilogue,
    phase: Phase | None = None,
) -> Stage:
    """Returns the stage of x (n, h, w, c), weights, bias and operands, all arranged.

    An operand has the output's shape, or one element for each channel. With a phase, only some
    pixels of the output are written.
    """
    x, _, _, *operands = inputs
    batch, height, width, channels = x.shape
    made = out.shape[-1]
    down, across = windows
    plane: tuple[int, ...] = (batch, height, width, channels, down.count, across.count, made)
    deep = is_depthwise(channels, made, groups)
    alone = are_single(windows, (height, width))
    if not deep and phase is None and alone:
        rows, columns = out.shape[1:3]
        plane = (1, 1, batch * rows * columns, channels, 1, batch * rows * columns, made)
        down, across = Windows(1, 1, 1, 0, 1), Windows(1, 1, 1, 0, plane[2])
    whole = tuple(item.shape == out.shape for item in operands)
    places = None if phase is None else _places(out.shape, phase)
    kernel = _kernel(epilogue, whole, Layer(plane, down, across, deep, places))
    return Stage(kernel, inputs, out)


def takes_product(shape: Shape, operands: Sequence[Shape]) -> bool:
    """Whether operands are as large as a product (…, o), or have an element a column."""
    return len(operands) <= MOST_OPERANDS and all(
        _is_whole(shape, item) or (item[-1:] == shape[-1:] and math.prod(item) == shape[-1])
        for item in operands
    )


def product_stage(
    inputs: Sequence[Buffer], operands: Sequence[Buffer], out: Buffer, epilogue: Epilogue
) -> Stage:
    """Returns the stage of rows (…, k), weights (k, o) and bias, arranged, and operands."""
    x, by, bias = inputs
    rows, made = math.prod(out.shape[:-1]), out.shape[-1]
    target = reshaped(out, (1, 1, rows, made))
    seen = [
        reshaped(item, target.shape if item.shape == out.shape else (made,)) for item in operands
    ]
    given = [reshaped(x, (1, 1, rows, x.shape[-1])), by, bias, *seen]
    one = Windows(1, 1, 1, 0, 1)
    return convolution_stage(given, target, (one, Windows(1, 1, 1, 0, rows)), 1, epilogue)


@value
class Phase:
    """The pixels of an output that lie at `first` and every `step` from there, down and across."""

    first: tuple[int, int]
    step: tuple[int, int]


def _places(shape: Shape, phase: Phase) -> tuple[int, int, int, int]:
    """Returns where the first pixel lies, and how far the next image, row and pixel are."""
    _, rows, columns, made = shape
    line = columns * made
    first = phase.first[0] * line + phase.first[1] * made
    return first, rows * line, phase.step[0] * line, phase.step[1] * made


@value
class Layer:
    """A convolution but for what follows it: batch, h, w, c and h, w, c of the output; windows."""

    plane: tuple[int, ...]
    down: Windows
    across: Windows
    deep: bool
    places: tuple[int, int, int, int] | None = None
    """Where the output's pixels lie, if not one after another."""

    def strips(self, threads: int) -> tuple[int, int]:
        """Returns the rows of pixels that the code is told of, and the pixels in each."""
        batch, *_, rows, columns, _ = self.plane
        # Only where a pixel needs that pixel alone of the input may a row be cut.
        single = are_single((self.down, self.across), self.plane[1:3])
        if batch * rows > 1 or not single or columns <= 1 or self.places is not None:
            return batch * rows, columns
        if columns <= FEW_PIXELS and self._blocks() >= CHUNKS_PER_THREAD * threads:
            return 1, columns
        size = min(-(-columns // threads), STRIP_PIXELS)
        return -(-columns // size), size

    def _blocks(self) -> int:
        lanes = lanes_of(CPU.target())
        return -(-self.plane[-1] // (lanes if self.deep else BLOCK * lanes))

    def sizes(self) -> tuple[int, ...]:
        """Returns the sizes among the arguments of the code."""
        batch, height, width, channels, rows, columns, made = self.plane
        total = batch * rows * columns
        down, across = self.down, self.across
        count, pixels = self.strips(CPU.threads)
        if (count, pixels) != (batch * rows, columns):
            rows, columns, width = 1, pixels, pixels
        reach = (across.size - 1) * across.apart
        first = min(columns, -(-across.before // across.step))
        end = (width - 1 - reach + across.before) // across.step + 1
        merged = across.apart == 1 or across.size == 1
        line = columns * made
        places = self.places or (0, rows * line, line, made)
        return (
            *(rows, columns, total, height, width, channels, made),
            *(down.size, across.size, down.step, across.step, down.apart, across.apart),
            *(down.before, across.before, first, max(first, min(columns, end)), merged),
            *places,
        )

    def chunks(self, threads: int) -> Chunks:
        batch, height, width, channels, rows, columns, made = self.plane
        taps = self.down.size * self.across.size * (1 if self.deep else channels)
        strips, blocks = self.strips(threads)[0], self._blocks()
        whole = Chunks(strips, blocks, 1, strips, by_rows=True)
        if threads == 1 or batch * rows * columns * made * taps < SHARED_PRODUCTS:
            return whole
        if strips >= threads and (strips >= 2 * threads or blocks < 2 * threads or not self.deep):
            read = batch * height * width * channels * 4
            count = min(strips, max(threads * CHUNKS_PER_THREAD, -(-read // CHUNK_BYTES)))
            size = -(-strips // count)
            return Chunks(strips, blocks, -(-strips // size), size, by_rows=True)
        count = min(blocks, threads * CHUNKS_PER_THREAD)
        size = -(-blocks // count)
        return Chunks(strips, blocks, -(-blocks // size), size, by_rows=False)


@cache
def _kernel(epilogue: Epilogue, whole: tuple[bool, ...], layer: Layer) -> NativeKernel:
    names = ("x", "weight", "bias", *(f"operand{i}" for i in range(len(whole))))
    size = (layer.down.size, layer.across.size) if layer.deep else None
    emit = partial(_text, epilogue, whole, size)
    name = "convolve_depthwise" if layer.deep else "convolve"
    return NativeKernel(name, names, emit, layer.sizes(), layer.chunks)


@cache
def _text(epilogue: Epilogue, whole: tuple[bool, ...], size: tuple[int, int] | None) -> str:
    target = CPU.target()
    ending = Ending(epilogue.program(len(whole)), whole)
    if size is None:
        return dense_convolution(ending, target)
    return depthwise_convolution(ending, size, target)
