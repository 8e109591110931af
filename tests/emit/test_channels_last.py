"""Code for planes with channels last: every width of registers, every kind of edge."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from dala.devices import CPU
from dala.emit.llvm.channels_last import Ending, lanes_of
from dala.emit.llvm.dense_convolution import BLOCK, dense_convolution, packed, padded_bias
from dala.emit.llvm.depthwise_convolution import depthwise_convolution, lined_up
from dala.emit.llvm.module import ENTRY
from dala.emit.llvm.target import Target
from dala.kernels.tensor.windows import Windows
from dala.ml.executor.epilogue import Epilogue
from dala.ml.executor.native_convolutions import Layer

ENDING = Epilogue(("v1 = max(v0 + x0, 0.0)",), "v1 * x1")
WIDTHS = [bits for bits in (128, 256, 512) if bits <= CPU.compiler.vector_bits]

LAYERS = {
    "one tap": ((2, 5, 7, 19), 37, Windows(1, 1, 1, 0, 5), Windows(1, 1, 1, 0, 7)),
    "three by three": ((2, 5, 30, 3), 33, Windows(3, 1, 1, 1, 5), Windows(3, 1, 1, 1, 30)),
    "steps": ((1, 9, 11, 5), 16, Windows(3, 2, 1, 1, 5), Windows(3, 2, 1, 1, 6)),
    "taps apart": ((1, 7, 8, 4), 5, Windows(3, 1, 2, 2, 7), Windows(3, 1, 2, 2, 8)),
    "wider than the plane": ((1, 2, 2, 4), 4, Windows(5, 1, 1, 2, 2), Windows(5, 1, 1, 2, 2)),
    "nothing inside": ((1, 3, 3, 4), 4, Windows(2, 1, 1, 4, 10), Windows(2, 1, 1, 4, 10)),
    "begins inside": ((1, 6, 6, 4), 3, Windows(2, 1, 1, -2, 3), Windows(2, 1, 1, -1, 4)),
}


def expected(x, weight, bias, down, across):
    """Sums of windows (n, h, w, o), for weights (kh, kw, c, o)."""
    batch, height, width, _ = x.shape
    made = np.tile(bias.astype(np.float64), (batch, down.count, across.count, 1))
    for y, z, a, b in np.ndindex(down.count, across.count, *weight.shape[:2]):
        row = y * down.step - down.before + a * down.apart
        column = z * across.step - across.before + b * across.apart
        if 0 <= row < height and 0 <= column < width:
            made[:, y, z] += x[:, row, column].astype(np.float64) @ weight[a, b]
    return made


def run(text, arrays, sizes, rows, blocks):
    code = CPU.compiler.compile(text, ENTRY)
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_int64] * 4)
    words = [item.ctypes.data for item in arrays] + [int(item) for item in sizes]
    slots = (ctypes.c_int64 * len(words))(*words)
    assert function(code.addresses[ENTRY])(ctypes.addressof(slots), 0, rows, 0, blocks) == 0


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("deep", [False, True], ids=["dense", "depthwise"])
@pytest.mark.parametrize("name", LAYERS)
def test_sums_of_windows_with_an_ending(name, deep, bits):
    shape, made, down, across = LAYERS[name]
    channels = shape[-1]
    made = channels if deep else made
    random = np.random.default_rng(0)
    x = random.standard_normal(shape).astype(np.float32)
    weight = random.standard_normal((down.size, across.size, channels, made)).astype(np.float32)
    if deep:
        weight *= np.eye(channels, dtype=np.float32)
    bias, each = (random.standard_normal(made).astype(np.float32) for _ in range(2))
    out = np.full((shape[0], down.count, across.count, made), np.nan, np.float32)
    added = random.standard_normal(out.shape).astype(np.float32)
    target = Target(bits)
    lanes = lanes_of(target)
    ending = Ending(ENDING.program(2), (True, False))
    layer = Layer((*shape, down.count, across.count, made), down, across, deep)
    if deep:
        text = depthwise_convolution(ending, (down.size, across.size), target)
        order = lined_up(np.einsum("abcc->cab", weight), lanes)
    else:
        text = dense_convolution(ending, target)
        order = packed(weight.reshape(-1, made), lanes)
    arrays = [out, x, order, padded_bias(bias, lanes), added, each]
    blocks = -(-made // (lanes if deep else BLOCK * lanes))
    run(text, arrays, layer.sizes(), shape[0] * down.count, blocks)
    want = np.maximum(expected(x, weight, bias, down, across) + added, 0) * each
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-4)
