"""Kernels that are WGSL text."""

from __future__ import annotations

import numpy as np
import pytest

from dala import errors
from dala.gpu import compute

SAXPY = """
    // var<storage, read> in a comment does not count
    struct Params { a: f32, times: u32, }
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @binding(1) @group(0) var<storage,read> y: array<f32>;
    @group(0) @binding(2) var<storage, read_write> out: array<f32>;
    @group(0) @binding(3) var<uniform> params: Params;

    @compute @workgroup_size(64)
    fn saxpy(@builtin(global_invocation_id) id: vec3<u32>) {
        if (id.x >= arrayLength(&out)) { return; }
        out[id.x] = params.a * f32(params.times) * x[id.x] + y[id.x];
    }
"""

INVERT = """
    @group(0) @binding(0) var<storage, read> image: array<u32>;
    @group(0) @binding(1) var<storage, read_write> out: array<u32>;
    @compute @workgroup_size(8, 8)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        let i = id.y * 13u + id.x;
        if (id.x < 13u && id.y < 9u) { out[i] = image[i] ^ 0xffffffu; }
    }
"""


def register(text: str, **options):
    return compute.Kernel.register("text", text, language="wgsl", replace=True, **options)


@pytest.mark.usefixtures("webgpu")
@pytest.mark.parametrize("count", [1, 64, 65, 100_000])
def test_a_text_runs_as_it_is_written(count):
    register(SAXPY, inputs=["x", "y"], params={"a": 2.0, "times": 1})
    values = np.arange(count, dtype=np.float32)
    x, out = compute.from_numpy(values), compute.buffer_zeros((count,), "f32")
    compute.run_kernel("text", [x, x], out)
    assert (compute.read(out) == 3 * values).all()
    compute.run_kernel("text", [x, x], out, {"a": 0.5, "times": 4})
    assert (compute.read(out) == 3 * values).all()


@pytest.mark.usefixtures("webgpu")
def test_an_output_that_is_also_an_input_gives_the_right_result():
    register(SAXPY, params={"a": 1.0, "times": 1})
    x = compute.buffer([1.0, 2.0, 3.0], (3,), "f32")
    compute.run_kernel("text", [x, x], x)
    assert compute.read_list(x) == [2.0, 4.0, 6.0]


@pytest.mark.usefixtures("webgpu")
def test_a_workgroup_of_two_axes_walks_over_an_image():
    image = np.random.default_rng(0).integers(0, 256, (9, 13, 4), np.uint8)
    out = compute.buffer_zeros(image.shape, "u8")
    compute.run_kernel(register(INVERT), [compute.from_numpy(image)], out)
    want = image ^ np.array([255, 255, 255, 0], np.uint8)
    assert (compute.read(out) == want).all()


@pytest.mark.usefixtures("webgpu")
def test_workgroups_may_be_given():
    text = """
        @group(0) @binding(0) var<storage, read_write> out: array<atomic<u32>>;
        @compute @workgroup_size(1) fn main() { atomicAdd(&out[0], 1u); }
    """
    for groups in ((2, 3, 4), lambda shape: (shape[0] * 4, 3, 2)):
        out = compute.buffer_zeros((1,), "u32")
        compute.run_kernel(register(text, groups=groups), [], out)
        assert compute.read_list(out) == [24]


def test_it_says_what_it_takes():
    kernel = register(SAXPY, inputs=2, params={"a": 2.0})
    assert kernel.inputs == ("x", "y")
    assert compute.kernels()["text"]["params"] == {
        "a": {"type": "f32", "default": 2.0},
        "times": {"type": "u32"},
    }


def test_a_default_for_what_it_does_not_take_is_refused():
    with pytest.raises(errors.ArgumentError, match=r"params has 'b', but its text takes \['a'"):
        register(SAXPY, params={"b": 2.0})


def test_it_runs_on_webgpu_devices_only():
    register(SAXPY)
    with compute.device("cpu"):
        x = compute.buffer_zeros((3,), "f32")
        with pytest.raises(errors.DeviceError, match=r"WGSL text.*compute\.device\('webgpu'\)"):
            compute.run_kernel("text", [x, x], x, {"a": 1.0, "times": 1})


@pytest.mark.parametrize(
    ("wrong", "right", "said"),
    [
        ("read_write>", "read>", "0 outputs"),
        ("var<storage,read> y", "var<storage,read_write> y", "2 outputs"),
        ("@compute", "", "0 entry points"),
        ("(64)", "(SIZE)", "workgroup size"),
        ("@group(0) @binding(0)", "@group(1) @binding(0)", "group 1"),
        ("a: f32", "a: vec2<f32>", "parameter 'a' is vec2<f32>"),
        ("params: Params", "params: f32", "struct"),
    ],
)
def test_a_text_that_lacks_something_is_refused_when_it_is_registered(wrong, right, said):
    assert wrong in SAXPY
    with pytest.raises(errors.KernelSyntaxError, match=said):
        register(SAXPY.replace(wrong, right))


@pytest.mark.usefixtures("webgpu")
def test_a_mistake_is_shown_in_the_words_of_the_compiler():
    register(SAXPY.replace("params.a *", "params.b *"))
    x = compute.buffer([1.0], (1,), "f32")
    with pytest.raises(errors.KernelSyntaxError, match="invalid field accessor `b`"):
        compute.run_kernel("text", [x, x], x, {"a": 1.0, "times": 1})
    compute.run_kernel("elementwise_add", [x, x], x)
    assert compute.read_list(x) == [2.0]


@pytest.mark.usefixtures("webgpu")
def test_another_dtype_than_the_text_has_is_refused():
    register(SAXPY)
    x, wrong = compute.buffer_zeros((3,), "f32"), compute.buffer_zeros((3,), "s32")
    with pytest.raises(errors.DtypeError, match=r"y is array<f32>.*s32"):
        compute.run_kernel("text", [x, wrong], x, {"a": 1.0, "times": 1})


@pytest.mark.usefixtures("webgpu")
def test_more_workgroups_than_an_axis_has_are_refused():
    x = compute.buffer_zeros((3,), "f32")
    with pytest.raises(errors.LimitError, match="65536"):
        compute.run_kernel(register(SAXPY, groups=(65_536, 1, 1)), [x, x], x, {"a": 1, "times": 1})


def test_an_unknown_language_is_refused():
    with pytest.raises(errors.ArgumentError, match="'dala' or 'wgsl'"):
        compute.Kernel.register("text", SAXPY, language="glsl", replace=True)


@pytest.mark.usefixtures("webgpu")
@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("@binding(1) @group(0)", "@binding(0) @group(0)"),
        ("@binding(1) @group(0)", "@binding(99999) @group(0)"),
        ("y: array<f32>", "y: array<vec4<f32>>"),
        ("y: array<f32>", "y: array<f32, 99>"),
    ],
)
def test_what_the_device_refuses_is_said_of_the_text(wrong, right):
    assert wrong in SAXPY
    register(SAXPY.replace(wrong, right))
    x = compute.buffer([1.0, 2.0, 3.0], (3,), "f32")
    with pytest.raises(errors.KernelSyntaxError, match="kernel 'text', which is WGSL text"):
        compute.run_kernel("text", [x, x], x, {"a": 1.0, "times": 1})


@pytest.mark.usefixtures("webgpu")
@pytest.mark.parametrize("groups", [5, (1, 2), (1, 1, 0), (1.0, 1, 1), "abc"])
def test_workgroups_that_are_no_three_numbers_are_refused(groups):
    with pytest.raises(errors.ArgumentError, match="three numbers"):
        register(SAXPY, groups=groups)
    x = compute.buffer_zeros((3,), "f32")
    kernel = register(SAXPY, groups=lambda shape: groups)
    with pytest.raises(errors.ArgumentError, match="three numbers"):
        compute.run_kernel(kernel, [x, x], x, {"a": 1.0, "times": 1})
