"""Convolutions as WGSL texts, for devices that run them.

An invocation computes several channels at a place: an element that it reads serves all of them, and
the weights are the same for the whole workgroup. Of a depthwise convolution it computes some rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np

from dala.base.record import value
from dala.kernels.tensor.windows import Windows
from dala.lang.wgsl_module import read_module
from dala.ml.executor.epilogue import Epilogue, Mask
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.kernels.wgsl import WgslKernel
from dala.runtime.pipelines.composite import Stage

MOST_QUADS = 4
"""Vectors of four channels that an invocation computes, at most."""
PLACES = 4
"""Places of a plane that an invocation computes: what it reads of weights serves all of them."""
LANES = 32
"""Invocations of a workgroup, along the places of a plane."""
RUN = 4
"""Rows that an invocation of a depthwise convolution computes."""
MOST_OPERANDS = 4
"""Operands of an epilogue: with its inputs and the output, a kernel binds no more than eight."""

_HEAD = """
struct Params {
  pixels: u32, columns: u32, channels: u32, made: u32, blocks: u32, groups: u32,
  height: u32, width: u32, tall: u32, wide: u32, down: u32, across: u32,
  apart_down: u32, apart_across: u32, top: i32, left: i32, zero: u32
}
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<WEIGHT>;
@group(0) @binding(2) var<storage, read> bias: array<WEIGHT>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(0) @binding(4) var<uniform> args: Params;
"""

_DENSE = """
@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let p = group.x * LANES * PLACES + local;
  let part = group.y / args.blocks;
  let plane = args.height * args.width;
  let first = (group.z * args.groups + part) * args.channels * plane;
  var w = group.y * args.tall * args.wide * args.channels * QUADS;
  SUMS
  TAPS
  let block = group.y % args.blocks * QUADS * 4u;
  // A loop, because epilogues written out for every sum take drivers seconds to compile.
  var sums = array<vec4<f32>, COUNT>(ALL);
  for (var k = 0u; k < COUNT * 4u; k++) {
    let o = block + k / (PLACES * 4u) * 4u + k % 4u;
    let at = p + k / 4u % PLACES * LANES;
    if (o < args.made && at < args.pixels) {
      store(sums[k / 4u][k % 4u], group.z, part * args.made + o, at);
    }
  }
}
"""

_ONE_TAP = """
  EACH{ let placeI = min(p + I * LANES, args.pixels - 1u); }
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
    let placeI = min(p + I * LANES, args.pixels - 1u);
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

_DEPTHWISE = """
@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let q = group.x * LANES + local;
  let column = q % args.columns;
  let row = q / args.columns * RUN;
  let first = (group.z * args.groups + group.y) * args.height * args.width;
  let w = group.y * args.tall * args.wide;
  let top = i32(row * args.down) - args.top;
  SUMS
  for (var b = 0u; b < args.wide; b++) {
    let z = i32(column * args.across + b * args.apart_across) - args.left;
    let beside = z >= 0 && z < i32(args.width);
    READS
    ADDS
  }
  WRITES
}
"""

_DEPTHWISE_READ = """
    let yI = top + I;
    let insideI = beside && yI >= 0 && yI < i32(args.height);
    let eI = select(0.0, x[first + select(0u, u32(yI) * args.width + u32(z), insideI)], insideI);
"""


@value
class BoundEpilogue:
    """A epilogue, and which of (batch, channels, places) each of its operands has."""

    epilogue: Epilogue
    masks: tuple[Mask, ...]


def is_depthwise(channels: int, made: int, groups: int) -> bool:
    """Returns whether each channel is convolved by itself; its weights are then not rearranged."""
    return groups > 1 and channels == groups == made


def quads_for(made: int) -> int:
    """Returns the vectors of channels that waste the fewest, the most of those."""
    return min(range(MOST_QUADS, 0, -1), key=lambda quads: -(-made // (4 * quads)) * quads)


def arranged(weight: np.ndarray, groups: int) -> np.ndarray:
    """Weights (o, c, kh, kw) in blocks of channels, in the order in which they are read."""
    made, channels, tall, wide = weight.shape
    own = made // groups
    block = 4 * quads_for(own)
    blocks = -(-own // block)
    found = np.zeros((groups, blocks * block, channels, tall, wide), np.float32)
    found[:, :own] = weight.reshape(groups, own, channels, tall, wide)
    found = found.reshape(groups, blocks, block, channels, tall, wide)
    return np.ascontiguousarray(found.transpose(0, 1, 4, 5, 3, 2))


def arranged_bias(bias: np.ndarray, groups: int) -> np.ndarray:
    """Returns one number for each channel of each block."""
    own = bias.size // groups
    block = 4 * quads_for(own)
    found = np.zeros((groups, -(-own // block) * block), np.float32)
    found[:, :own] = bias.reshape(groups, own)
    return found


def masks_of(shape: tuple[int, ...], operands: Sequence[tuple[int, ...]]) -> tuple[Mask, ...]:
    """Which of (batch, channels, places) each operand has, where it has all places or none."""
    batch, channels = shape[:2]
    places = shape[2:]
    found = []
    for operand in operands:
        padded = (1,) * (len(shape) - len(operand)) + tuple(operand)
        has = [padded[0] == batch, padded[1] == channels, padded[2:] == places]
        spread = [padded[0] == 1, padded[1] == 1, all(size == 1 for size in padded[2:])]
        if not all(a or b for a, b in zip(has, spread, strict=True)):
            return ()
        found.append(tuple(a and not b for a, b in zip(has, spread, strict=True)))
    return tuple(found)


def takes(shape: tuple[int, ...], operands: Sequence[tuple[int, ...]]) -> bool:
    """Returns whether a shader can compute an epilogue of such operands."""
    return len(masks_of(shape, operands)) == len(operands) <= MOST_OPERANDS


def convolution_stage(
    inputs: Sequence[Buffer],
    output: Buffer,
    windows: tuple[Windows, Windows],
    groups: int,
    bound: BoundEpilogue,
) -> Stage:
    """The stage that convolves x with arranged weights; other inputs are the epilogue's own."""
    x = inputs[0]
    batch, channels, height, width = x.shape
    down, across = windows
    made, rows, columns = output.shape[1:]
    own = made // groups
    quads = quads_for(own)
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
        "zero": 0,
    }
    if is_depthwise(channels, made, groups):
        runs = -(-rows // RUN) * columns
        lanes = LANES if runs > LANES // 2 else LANES // 2
        kernel = _depthwise_kernel(bound, lanes, down.size, down.step, down.apart)
        return Stage(kernel, inputs, output, params)
    plain = all(item == Windows(1, 1, 1, 0, item.count) for item in windows)
    target = reshaped(output, (batch, groups, own, rows * columns))
    lanes = LANES if rows * columns > PLACES * LANES // 2 else LANES // 2
    return Stage(_dense_kernel(bound, plain, quads, lanes), inputs, target, params)


@cache
def _dense_kernel(bound: BoundEpilogue, plain: bool, quads: int, lanes: int) -> Kernel:
    sums = [(q, i) for q in range(quads) for i in range(PLACES)]
    replaced = {
        "TAPS": _for_each_place(_ONE_TAP if plain else _ALL_TAPS),
        "SUMS": "\n".join(f"var s{q}_{i} = bias[group.y * {quads}u + {q}u];" for q, i in sums),
        "ADDS": "\n".join(
            f"let w{q} = weight[w + {q}u]; "
            + " ".join(f"s{q}_{i} += w{q} * e{i};" for i in range(PLACES))
            for q in range(quads)
        ),
        "COUNT": f"{len(sums)}u",
        "ALL": ", ".join(f"s{q}_{i}" for q, i in sums),
        "WEIGHT": "vec4<f32>",
        "LANES": f"{lanes}u",
        "PLACES": f"{PLACES}u",
        "QUADS": f"{quads}u",
    }
    text = _text(_DENSE, replaced, bound)

    def groups(shape: tuple[int, ...]) -> tuple[int, int, int]:
        batch, parts, made, pixels = shape
        return (-(-pixels // (lanes * PLACES)), parts * -(-made // (4 * quads)), batch)

    return WgslKernel("convolve", read_module("convolve", text, {}), groups)


def _for_each_place(text: str) -> str:
    """The text with what is in EACH{ } written for each place of an invocation, I its number."""

    def repeated(found: re.Match[str]) -> str:
        part = found.group(1)
        return "\n".join(
            re.sub(r"\bI\b", f"{i}u", re.sub(r"(?<=[a-z])I\b", str(i), part)) for i in range(PLACES)
        )

    return re.sub(r"EACH\{(.*?)\}", repeated, text, flags=re.DOTALL)


@cache
def _depthwise_kernel(bound: BoundEpilogue, lanes: int, tall: int, step: int, apart: int) -> Kernel:
    """A kernel that reads each row of the input once for all rows of the output that need it."""
    pairs = [(i, a) for i in range(RUN) for a in range(tall)]
    rows = sorted({i * step + a * apart for i, a in pairs})
    writes = [
        f"if ((row + {i}u) * args.columns + column < args.pixels) "
        f"{{ store(s{i}, group.z, group.y, (row + {i}u) * args.columns + column); }}"
        for i in range(RUN)
    ]
    adds = [f"let w{a} = weight[w + {a}u * args.wide + b];" for a in range(tall)]
    adds += [f"s{i} += w{a} * e{i * step + a * apart};" for i, a in pairs]
    replaced = {
        "SUMS": "\n".join(f"var s{i} = bias[group.y];" for i in range(RUN)),
        "READS": "".join(re.sub(r"\bI\b|(?<=[a-z])I\b", str(row), _DEPTHWISE_READ) for row in rows),
        "ADDS": "\n".join(adds),
        "WRITES": "\n".join(writes),
        "WEIGHT": "f32",
        "LANES": f"{lanes}u",
        "RUN": f"{RUN}u",
    }
    text = _text(_DEPTHWISE, replaced, bound)

    def groups(shape: tuple[int, ...]) -> tuple[int, int, int]:
        batch, channels, rows, columns = shape
        return (-(-(-(-rows // RUN) * columns) // lanes), channels, batch)

    module = read_module("convolve_depthwise", text, {})
    return WgslKernel("convolve_depthwise", module, groups)


def _text(main: str, replaced: dict[str, str], bound: BoundEpilogue) -> str:
    """Returns a text with its parts filled in, and what stores a sum after the epilogue."""
    text = _HEAD + _store(bound) + main
    for word, meaning in replaced.items():
        text = text.replace(word, meaning)
    return text


def _store(bound: BoundEpilogue) -> str:
    """Returns the operands' declarations, the epilogue, and a function that writes its result."""
    bindings, values = [], ["sum"]
    for i, (batch, channel, place) in enumerate(bound.masks):
        bindings.append(f"@group(0) @binding({5 + i}) var<storage, read> o{i}: array<f32>;")
        index = "n" if batch else "0u"
        if channel:
            index = f"({index} * args.groups * args.made + o)"
        if place:
            index = f"({index} * args.pixels + p)"
        values.append(f"o{i}[{index}]")
    target = "out[(n * args.groups * args.made + o) * args.pixels + p]"
    return "\n".join(
        [
            *bindings,
            bound.epilogue.in_wgsl(len(bound.masks)),
            "fn store(sum: f32, n: u32, o: u32, p: u32) {",
            f"  {target} = epilogue({', '.join(values)});",
            "}\n",
        ]
    )
