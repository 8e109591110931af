"""Pipelines to be saved, and the kernels in them."""

from __future__ import annotations

import numpy as np

import dala
from dala import clamp
from dala.gpu import compute

GAIN = 2.0


@dala.kernel(border="mirror")
def soften(x, amount: dala.f32 = 0.5):
    """A name, a docstring, and two lines."""
    i, j = dala.position(2)
    around = sum(x[i + a - 1, j] for a in range(3)) / 3.0
    return clamp(x + amount * (around - x), 0.0, max(1.0, x))


@dala.function
def twice(x):
    return 2.0 * x


@dala.kernel
def with_function(x):
    return twice(x)


@dala.kernel
def with_global(x, gain: dala.f32 = GAIN):
    return gain * x


WGSL = """
    struct Params { a: f32, b: f32, }
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> out: array<f32>;
    @group(0) @binding(2) var<uniform> params: Params;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if (id.x < arrayLength(&out)) { out[id.x] = params.a * x[id.x] + params.b; }
    }
"""


def picture(seed=0, shape=(9, 7)):
    rng = np.random.default_rng(seed)
    return compute.from_numpy(rng.random(shape, np.float32))


def zeros(shape=(9, 7), dtype="f32"):
    return compute.buffer_zeros(shape, dtype)


def build(source, result, *, fuse=True):
    first, second = compute.scratch((9, 7), "f32"), compute.scratch((7, 9), "f32")
    pipeline = compute.pipeline(fuse=fuse)
    pipeline.add(
        kernel="scale", inputs=[source], output=first, params={"factor": np.float32(1.5)}, name="up"
    )
    pipeline.add(kernel=soften, inputs=[first], output=first, params={"amount": 0.25})
    pipeline.add(op="barrier")
    pipeline.add(kernel="transpose", inputs=[first], output=second, params={"axes": (1, 0)})
    pipeline.add(op="copy_buffer", inputs=[second], output=result, name="keep")
    return pipeline


def simple():
    x, out = zeros((3,)), zeros((3,))
    scratch = compute.scratch((3,), "f32")
    pipeline = compute.pipeline().add(kernel="abs", inputs=[x], output=scratch)
    pipeline.add(kernel="relu", inputs=[scratch], output=out, params={"slope": 0.5})
    return pipeline, {"source": x, "result": out}


def document():
    pipeline, buffers = simple()
    return pipeline.to_dict(buffers), buffers
