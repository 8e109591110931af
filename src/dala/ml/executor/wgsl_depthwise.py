"""Depthwise convolutions as WGSL texts: each channel by itself.

Where the size of subgroups is known, one goes down some rows: each invocation has loaded a part of
a row, four columns where rows come in fours, and is told by its neighbors what lies beside it.
Elsewhere an invocation computes some rows of a column, and reads each element once for all of them.
"""

from __future__ import annotations

import re
from functools import cache

from dala.base.record import value
from dala.kernels.tensor.windows import Windows
from dala.lang.wgsl_module import read_module
from dala.ml.executor.wgsl_epilogues import COMPONENTS, BoundEpilogue, text_of
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.kernels.wgsl import WgslKernel

LANES = 32
"""Invocations of a workgroup, along the places of a plane."""
RUN = 4
"""Rows that an invocation computes by itself."""
LONGEST_RUN = 64
"""Rows that a subgroup goes down."""
MOST_WINDOW = 12
"""Rows that a subgroup keeps."""

_BY_ITSELF = """
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

_READ = """
    let yI = top + I;
    let insideI = beside && yI >= 0 && yI < i32(args.height);
    let eI = select(0.0, x[first + select(0u, u32(yI) * args.width + u32(z), insideI)], insideI);
"""

_BY_SUBGROUP = """
@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let segment = group.x % args.segments;
  let first_row = group.x / args.segments * args.run;
  let begin = min(segment * STRIDE, max(args.units, LANES) - LANES);
  let unit = begin + local;
  let own = unit * EACH < args.columns && unit >= segment * STRIDE + select(HALO, 0u, segment == 0u)
    && (local < LANES - HALO || begin + LANES >= args.units);
  let first = (group.z * args.groups + group.y) * args.height * args.width + unit * HELD;
  let w = group.y * TAPS;
  WEIGHTS
  let sum = SPREAD(bias[group.y]);
  var y = i32(first_row * args.down) - args.top;
  ROWS
  BEFORE
  let stop = min(first_row + args.run, args.rows);
  for (var row = first_row; row < stop; row += 1u) {
    LOADS
    var s = sum;
    ADDS
    if (own) { STORE(s, group.z, group.y, row * args.columns + unit * EACH); }
    SHIFT
  }
}
"""


@value
class Shape:
    """All that the text of a depthwise convolution depends on."""

    tall: int
    wide: int
    down: int
    across: int
    apart_down: int
    apart_across: int
    left: int
    four: bool
    """Whether an invocation computes four columns at a time."""

    @property
    def held(self) -> int:
        """The columns of the input that an invocation loads."""
        return self.across * (4 if self.four else 1)

    @property
    def halo(self) -> int:
        """How far the neighbors are that an invocation asks."""
        furthest = (self.held - self.across) + (self.wide - 1) * self.apart_across - self.left
        return max(-(-self.left // self.held), furthest // self.held, 0)

    @property
    def window(self) -> int:
        """The rows of the input that a row of the output needs."""
        return (self.tall - 1) * self.apart_down + 1


def shape_of(windows: tuple[Windows, Windows], width: int) -> Shape:
    """Returns how planes of this width are convolved."""
    down, across = windows
    four = width % (4 * across.step) == 0 and across.count * across.step == width
    sizes = (down.size, across.size, down.step, across.step, down.apart, across.apart)
    return Shape(*sizes, across.before, four)


def suits_subgroups(shape: Shape, lanes: int, width: int) -> bool:
    """Whether subgroups of so many invocations pay: enough of a row are their own."""
    units = -(-width // shape.held)
    enough = 2 * shape.halo <= lanes // 2 or units <= lanes
    return lanes > 0 and enough and shape.halo < lanes and shape.window <= MOST_WINDOW


def subgroup_params(
    shape: Shape, lanes: int, width: int, rows: int, columns: int
) -> dict[str, int]:
    """Returns the parameters that the text takes beside those of every convolution."""
    units = max(-(-width // shape.held), -(-columns // (4 if shape.four else 1)))
    step = lanes - 2 * shape.halo
    segments = 1 if units <= lanes else -(-(units - 2 * shape.halo) // step)
    return {"rows": rows, "run": min(rows, LONGEST_RUN), "units": units, "segments": segments}


@cache
def subgroup_kernel(bound: BoundEpilogue, lanes: int, shape: Shape, width: int) -> Kernel:
    """A kernel whose subgroups go down rows of a channel; `width` is 0 where the output tells."""
    taps = [(a, b) for a in range(shape.tall) for b in range(shape.wide)]
    type_, zero = ("vec4<f32>", "vec4<f32>()") if shape.four else ("f32", "0.0")
    count = shape.across
    """Parts of a row that an invocation loads."""
    asked = sorted(
        {
            place
            for c in range(4 if shape.four else 1)
            for b in range(shape.wide)
            if not 0 <= (place := _place(shape, b, c)) < shape.held
        }
    )
    new = min(shape.down, shape.window)
    kept = shape.window - new
    names = [f"r{{}}_{j}" for j in range(count)] + [f"t{{}}_{i}" for i in range(len(asked))]
    types = [type_] * count + ["f32"] * len(asked)

    def loaded(a: int, at: str) -> list[str]:
        """Lines that fill row `a` of the window with the row of the input at a place."""
        lines = [
            f"let above{a} = {at};",
            f"let within{a} = above{a} >= 0 && above{a} < i32(args.height);",
        ]
        for j in range(count):
            column = f"unit * {shape.held}u + {j * (4 if shape.four else 1)}u"
            test = f"within{a} && {column} < args.width"
            offset = f"first + u32(max(above{a}, 0)) * args.width + {j * (4 if shape.four else 1)}u"
            index = f"({offset}) >> 2u" if shape.four else offset
            lines.append(f"r{a}_{j} = {zero};")
            lines.append(f"if ({test}) {{ r{a}_{j} = x[{index}]; }}")
        for i, place in enumerate(asked):
            lane, element = divmod(place, shape.held)
            mine = (
                f"r{a}_{element // 4}.{COMPONENTS[element % 4]}"
                if shape.four
                else f"r{a}_{element}"
            )
            other = f"(local + {lane % lanes}u) % {lanes}u"
            test = f"local >= {-lane}u" if lane < 0 else f"local + {lane}u < {lanes}u"
            lines.append(f"t{a}_{i} = select(0.0, subgroupShuffle({mine}, {other}), {test});")
        return lines

    def element(a: int, b: int, c: int) -> str:
        place = _place(shape, b, c)
        row = a * shape.apart_down
        if not 0 <= place < shape.held:
            return f"t{row}_{asked.index(place)}"
        return f"r{row}_{place // 4}.{COMPONENTS[place % 4]}" if shape.four else f"r{row}_{place}"

    def term(a: int, b: int) -> str:
        if not shape.four:
            return element(a, b, 0)
        return f"vec4<f32>({', '.join(element(a, b, c) for c in range(4))})"

    window = range(shape.window)
    rows = [f"var {n.format(a)}: {t};" for a in window for n, t in zip(names, types, strict=True)]
    before = [line for a in range(kept) for line in loaded(a, f"y + {a}")]
    loads = [line for a in range(kept, shape.window) for line in loaded(a, f"y + {a}")]
    shift = [f"{n.format(a)} = {n.format(a + new)};" for a in range(kept) for n in names]
    weights = [
        f"let v{i} = weight[w + min(local + {i * lanes}u, {len(taps) - 1}u)];"
        for i in range(-(-len(taps) // lanes))
    ]
    weights += [
        f"let w{i} = subgroupBroadcast(v{i // lanes}, {i % lanes}u);" for i in range(len(taps))
    ]
    replaced = {
        "WEIGHTS": "\n".join(weights),
        "BEFORE": "\n".join(before),
        "LOADS": "\n".join(loads),
        "ROWS": "\n".join(rows),
        "ADDS": "\n".join(f"s += w{i} * {term(a, b)};" for i, (a, b) in enumerate(taps)),
        "SHIFT": "\n".join([*shift, f"y += {shape.down};"]),
        "STORE": "store_four" if shape.four else "store",
        "SPREAD": type_,
        "STRIDE": f"{lanes - 2 * shape.halo}u",
        "HALO": f"{shape.halo}u",
        "HELD": f"{shape.held}u",
        "EACH": "4u" if shape.four else "1u",
        "TAPS": f"{len(taps)}u",
        "LANES": f"{lanes}u",
        "WEIGHT": "f32",
        "INPUT": type_,
    }
    text = text_of(_BY_SUBGROUP, replaced, bound, wide=shape.four)

    def groups(output: tuple[int, ...]) -> tuple[int, int, int]:
        batch, channels, rows, columns = output
        found = subgroup_params(shape, lanes, width or columns * shape.across, rows, columns)
        return (found["segments"] * -(-rows // found["run"]), channels, batch)

    return WgslKernel("convolve_depthwise", read_module("convolve_depthwise", text, {}), groups)


def _place(shape: Shape, b: int, c: int) -> int:
    """The column, from an invocation's first on, that a tap reads for one of its columns."""
    return c * shape.across + b * shape.apart_across - shape.left


@cache
def single_kernel(bound: BoundEpilogue, lanes: int, tall: int, step: int, apart: int) -> Kernel:
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
        "READS": "".join(re.sub(r"\bI\b|(?<=[a-z])I\b", str(row), _READ) for row in rows),
        "ADDS": "\n".join(adds),
        "WRITES": "\n".join(writes),
        "WEIGHT": "f32",
        "LANES": f"{lanes}u",
        "RUN": f"{RUN}u",
    }
    text = text_of(_BY_ITSELF, replaced, bound, wide=False)

    def groups(shape: tuple[int, ...]) -> tuple[int, int, int]:
        batch, channels, rows, columns = shape
        return (-(-(-(-rows // RUN) * columns) // lanes), channels, batch)

    module = read_module("convolve_depthwise", text, {})
    return WgslKernel("convolve_depthwise", module, groups)
