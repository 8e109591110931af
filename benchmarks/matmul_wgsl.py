"""Products of square matrices of f32, written in WGSL by hand as hand-tuned kernels are published.

Either each invocation computes 4 × 4 elements and reads storage by itself, vectors of four at a
time; or a workgroup keeps tiles of both factors in its memory, and each invocation computes 4 × 4
or 8 × 4 elements of 64 × 64 or 128 × 64. Sizes are multiples of 128.
"""

from __future__ import annotations

from collections.abc import Callable

Groups = tuple[int, int, int]

_HEAD = """
@group(0) @binding(0) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> c: array<vec4<f32>>;
"""


def direct(size: int) -> tuple[str, Groups]:
    """4 × 4 elements for each invocation, workgroups of 8 × 8, four terms at a time."""
    quads = size // 4
    rows = "\n".join(
        f"let x{r} = a[(row + {r}u) * {quads}u + k];\n"
        f"s{r} += x{r}.x * y0 + x{r}.y * y1 + x{r}.z * y2 + x{r}.w * y3;"
        for r in range(4)
    )
    text = f"""{_HEAD}
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
    let column = id.x;
    let row = id.y * 4u;
    {" ".join(f"var s{r} = vec4<f32>();" for r in range(4))}
    for (var k = 0u; k < {quads}u; k++) {{
        {" ".join(f"let y{k} = b[(k * 4u + {k}u) * {quads}u + column];" for k in range(4))}
        {rows}
    }}
    {" ".join(f"c[(row + {r}u) * {quads}u + column] = s{r};" for r in range(4))}
}}
"""
    return text, (quads // 8, quads // 8, 1)


def tiled(size: int, rows: int = 4) -> tuple[str, Groups]:
    """Tiles of 16 terms in workgroup memory, 16 × 16 invocations of so many rows by 4 columns."""
    quads, height = size // 4, 16 * rows
    steps = range(4)
    sums = "\n".join(
        f"let x{r} = left[(own + {r}u) * 4u + q];\n"
        f"s{r} += x{r}.x * y0 + x{r}.y * y1 + x{r}.z * y2 + x{r}.w * y3;"
        for r in range(rows)
    )
    text = f"""{_HEAD}
var<workgroup> left: array<vec4<f32>, {height * 4}>;
var<workgroup> right: array<vec4<f32>, {16 * 16}>;
@compute @workgroup_size(16, 16)
fn main(
    @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) index: u32
) {{
    let top = group.y * {height}u;
    let first = group.x * 16u;
    let own = local.y * {rows}u;
    {" ".join(f"var s{r} = vec4<f32>();" for r in range(rows))}
    for (var k = 0u; k < {quads}u; k += 4u) {{
        for (var n = index; n < {height * 4}u; n += 256u) {{
            left[n] = a[(top + n / 4u) * {quads}u + k + n % 4u];
        }}
        right[index] = b[(k * 4u + index / 16u) * {quads}u + first + index % 16u];
        workgroupBarrier();
        for (var q = 0u; q < 4u; q++) {{
            {" ".join(f"let y{k} = right[(q * 4u + {k}u) * 16u + local.x];" for k in steps)}
            {sums}
        }}
        workgroupBarrier();
    }}
    {" ".join(f"c[(top + own + {r}u) * {quads}u + first + local.x] = s{r};" for r in range(rows))}
}}
"""
    return text, (size // 64, size // height, 1)


KERNELS: dict[str, Callable[[int], tuple[str, Groups]]] = {
    "4 × 4 by itself": direct,
    "64 × 64 in tiles": tiled,
    "128 × 64 in tiles": lambda size: tiled(size, 8),
}
