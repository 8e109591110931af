"""Blur, sharpen and gray of an RGBA image, written in WGSL by hand with tiles and halos."""

from __future__ import annotations

from collections.abc import Sequence

ROWS, COLUMNS = 16, 64


def tiled_chain(weights: Sequence[float], amount: float) -> str:
    """The shader: `weights` are those of the pixel itself and of those 1 to 3 away."""
    taps = ", ".join(str(float(weight)) for weight in weights)
    return f"""
const WEIGHTS = array<f32, 4>({taps});
const AMOUNT = f32({amount});
const ROWS = {ROWS};
const COLUMNS = {COLUMNS};
const WIDE = COLUMNS + 8;
const SOFT = COLUMNS + 2;

struct Size {{ height: i32, width: i32 }}
@group(0) @binding(0) var<uniform> size: Size;
@group(0) @binding(1) var<storage, read_write> gray: array<u32>;
@group(0) @binding(2) var<storage, read> image: array<u32>;

var<workgroup> source: array<u32, (ROWS + 8) * WIDE>;
var<workgroup> down: array<vec4<f32>, (ROWS + 2) * WIDE>;
var<workgroup> soft: array<u32, (ROWS + 2) * SOFT>;

fn levels(pixel: u32) -> vec4<f32> {{
    return vec4<f32>(vec4<u32>(pixel, pixel >> 8u, pixel >> 16u, pixel >> 24u) & vec4<u32>(255u));
}}

fn pixel(levels: vec4<f32>) -> u32 {{
    return pack4x8unorm(levels / 255.0);
}}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32
) {{
    let top = i32(group.y) * ROWS;
    let left = i32(group.x) * COLUMNS;
    for (var n = i32(local); n < (ROWS + 8) * WIDE; n += 256) {{
        let y = clamp(top - 4 + n / WIDE, 0, size.height - 1);
        let x = clamp(left - 4 + n % WIDE, 0, size.width - 1);
        source[n] = image[y * size.width + x];
    }}
    workgroupBarrier();
    for (var n = i32(local); n < (ROWS + 2) * WIDE; n += 256) {{
        let y = clamp(top - 1 + n / WIDE, 0, size.height - 1) - top + 4;
        let at = y * WIDE + n % WIDE;
        var total = levels(source[at]) * WEIGHTS[0];
        for (var k = 1; k <= 3; k++) {{
            total += (levels(source[at - k * WIDE]) + levels(source[at + k * WIDE])) * WEIGHTS[k];
        }}
        down[n] = total;
    }}
    workgroupBarrier();
    for (var n = i32(local); n < (ROWS + 2) * SOFT; n += 256) {{
        let x = clamp(left - 1 + n % SOFT, 0, size.width - 1) - left + 4;
        let at = n / SOFT * WIDE + x;
        var total = down[at] * WEIGHTS[0];
        for (var k = 1; k <= 3; k++) {{
            total += (down[at - k] + down[at + k]) * WEIGHTS[k];
        }}
        soft[n] = pixel(total);
    }}
    workgroupBarrier();
    for (var n = i32(local); n < ROWS * COLUMNS; n += 256) {{
        let y = top + n / COLUMNS;
        let x = left + n % COLUMNS;
        if (y < size.height && x < size.width) {{
            let at = (n / COLUMNS + 1) * SOFT + n % COLUMNS + 1;
            let here = levels(soft[at]);
            let around = levels(soft[at - 1]) + levels(soft[at + 1])
                + levels(soft[at - SOFT]) + levels(soft[at + SOFT]);
            let sharp = levels(pixel(here + (here * 4.0 - around) * AMOUNT));
            let luma = dot(sharp.rgb, vec3<f32>(0.299, 0.587, 0.114));
            gray[y * size.width + x] = pixel(vec4<f32>(luma, luma, luma, sharp.a));
        }}
    }}
}}
"""
