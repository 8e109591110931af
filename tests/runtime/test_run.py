"""Running kernels: what is checked before, what is shared between runs, what aliases do."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala import errors
from dala.gpu import compute


@dala.kernel
def saxpy(x, y, a: dala.f32 = 1.0, shift: dala.s32 = 0):
    return a * x + y + shift


def vectors(count=4, dtype="f32"):
    return [compute.buffer(range(count), (count,), dtype) for _ in range(3)]


def test_parameters_have_defaults(device):
    x, y, out = vectors()
    compute.run_kernel(saxpy, [x, y], out)
    assert compute.read_list(out) == [0.0, 2.0, 4.0, 6.0]
    compute.run_kernel(saxpy, [x, y], out, {"a": np.float64(2.0), "shift": np.int8(-1)})
    assert compute.read_list(out) == [-1.0, 2.0, 5.0, 8.0]


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"b": 1.0}, r"no parameter 'b'; it takes a, shift"),
        ({"shfit": 1}, "Did you mean 'shift'"),
        ({"a": "2"}, "is a number, not str"),
        ({"a": None}, "is a number, not NoneType"),
        ({"shift": 0.5}, "an integer, not 0.5"),
        ({"shift": 2**31}, "does not fit s32"),
        ({"shift": float("nan")}, "an integer"),
        ([1.0], "params is a mapping"),
    ],
)
def test_wrong_parameters_are_refused(params, said):
    x, y, out = vectors()
    with pytest.raises(errors.ArgumentError, match=said):
        compute.run_kernel(saxpy, [x, y], out, params)
    assert compute.read_list(out) == [0.0, 1.0, 2.0, 3.0]


def test_a_missing_parameter_is_named():
    x, _, out = vectors()
    with pytest.raises(errors.ArgumentError, match="'factor' is missing"):
        compute.run_kernel("scale", [x], out)


def test_a_float_beyond_f32_becomes_infinite():
    x, y, out = vectors()
    compute.run_kernel(saxpy, [x, y], out, {"a": -1e300})
    assert compute.read_list(out)[1:] == [float("-inf")] * 3


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x, y, out: compute.run_kernel(saxpy, x, out), r"write \[x\]"),
        (lambda x, y, out: compute.run_kernel(saxpy, [x], out), "takes 2 inputs"),
        (lambda x, y, out: compute.run_kernel(saxpy, [x, [1.0]], out), "input 1 is list"),
        (lambda x, y, out: compute.run_kernel(saxpy, [x, y], None), "the output is NoneType"),
        (lambda x, y, out: saxpy.run([x], out), "takes 2 inputs"),
        (lambda x, y, out: saxpy.explain([x, np.ones(4)], out), "input 1 is ndarray"),
        (lambda x, y, out: compute.Kernel.lookup("reduce_sum").run([x, y], out), "takes 1 input "),
    ],
)
def test_wrong_buffers_are_refused(call, said):
    with pytest.raises(errors.ArgumentError, match=said):
        call(*vectors())


def test_inputs_read_in_place_have_the_shape_of_the_output():
    x, y, _ = vectors()
    with pytest.raises(errors.ShapeError, match=r"'x' is \(4,\).*output is \(5,\)"):
        compute.run_kernel(saxpy, [x, y], compute.buffer_zeros((5,), "f32"))


def test_a_buffer_that_is_no_image_is_refused():
    @dala.kernel
    def k(image: dala.Image):
        return image.pixel

    with pytest.raises(errors.ShapeError, match=r"s32 \(4,\), which is not an image"):
        compute.run_kernel(k, [vectors(dtype="s32")[0]], compute.buffer_zeros((4, 4), "f32"))
    with pytest.raises(errors.KernelTypeError, match="returns pixels"):
        compute.run_kernel(
            k, [compute.buffer_zeros((4, 4), "u8")], compute.buffer_zeros((4, 4, 2), "u8")
        )


def test_mixed_dtypes_meet_and_convert(device):
    x = compute.buffer([1, 2, 3], (3,), "s32")
    y = compute.buffer([0.5, 1.5, -8.0], (3,), "f32")
    out = compute.buffer_zeros((3,), "u8")
    compute.run_kernel(saxpy, [x, y], out, {"a": 2.0})
    assert compute.read_list(out) == [2, 6, 0]


def test_in_place_elementwise_needs_no_scratch(device):
    x, y, _ = vectors()
    compute.run_kernel(saxpy, [x, y], x, {"a": 10.0})
    assert compute.read_list(x) == [0.0, 11.0, 22.0, 33.0]
    compute.run_kernel(saxpy, [x, x], x)
    assert compute.read_list(x) == [0.0, 22.0, 44.0, 66.0]


def test_in_place_with_another_width_is_right_too():
    memory = np.arange(64, dtype=np.float32)
    wide = compute.from_dlpack(memory)
    narrow = compute.from_dlpack(memory.view(np.uint8)[:64])

    @dala.kernel
    def k(x):
        return x * 2.0

    compute.run_kernel(k, [wide], narrow)
    assert memory.view(np.uint8)[:64].tolist() == [2 * i for i in range(64)]


def test_an_empty_input_reads_as_zeros(device):
    @dala.kernel
    def k(x):
        i, j = dala.position(2)
        return x[i, j] + len(x)

    for shape in ((0, 5), (5, 0), (0, 0)):
        out = compute.buffer_zeros((3, 40), "f32")
        compute.run_kernel(k, [compute.buffer_zeros(shape, "f32")], out)
        assert (compute.read(out) == shape[0]).all()


def test_a_kernel_runs_over_a_scalar(device):
    out = compute.buffer_zeros((), "f32")
    compute.run_kernel(saxpy, [compute.buffer(3.0, (), "f32")] * 2, out)
    assert compute.read(out).shape == ()
    assert compute.read_list(out) == [6.0]


def test_a_large_output_goes_past_the_caches():
    count = (16 << 20) // 4 + 37
    values = np.arange(count, dtype=np.float32)
    x, out = compute.from_numpy(values), compute.buffer_zeros((count,), "f32")
    compute.run_kernel("elementwise_add", [x, x], out)
    assert (np.asarray(out) == 2 * values).all()
    unaligned = np.zeros(count + 3, np.float32)
    compute.run_kernel("elementwise_add", [x, x], compute.from_dlpack(unaligned[3:]))
    assert (unaligned[3:] == 2 * values).all()
    assert unaligned[:3].tolist() == [0.0] * 3


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("offset", [0, 1])
def test_large_images_of_any_alignment_are_written_whole(channels, offset):
    @dala.kernel
    def k(image: dala.Image):
        return image.pixel

    size = (1200, 1501, channels)
    count = int(np.prod(size))
    values = np.random.default_rng(0).random(count, np.float32)
    memory = np.zeros(count + offset, np.float32)
    source = compute.from_numpy(values.reshape(size))
    compute.run_kernel(k, [source], compute.from_dlpack(memory[offset:].reshape(size)))
    assert (memory[offset:] == values).all()


# -- the registry ----------------------------------------------------------------------------------


def test_kernels_are_registered_looked_up_replaced_and_forgotten():
    first = compute.Kernel.register("mine", "def k(x):\n    return x + 1.0", inputs=1, params=[])
    assert compute.Kernel.lookup("mine") is first
    assert "mine" in compute.Kernel.list()
    with pytest.raises(errors.ArgumentError, match="replace=True"):
        compute.Kernel.register("mine", "def k(x):\n    return x")
    second = compute.Kernel.register("mine", saxpy, replace=True)
    assert compute.Kernel.lookup("mine") is second
    compute.Kernel.unregister("mine")
    with pytest.raises(errors.UnknownKernelError):
        compute.Kernel.unregister("mine")
    x, _, out = vectors()
    compute.run_kernel(first, [x], out)
    assert compute.read_list(out) == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("inputs", "params", "said"),
    [
        (2, ["a"], "inputs=2 was said, but its source takes 1"),
        (["y"], ["a"], r"inputs=\['y'\]"),
        (1, ["b"], r"params=\['b'\] was said.*\['a'\]"),
        (1, [], r"its source takes \['a'\]"),
    ],
)
def test_what_is_said_of_a_source_is_checked(inputs, params, said):
    with pytest.raises(errors.ArgumentError, match=said):
        compute.Kernel.register("said", "def k(x, a: f32):\n    return x * a", inputs, params)
    assert "said" not in compute.Kernel.list()


def test_an_unknown_kernel_gets_a_suggestion():
    with pytest.raises(errors.UnknownKernelError, match="Did you mean 'elementwise_add'"):
        compute.Kernel.lookup("elementwise_ad")


def test_every_kernel_is_described():
    for name, about in compute.kernels().items():
        assert set(about) == {"inputs", "params", "doc"}, name
        assert about["doc"], f"{name} says nothing about itself"


def test_a_kernel_may_have_a_border_of_its_own(device):
    @dala.kernel(border="wrap")
    def k(x):
        (i,) = dala.position(1)
        return x[i - 1]

    x, _, out = vectors()
    compute.run_kernel(k, [x], out)
    assert compute.read_list(out) == [3.0, 0.0, 1.0, 2.0]
    with pytest.raises(errors.ArgumentError, match="clamp, mirror"):
        dala.kernel(border="blue")


def test_buffers_of_another_rank_are_refused_with_both_shapes():
    for inputs, output in (((4, 4), (4,)), ((4,), (4, 1)), ((3,), (4, 4))):
        x, out = compute.buffer_zeros(inputs, "f32"), compute.buffer_zeros(output, "f32")
        with pytest.raises(errors.ShapeError) as caught:
            compute.run_kernel("relu", [x], out)
        assert str(inputs) in str(caught.value)
        assert str(output) in str(caught.value)


def test_a_buffer_cannot_be_given_another_shape():
    x = compute.buffer_zeros((2,), "f32")
    for name, value in (("shape", (99,)), ("size", 99), ("scalar", None)):
        with pytest.raises(AttributeError, match="cannot be changed"):
            setattr(x, name, value)
    assert x.shape == (2,)


@pytest.mark.slow
def test_constant_loops_have_a_limit_too():
    loops = "".join(f"{'    ' * i}for i{i} in range(1000000):\n" for i in range(1, 4))
    source = f"def k(x):\n    t = 0.0\n{loops}                t += x\n    return t"
    kernel = compute.Kernel.register("long", source, replace=True)
    x, out = compute.buffer([1.0], (1,), "f32"), compute.buffer_zeros((1,), "f32")
    with pytest.raises(errors.KernelTimeoutError):
        compute.run_kernel(kernel, [x], out)
    compute.Kernel.unregister("long")


def test_a_float_beside_s64_is_computed_in_f64(device):
    x = compute.buffer([2**53 + 2], (1,), "s64")
    out = compute.buffer_zeros((1,), "s64")
    compute.run_kernel("scale", [x], out, {"factor": 1.0})
    assert compute.read_list(out) == [2**53 + 2]


def test_offsets_that_could_wrap_are_read_as_any_index(device):
    @dala.kernel
    def k(x):
        (i,) = dala.position(1)
        return x[i + 2147483647]

    x, out = compute.buffer(range(20), (20,), "f32"), compute.buffer_zeros((20,), "f32")
    compute.run_kernel(k, [x], out)
    assert compute.read_list(out) == [19.0] + [0.0] * 19
