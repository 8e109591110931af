"""Convolutions on devices that run WGSL, each with the epilogue that follows it.

One of a single tap is a matrix product, which a kernel of the language computes. Of others an
invocation computes several channels at a place: an element that it reads serves all of them. The
weights are the same for the whole workgroup; in a subgroup of known size each invocation reads some
of them, and tells the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np

from dala.kernels.base.builtin import written
from dala.kernels.tensor.windows import Windows, are_single
from dala.lang.wgsl_module import read_module
from dala.ml.executor.epilogue import reads
from dala.ml.executor.wgsl_depthwise import (
    shape_of,
    single_kernel,
    subgroup_kernel,
    subgroup_params,
    suits_subgroups,
)
from dala.ml.executor.wgsl_epilogues import BoundEpilogue, text_of
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.kernels.wgsl import WgslKernel
from dala.runtime.pipelines.composite import Stage

MOST_QUADS = 4
"""Vectors of four channels that an invocation computes, at most; in a subgroup, one for each."""
PLACES = 4
"""Places of a plane that an invocation computes: what it reads of weights serves all of them."""
LANES = 32
"""Invocations of a workgroup, along the places of a plane."""
LEAST_PRODUCT = 16
"""Channels made, and places, from which on a single tap is computed as a product."""

_DENSE = """
@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let p = group.x * LANES * PLACES + local * STEP;
  let part = group.y / args.blocks;
  let plane = args.height * args.width;
  let first = (group.z * args.groups + part) * args.channels * plane;
  var w = group.y * args.tall * args.wide * args.channels * QUADS;
  SUMS
  TAPS
  let block = group.y % args.blocks * QUADS * 4u;
  // A loop, because epilogues written out for every sum take drivers seconds to compile.
  var sums = array<vec4<f32>, COUNT>(ALL);
  STORES
}
"""

_STORES = """
  for (var k = 0u; k < COUNT * 4u; k++) {
    let o = block + k / (PLACES * 4u) * 4u + k % 4u;
    let at = p + k / 4u % PLACES * APART;
    if (o < args.made && at < args.pixels) {
      store(sums[k / 4u][k % 4u], group.z, part * args.made + o, at);
    }
  }
"""

_STORES_OF_FOUR = """
  for (var k = 0u; k < QUADS * 4u; k++) {
    let o = block + k;
    let q = k / 4u * 4u;
    let c = k % 4u;
    let four = vec4<f32>(sums[q][c], sums[q + 1u][c], sums[q + 2u][c], sums[q + 3u][c]);
    if (o < args.made && p < args.pixels) {
      store_four(four, group.z, part * args.made + o, p);
    }
  }
"""

_ONE_TAP = """
  EACH{ let placeI = min(p + I * APART, args.pixels - 1u); }
  var at = first;
  for (var c = 0u; c < args.channels; c++) {
    EACH{ let eI = x[at + placeI]; }
    ADDS
    at += plane;
    w += QUADS;
  }
"""

_ALL_TAPS = """
  EACH{
    let placeI = min(p + I * APART, args.pixels - 1u);
    let rowI = i32(placeI / args.columns * args.down) - args.top;
    let columnI = i32(placeI % args.columns * args.across) - args.left;
  }
  for (var a = 0u; a < args.tall; a++) {
    for (var b = 0u; b < args.wide; b++) {
      EACH{
        let yI = rowI + i32(a * args.apart_down);
        let zI = columnI + i32(b * args.apart_across);
        let insideI = yI >= 0 && yI < i32(args.height) && zI >= 0 && zI < i32(args.width);
        let offsetI = select(0u, u32(yI) * args.width + u32(zI), insideI);
      }
      var at = first;
      for (var c = 0u; c < args.channels; c++) {
        EACH{ let eI = select(0.0, x[at + offsetI], insideI); }
        ADDS
        at += plane;
        w += QUADS;
      }
    }
  }
"""


def is_depthwise(channels: int, made: int, groups: int) -> bool:
    """Returns whether each channel is convolved by itself; its weights are then not rearranged."""
    return groups > 1 and channels == groups == made


def quads_for(made: int, lanes: int) -> int:
    """Returns the vectors of channels that waste the fewest, the most of those."""
    most = lanes or MOST_QUADS
    return min(range(most, 0, -1), key=lambda quads: -(-made // (4 * quads)) * quads)


def arranged(weight: np.ndarray, groups: int, lanes: int) -> np.ndarray:
    """Weights (o, c, kh, kw) in blocks of channels, in the order in which they are read."""
    made, channels, tall, wide = weight.shape
    own = made // groups
    block = 4 * quads_for(own, lanes)
    blocks = -(-own // block)
    found = np.zeros((groups, blocks * block, channels, tall, wide), np.float32)
    found[:, :own] = weight.reshape(groups, own, channels, tall, wide)
    found = found.reshape(groups, blocks, block, channels, tall, wide)
    return np.ascontiguousarray(found.transpose(0, 1, 4, 5, 3, 2))


def arranged_bias(bias: np.ndarray, groups: int, lanes: int) -> np.ndarray:
    """Returns one number for each channel of each block."""
    own = bias.size // groups
    block = 4 * quads_for(own, lanes)
    found = np.zeros((groups, -(-own // block) * block), np.float32)
    found[:, :own] = bias.reshape(groups, own)
    return found


def is_product(
    plane: Sequence[int], shape: tuple[int, ...], windows: tuple[Windows, Windows], groups: int
) -> bool:
    """Whether a convolution of planes to such a shape is computed as a product of matrices."""
    made, rows, columns = shape[1:]
    large = min(made, rows * columns) >= LEAST_PRODUCT
    return are_single(windows, plane) and groups == 1 and large


def product_stage(inputs: Sequence[Buffer], output: Buffer, bound: BoundEpilogue) -> Stage:
    """The stage that multiplies weights (o, c) with planes, bias and epilogue added."""
    x, weight, bias, *operands = inputs
    batch, channels = x.shape[:2]
    shape = (batch, output.shape[1], output.shape[2] * output.shape[3])
    seen = [
        reshaped(item, tuple(n for n, has in zip(shape, mask, strict=True) if has) or (1,))
        for item, mask in zip(operands, bound.masks, strict=True)
    ]
    matrices = [reshaped(x, (batch, channels, shape[2])), weight, bias]
    return Stage(_product_kernel(bound), [*matrices, *seen], reshaped(output, shape))


@cache
def _product_kernel(bound: BoundEpilogue) -> Kernel:
    lines = [
        "n, o, p = dala.position(3)",
        "v0 = sum(weight[o, k] * x[n, k, p] for k in range(weight.shape[1])) + bias[o]",
        *reads(bound.masks, ["n", "o", "p"]),
        *bound.epilogue.lines,
        f"return {bound.epilogue.result}",
    ]
    given = ", ".join(["x", "weight", "bias", *(f"o{i}" for i in range(len(bound.masks)))])
    return written("convolve", f"def convolve({given}):\n    " + "\n    ".join(lines))


def convolution_stage(
    inputs: Sequence[Buffer],
    output: Buffer,
    windows: tuple[Windows, Windows],
    groups: int,
    bound: BoundEpilogue,
    lanes: int,
) -> Stage:
    """The stage that convolves x with arranged weights; other inputs are the epilogue's own."""
    x = inputs[0]
    batch, channels, height, width = x.shape
    down, across = windows
    made, rows, columns = output.shape[1:]
    own = made // groups
    quads = quads_for(own, lanes)
    params = {
        "pixels": rows * columns,
        "columns": columns,
        "channels": channels // groups,
        "made": own,
        "blocks": -(-own // (4 * quads)),
        "groups": groups,
        "height": height,
        "width": width,
        "tall": down.size,
        "wide": across.size,
        "down": down.step,
        "across": across.step,
        "apart_down": down.apart,
        "apart_across": across.apart,
        "top": down.before,
        "left": across.before,
        **dict.fromkeys(("zero", "rows", "run", "units", "segments"), 0),
    }
    if is_depthwise(channels, made, groups):
        shape = shape_of(windows, width)
        if suits_subgroups(shape, lanes, width):
            params |= subgroup_params(shape, lanes, width, rows, columns)
            kernel = subgroup_kernel(bound, lanes, shape, 0 if shape.four else width)
        else:
            count = LANES if rows * columns > PLACES * LANES // 2 else LANES // 2
            kernel = single_kernel(bound, count, down.size, down.step, down.apart)
        return Stage(kernel, inputs, output, params)
    target = reshaped(output, (batch, groups, own, rows * columns))
    count = LANES if rows * columns > PLACES * LANES // 2 else LANES // 2
    single = are_single(windows, (height, width))
    kernel = _dense_kernel(bound, single, quads, count, lanes, rows * columns % 4 == 0)
    return Stage(kernel, inputs, target, params)


@cache
def _dense_kernel(
    bound: BoundEpilogue, plain: bool, quads: int, count: int, lanes: int, four: bool
) -> Kernel:
    sums = [(q, i) for q in range(quads) for i in range(PLACES)]
    wide = four and lanes > 0
    """Whether the places of an invocation lie side by side, and are stored at once."""
    count = lanes or count
    told = [f"let held = weight[w + min(local, {quads - 1}u)];"]
    told += [f"let w{q} = subgroupBroadcast(held, {q}u);" for q in range(quads)]
    read = [f"let w{q} = weight[w + {q}u];" for q in range(quads)]
    adds = [f"s{q}_{i} += w{q} * e{i};" for q in range(quads) for i in range(PLACES)]
    replaced = {
        "TAPS": _for_each_place(_ONE_TAP if plain else _ALL_TAPS),
        "STORES": _STORES_OF_FOUR if wide else _STORES,
        "SUMS": "\n".join(f"var s{q}_{i} = bias[group.y * {quads}u + {q}u];" for q, i in sums),
        "ADDS": "\n".join([*(told if lanes else read), *adds]),
        "COUNT": f"{len(sums)}u",
        "ALL": ", ".join(f"s{q}_{i}" for q, i in sums),
        "WEIGHT": "vec4<f32>",
        "LANES": f"{count}u",
        "PLACES": f"{PLACES}u",
        "QUADS": f"{quads}u",
        "STEP": f"{PLACES}u" if wide else "1u",
        "APART": "1u" if wide else f"{count}u",
    }
    text = text_of(_DENSE, replaced, bound, wide=wide)

    def groups(shape: tuple[int, ...]) -> tuple[int, int, int]:
        batch, parts, made, pixels = shape
        return (-(-pixels // (count * PLACES)), parts * -(-made // (4 * quads)), batch)

    return WgslKernel("convolve", read_module("convolve", text, {}), groups)


def _for_each_place(text: str) -> str:
    """The text with what is in EACH{ } written for each place of an invocation, I its number."""

    def repeated(found: re.Match[str]) -> str:
        part = found.group(1)
        return "\n".join(
            re.sub(r"\bI\b", f"{i}u", re.sub(r"(?<=[a-z])I\b", str(i), part)) for i in range(PLACES)
        )

    return re.sub(r"EACH\{(.*?)\}", repeated, text, flags=re.DOTALL)
