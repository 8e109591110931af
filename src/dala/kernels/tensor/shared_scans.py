"""Running sums along rows that workgroups share, for devices that run WGSL.

A workgroup sums a chunk of a row; the sums of all chunks before each are found in the same way;
then it adds to those what stands before each element in its own chunk, through memory that its
invocations share.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from dala.emit.wgsl.grid import spread
from dala.ir.types import Scalar
from dala.kernels.tensor.elementwise import cast, fill
from dala.lang.wgsl_module import read_module
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.kernels.wgsl import WgslKernel
from dala.runtime.pipelines.composite import Stage

INVOCATIONS, EACH = 256, 4
CHUNK = INVOCATIONS * EACH
"""Elements that a workgroup sums."""

_HEAD = """
struct Params { n: u32, chunks: u32, exclusive: u32 }
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;
@group(0) @binding(2) var<uniform> params: Params;
var<workgroup> parts: array<T, INVOCATIONS>;
"""

_MAIN = """
@compute @workgroup_size(INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let chunk = group.x + (group.y + group.z * groups.y) * groups.x;
  if (chunk >= arrayLength(&COUNTED)) { return; }
  let base = chunk / params.chunks * params.n;
  let first = chunk % params.chunks * CHUNK + local * EACH;
  var own: array<T, EACH>;
  var total = T(0);
  for (var i = 0u; i < EACH; i++) {
    if (first + i < params.n) { total += x[base + first + i]; }
    own[i] = total;
  }
  parts[local] = total;
  workgroupBarrier();
"""

_SUMS = (
    _HEAD
    + _MAIN.replace("COUNTED", "out")
    + """
  for (var half = INVOCATIONS / 2u; half > 0u; half >>= 1u) {
    if (local < half) { parts[local] += parts[local + half]; }
    workgroupBarrier();
  }
  if (local == 0u) { out[chunk] = parts[0]; }
}
"""
)

_SCAN = (
    _HEAD
    + "@group(0) @binding(3) var<storage, read> before: array<T>;\n"
    + _MAIN.replace("COUNTED", "before")
    + """
  for (var step = 1u; step < INVOCATIONS; step <<= 1u) {
    let earlier = select(T(0), parts[max(local, step) - step], local >= step);
    workgroupBarrier();
    parts[local] += earlier;
    workgroupBarrier();
  }
  let start = before[chunk] + select(T(0), parts[max(local, 1u) - 1u], local > 0u);
  for (var i = 0u; i < EACH; i++) {
    if (first + i < params.n) {
      let here = select(own[i], select(T(0), own[max(i, 1u) - 1u], i > 0u), params.exclusive > 0u);
      out[base + first + i] = start + here;
    }
  }
}
"""
)


def along_rows(x: Buffer, output: Buffer, scalar: Scalar, exclusive: bool) -> Iterator[Stage]:
    """Stages that sum the rows of x, computing in a type."""
    rows, n = x.shape
    if x.scalar != scalar:
        converted = scratch((rows, n), scalar)
        yield Stage(cast, [x], converted)
        x = converted
    sums = output if output.scalar == scalar else scratch((rows, n), scalar)
    chunks = -(-n // CHUNK)
    params = {"n": n, "chunks": chunks, "exclusive": exclusive}
    before = scratch((rows, chunks), scalar)
    if chunks == 1:
        yield Stage(fill, [], before, {"value": 0})
    else:
        totals = scratch((rows, chunks), scalar)
        yield Stage(_sums_kernel(scalar), [x], totals, params)
        yield from along_rows(totals, before, scalar, exclusive=True)
    yield Stage(_scan_kernel(scalar), [x, before], sums, params)
    if sums is not output:
        yield Stage(cast, [sums], output)


@cache
def _sums_kernel(scalar: Scalar) -> Kernel:
    module = read_module("sum_chunks", _typed(_SUMS, scalar), {})
    return WgslKernel("sum_chunks", module, lambda shape: spread(shape[0] * shape[1]))


@cache
def _scan_kernel(scalar: Scalar) -> Kernel:
    module = read_module("scan_chunks", _typed(_SCAN, scalar), {})
    return WgslKernel("scan_chunks", module, lambda shape: spread(shape[0] * -(-shape[1] // CHUNK)))


def _typed(text: str, scalar: Scalar) -> str:
    """The text for a type of elements."""
    type = scalar.wgsl
    numbers = {"INVOCATIONS": INVOCATIONS, "CHUNK": CHUNK, "EACH": EACH}
    for word, number in numbers.items():
        text = text.replace(word, f"{number}u")
    return text.replace("<T", f"<{type}").replace("T(0)", f"{type}(0)")
