"""Kernels called as functions, on arrays of every kind, on every device."""

import numpy as np
import pytest

import dala
from dala.errors import ArgumentError, DtypeError, KernelSyntaxError, ShapeError
from dala.gpu import compute
from dala.runtime.kernels.kernel import KERNELS
from dala.runtime.pipelines.composite import CompositeKernel

rng = np.random.default_rng(7)


@dala.kernel
def saxpy(x, y, a: dala.f32):
    return a * x + y


@dala.kernel
def shifted(x, by: int = 1):
    i, j = dala.position(2)
    return x[i, j + by]


@dala.kernel
def blurred(x):
    i, j = dala.position(2)
    return (x[i, j - 1] + x[i, j] + x[i, j + 1]) / 3.0


@dala.kernel
def outer(x, y):
    i, j = dala.position(2)
    return x[i] * y[j]


@dala.kernel
def product(a, b):
    i, j = dala.position(2)
    return sum(a[i, k] * b[k, j] for k in range(a.shape[1]))


@dala.kernel
def add_bias(x, bias):
    _, j = dala.position(2)
    return x + bias[j]


@dala.kernel
def counted(x, out: dala.Out):
    out.add(dala.s32(x), 1)


@dala.kernel
def total(x):
    return sum(x[k] for k in range(len(x)))


@dala.kernel
def darkened(image: dala.Image, amount: float = 0.5):
    return image.pixel * amount


@dala.kernel
def brightest(image: dala.Image):
    p = image.pixel
    return max(p.r, p.g, p.b)


@dala.kernel
def heat(x):
    return dala.rgba(x, 0.0, 1.0 - x, 1.0)


@dala.kernel
def levels(x) -> dala.u8:
    return x * 255.0


@pytest.fixture
def x() -> np.ndarray:
    return rng.random((4, 5), np.float32)


# -- kinds of arrays -------------------------------------------------------------------------------


def test_arrays_give_an_array(device, x):
    y = saxpy(x, x, a=3.0)
    assert isinstance(y, np.ndarray)
    assert y.dtype == np.float32
    assert np.allclose(y, 4 * x)
    y[0, 0] = 7  # it is the caller's own
    assert y[0, 0] == 7


def test_buffers_give_a_buffer_on_their_device(device, x):
    held = compute.from_numpy(x)
    with compute.device("cpu"):
        y = saxpy(held, held, 3.0)
    assert isinstance(y, compute.Buffer)
    assert y.device == held.device
    assert np.allclose(compute.read(y), 4 * x)


def test_the_first_input_decides_what_comes_back(device, x):
    held = compute.from_numpy(x)
    assert isinstance(saxpy(x, held, a=1.0), np.ndarray)
    assert isinstance(saxpy(held, x, a=1.0), compute.Buffer)
    assert np.allclose(compute.read(saxpy(held, x, a=1.0)), 2 * x)


class Tensor:
    """A tensor of a library that dala does not know, by the array API standard."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array_namespace__(self) -> type:
        return Tensor

    @staticmethod
    def from_dlpack(given: np.ndarray) -> "Tensor":
        return Tensor(np.from_dlpack(given))

    def __dlpack__(self, **named: object) -> object:
        return self.array.__dlpack__(**named)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_tensors_give_a_tensor(device, x):
    y = saxpy(Tensor(x), x, a=3.0)
    assert isinstance(y, Tensor)
    assert np.allclose(y.array, 4 * x)


def test_a_tensor_of_which_no_other_can_be_made_is_refused(device, x):
    class Lonely(Tensor):
        __array_namespace__ = property()

    with pytest.raises(ArgumentError, match=r"Lonely can be read, .* np\.from_dlpack"):
        saxpy(Lonely(x), x, a=3.0)


def test_arrays_that_cannot_be_shared_are_read_all_the_same(device, x):
    fixed = x.copy()
    fixed.flags.writeable = False
    assert np.allclose(saxpy(fixed, x[::-1], a=1.0), x + x[::-1])
    assert np.allclose(saxpy(x.T, x.T, a=1.0), 2 * x.T)
    assert np.allclose(saxpy(x[:0], x[:0], a=1.0), x[:0])


def test_on_the_host_inputs_and_results_are_not_copied(addresses):
    x, y, into = np.ones(64, np.float32), np.ones(64, np.float32), np.empty(64, np.float32)
    y.flags.writeable = False
    with compute.device("cpu"):
        z = saxpy(x, y, a=1.0)
        saxpy(x, Tensor(y), a=1.0, out=into)
    assert addresses == [item.ctypes.data for item in (x, y, z, x, y, into)]


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        (2.0, r"the number 2\.0, .*np\.array\(2\.0, np\.float32\).*`y: dala\.f32`"),
        (True, "the number True"),
        ([1.0, 2.0], r"a list, .*np\.array\(\[1\.0, 2\.0\], np\.float32\)"),
        (None, "None: give an array"),
        ("text", r"str, which is no array: .*np\.asarray"),
    ],
)
def test_what_is_no_array_is_refused_with_a_remedy(x, given, remedy):
    with pytest.raises(ArgumentError, match=f"saxpy: input 'y' is {remedy}"):
        saxpy(x, given, a=1.0)
    assert np.allclose(saxpy(x, x, a=1.0), 2 * x)


# -- where it is written ---------------------------------------------------------------------------


def test_out_is_written_and_returned(device, x):
    held, there = compute.from_numpy(x), compute.buffer_zeros((4, 5), "f32")
    assert saxpy(held, held, a=2.0, out=there) is there
    assert np.allclose(compute.read(there), 3 * x)
    array = np.empty((4, 5), np.float32)
    assert saxpy(x, x, a=2.0, out=array) is array
    assert np.allclose(array, 3 * x)
    tensor = Tensor(np.empty((4, 5), np.float32))
    assert saxpy(x, x, a=2.0, out=tensor) is tensor
    assert np.allclose(tensor.array, 3 * x)


def test_out_of_another_kind_or_layout_is_written_all_the_same(device, x):
    wide = np.zeros((4, 10), np.float32)
    saxpy(compute.from_numpy(x), x, a=2.0, out=wide[:, ::2])
    assert np.allclose(wide[:, ::2], 3 * x)
    assert not wide[:, 1::2].any()
    there = compute.buffer_zeros((4, 5), "f64" if device == "cpu" else "s32")
    assert saxpy(x, x, a=2.0, out=there) is there


def test_out_may_be_an_input(device, x):
    want = np.pad(x, ((0, 0), (0, 1)), "edge")[:, 1:]
    shifted(x, out=x)
    assert np.array_equal(x, want)


def test_out_may_be_what_an_input_is_broadcast_from(device):
    x = rng.random((40, 30), np.float32)
    want = 2 * x[:1] + x
    assert saxpy(x[:1], x, a=2.0, out=x) is x
    assert np.allclose(x, want)


def test_out_that_cannot_be_written_is_refused(device, x):
    x.flags.writeable = False
    with pytest.raises(ArgumentError, match="out is read-only"):
        saxpy(x, x, a=1.0, out=x)
    with pytest.raises(ArgumentError, match="out is list, which cannot be written to"):
        saxpy(x, x, a=1.0, out=[0.0])


def test_out_beside_shape_or_dtype_is_refused(x):
    with pytest.raises(ArgumentError, match="leave shape= and dtype= away"):
        saxpy(x, x, a=1.0, out=x, dtype="f32")


# -- shapes and dtypes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtypes", "a", "gives"),
    [
        (("float32", "float32"), 2.0, "float32"),
        (("uint8", "uint8"), 2.0, "float32"),
        (("int32", "float32"), 2.0, "float32"),
    ],
)
def test_the_dtype_is_that_of_the_expression(device, dtypes, a, gives):
    x, y = (np.arange(4).astype(dtype) for dtype in dtypes)
    z = saxpy(x, y, a)
    assert z.dtype == gives
    assert z.tolist() == [0, 3, 6, 9]


def test_the_dtype_follows_integers_floats_and_comparisons(device):
    x = np.arange(4, dtype=np.int32)
    assert KERNELS["elementwise_add"](x, x).dtype == np.int32
    assert KERNELS["scale"](x, 2).dtype == np.int32
    assert KERNELS["scale"](x, 0.5).dtype == np.float32
    larger = compute.Kernel.register("larger", "def larger(x): return x > 1")
    assert larger(x).astype(int).tolist() == [0, 0, 1, 1]
    index = compute.Kernel.register("index", "def index(x):\n  (i,) = dala.position(1)\n  return i")
    assert index(x).dtype == np.int32


def test_the_return_annotation_names_the_dtype(device):
    x = np.array([0.0, 0.5, 1.0], np.float32)
    y = levels(x)
    assert y.dtype == np.uint8
    assert y.tolist() == [0, 128, 255]
    assert levels(x, dtype="f32").dtype == np.float32


def test_a_return_annotation_that_names_no_dtype_is_refused():
    with pytest.raises(KernelSyntaxError, match=r"`str` does not say what a kernel returns"):
        compute.Kernel.register("wrong", "def wrong(x) -> str: return x")
    with pytest.raises(KernelSyntaxError, match="'f 32'` does not say what a kernel returns"):
        compute.Kernel.register("wrong", "def wrong(x) -> 'f 32': return x")
    with pytest.raises(KernelSyntaxError, match="'f 32'` does not annotate"):
        compute.Kernel.register("wrong", "def wrong(x, a: 'f 32'): return x")


def test_shape_and_dtype_can_be_asked_for(device, x):
    assert saxpy(x, x, a=1.0, dtype="s32").dtype == np.int32
    rows, columns = np.arange(3, dtype=np.float32), np.arange(2, dtype=np.float32)
    assert np.array_equal(outer(rows, columns, shape=(3, 2)), np.outer(rows, columns))
    assert np.allclose(product(x, x.T, shape=(4, 4)), x @ x.T, atol=1e-5)
    assert total(x[0], shape=1)[0] == pytest.approx(x[0].sum())
    assert KERNELS["fill"](value=7, shape=(2, 2), dtype="u8").tolist() == [[7, 7], [7, 7]]


def test_neighbors_give_the_shape_of_what_they_are_read_from(device, x):
    padded = np.pad(x, ((0, 0), (1, 1)), "edge")
    want = (padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]) / 3
    assert np.allclose(blurred(x), want, atol=1e-6)
    assert np.allclose(add_bias(x, x[0]), x + x[0])


@pytest.mark.parametrize(
    ("kernel", "shapes"), [(outer, ((3,), (2,))), (product, ((3, 4), (4, 5))), (total, ((3,),))]
)
def test_a_shape_that_nothing_says_is_asked_for(kernel, shapes):
    with pytest.raises(ShapeError, match=r"do not say how large its output is .*give shape=\(…\)"):
        kernel(*(np.zeros(shape, np.float32) for shape in shapes))


def test_a_kernel_that_writes_where_it_likes_needs_a_shape_or_out(device):
    x = np.array([0, 2, 2, 3], np.uint8)
    with pytest.raises(ShapeError, match=r"counted writes where it likes.*give shape=.*out="):
        counted(x)
    found = counted(x, shape=(4,))
    assert found.dtype == np.int32
    assert found.tolist() == [1, 0, 2, 1]
    into = np.full(4, 9, np.int32)
    assert counted(x, out=into).tolist() == [1, 0, 2, 1]


def test_images_give_images(device):
    image = rng.integers(0, 256, (4, 6, 3), np.uint8)
    assert np.abs(darkened(image).astype(int) - image * 0.5).max() <= 1
    assert darkened(image[..., 0]).shape == (4, 6)
    assert darkened(image).dtype == np.uint8
    most = brightest(image)
    assert (most.shape, most.dtype) == ((4, 6), np.float32)
    assert np.allclose(most, image.max(2) / 255, atol=1e-6)
    made = heat(np.full((2, 3), 0.25, np.float32))
    assert (made.shape, made.dtype) == ((2, 3, 4), np.float32)
    assert made[0, 0].tolist() == [0.25, 0, 0.75, 1]


# -- broadcasting ----------------------------------------------------------------------------------

SHAPES = [
    *(((4, 1), (1, 5)), ((3, 4, 5), (5,)), ((2, 3), ()), ((), (2, 3)), ((2, 1, 4), (1, 3, 1))),
    *(((1,), (6,)), ((0, 3), (3,)), ((4, 1), (4, 33)), ((), ())),
]


@pytest.mark.parametrize("shapes", SHAPES)
def test_bare_inputs_broadcast_as_numpy_has_it(device, shapes):
    x, y = (np.asarray(rng.random(shape), np.float32) for shape in shapes)
    want = np.asarray(2 * x + y)
    found = saxpy(x, y, a=2.0)
    assert found.shape == want.shape
    assert np.allclose(found, want)


def test_an_input_that_broadcasts_is_indexed_by_its_own_axes(device):
    @dala.kernel
    def ramp(x, row):
        _, j = dala.position(2)
        return x + row * row[j - 1]

    x, row = rng.random((4, 6), np.float32), rng.random(6, np.float32)
    assert np.allclose(ramp(x, row), x + row * row[[0, 0, 1, 2, 3, 4]])


@pytest.mark.parametrize("fuse", [True, False])
def test_broadcasting_is_the_same_in_pipelines(device, fuse):
    x, row, column = (rng.random(shape, np.float32) for shape in [(40, 30), (30,), (40, 1)])
    held = [compute.from_numpy(item) for item in (x, row, column)]
    first, second = (compute.scratch(shape, "f32") for shape in [(30,), (40, 30)])
    out = compute.buffer_zeros((40, 30), "f32")
    pipeline = compute.pipeline(fuse=fuse)
    pipeline.add(kernel="scale", inputs=[held[1]], output=first, params={"factor": 2.0})
    pipeline.add(kernel=saxpy, inputs=[held[0], first], output=second, params={"a": 3.0})
    pipeline.add(kernel="elementwise_mul", inputs=[second, held[2]], output=out)
    pipeline.run()
    assert np.allclose(compute.read(out), (3 * x + 2 * row) * column, rtol=1e-5)


def test_shapes_that_do_not_broadcast_are_refused(device):
    x, y = np.zeros((4, 3), np.float32), np.zeros((2, 3), np.float32)
    with pytest.raises(ShapeError, match=r"'x' is \(4, 3\), 'y' is \(2, 3\).*equal or 1"):
        saxpy(x, y, a=1.0)
    with pytest.raises(ShapeError, match="same shape, or broadcasts to it"):
        saxpy(x, x, a=1.0, out=np.zeros((1, 3), np.float32))
    with pytest.raises(ShapeError, match="same shape, or broadcasts to it"):
        saxpy(x, x, a=1.0, out=np.zeros(3, np.float32))


# -- arguments -------------------------------------------------------------------------------------


def test_arguments_go_by_position_and_by_name(device, x):
    want = 3 * x + 1
    ones = np.ones_like(x)
    for found in (
        saxpy(x, ones, 3.0),
        saxpy(x, ones, a=3.0),
        saxpy(x, y=ones, a=3.0),
        saxpy(a=3.0, y=ones, x=x),
    ):
        assert np.allclose(found, want)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(
    ("given", "named", "said"),
    [
        (2, {"b": 1.0}, r"saxpy\(x, y, a: f32\); it has no 'b'"),
        (2, {"a": 1.0, "shap": 3}, r"it has no 'shap'\. Did you mean 'shape'\?"),
        (2, {}, "parameter 'a' is missing"),
        (1, {"a": 1.0}, "'y' is missing"),
        (0, {"a": 1.0}, "'x' and 'y' are missing"),
        (2, {"x": 1.0}, "'x' is given twice, by position and by name"),
        (4, {}, "4 arguments were given by position; out=, shape= and dtype= are given by name"),
        (3, {}, "parameter a: f32 is a number, not"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(x, held, given, named, said):
    arrays = [compute.from_numpy(x) if held else x] * given
    with pytest.raises(ArgumentError, match=said):
        saxpy(*arrays, **named)
    if held and not {"shap"} & named.keys():
        with pytest.raises(ArgumentError, match=said):
            saxpy(*arrays, **named, out=compute.buffer_zeros((4, 5), "f32"))


def test_python_types_annotate_parameters_of_text(device):
    text = "def raised(x, by: int, share: 'float' = 0.5) -> float: return x + by * share"
    raised = compute.Kernel.register("raised", text)
    assert [str(item) for item in raised.params] == ["by: s32", "share: f32 = 0.5"]
    assert raised(np.array([1, 2], np.int32), 3).tolist() == [2.5, 3.5]


def test_python_types_annotate_parameters(device):
    @dala.kernel
    def chosen(x, limit: float, more: int, flip: bool = False) -> int:
        return (x < limit) == flip and x + more > 0

    kinds = [item.describe()["type"] for item in chosen.params]
    assert kinds == ["f32", "s32", "bool"]
    found = chosen(np.array([1.0, 3.0], np.float32), 2.0, 1)
    assert found.dtype == np.int32
    assert found.tolist() == [0, 1]
    with pytest.raises(ArgumentError, match="'more' is s32, an integer"):
        chosen(found, 2.0, 1.5)


def test_a_parameter_of_a_kernels_own_comes_before_the_calls(device):
    image = rng.random((4, 6, 3), np.float32)
    assert KERNELS["resize"](image, shape=(2, 3)).shape == (2, 3, 3)
    assert KERNELS["resize"](image, (8, 2)).shape == (2, 8, 3)


def test_a_dtype_that_there_is_not_is_refused(x):
    with pytest.raises(DtypeError, match="f23"):
        saxpy(x, x, a=1.0, dtype="f23")


# -- every kind of kernel --------------------------------------------------------------------------


def test_built_in_kernels_and_composite_ones_are_called(device):
    image = rng.integers(0, 256, (20, 30, 4), np.uint8)
    want = compute.buffer_zeros(image.shape, "u8")
    compute.run_kernel("blur", [compute.from_numpy(image)], want, {"radius": 2})
    assert np.array_equal(KERNELS["blur"](image, 2), compute.read(want))
    assert np.array_equal(KERNELS["blur"](image=image, radius=2), compute.read(want))
    assert np.array_equal(KERNELS["crop"](image, x=3, width=4), image[:, 3:7])
    assert KERNELS["softmax"](np.zeros((2, 4), np.float32))[0, 0] == 0.25


def test_kernels_of_any_number_of_inputs_are_called(device):
    parts = [np.full((2, n), n, np.float32) for n in (1, 2, 3)]
    want = np.concatenate(parts, axis=1)
    assert np.array_equal(KERNELS["concat"](*parts, axis=1), want)
    held = [compute.from_numpy(item) for item in parts]
    out = compute.buffer_zeros((2, 6), "f32")
    assert KERNELS["concat"](*held, axis=1, out=out) is out
    assert np.array_equal(compute.read(out), want)
    with pytest.raises(ArgumentError, match=r"'weight_and_bias\[0\]' is missing"):
        KERNELS["conv2d"](parts[0])


def floats(*shape: int) -> np.ndarray:
    return rng.random(shape, np.float32)


def bytes_(*shape: int) -> np.ndarray:
    return rng.integers(0, 256, shape, np.uint8)


POSITIONS = np.array([1, 0], np.int32)
RESULTS = [
    ("matmul", [floats(3, 4), floats(4, 5)], {}, ((3, 5), "float32")),
    ("matmul", [floats(2, 3, 4), floats(4, 5)], {}, ((2, 3, 5), "float32")),
    ("transpose", [floats(2, 3, 4)], {}, ((4, 3, 2), "float32")),
    ("transpose", [floats(2, 3, 4)], {"axes": (0, 2, 1)}, ((2, 4, 3), "float32")),
    ("gather", [floats(3, 4), POSITIONS], {"axis": 1}, ((3, 2), "float32")),
    ("reduce_sum", [bytes_(3, 4)], {"axis": 1}, ((3,), "uint32")),
    ("reduce_mean", [bytes_(3, 4)], {"axis": 0}, ((4,), "float32")),
    ("reduce_max", [floats(3, 4)], {}, ((), "float32")),
    ("argmax", [floats(3, 4)], {"axis": 1}, ((3,), "int32")),
    ("max_pool", [floats(1, 2, 6, 8)], {}, ((1, 2, 3, 4), "float32")),
    ("avg_pool", [floats(6, 8)], {"size": 3, "stride": 1}, ((4, 6), "float32")),
    ("conv2d", [floats(1, 2, 6, 8), floats(5, 2, 3, 3)], {}, ((1, 5, 4, 6), "float32")),
    ("depthwise_conv2d", [floats(1, 2, 6, 8), floats(2, 1, 3, 3)], {}, ((1, 2, 4, 6), "float32")),
    ("softmax", [bytes_(3, 4)], {}, ((3, 4), "float32")),
    ("prefix_sum", [bytes_(5)], {}, ((5,), "uint32")),
    ("fft", [floats(8)], {}, ((8, 2), "float32")),
    ("fft", [floats(8, 2)], {}, ((8, 2), "float32")),
    ("elementwise_div", [bytes_(3, 1), floats(4)], {}, ((3, 4), "float32")),
    ("preprocess", [bytes_(9, 7, 3)], {"shape": (4, 6)}, ((1, 3, 4, 6), "float32")),
    ("preprocess", [bytes_(9, 7, 3)], {"layout": "nhwc"}, ((1, 9, 7, 3), "float32")),
    ("yolo_scores", [floats(6, 8)], {}, ((6,), "float32")),
    ("yolo_classes", [floats(6, 8), POSITIONS], {}, ((2,), "int32")),
    ("yolo_boxes", [floats(6, 8), POSITIONS], {}, ((2, 4), "float32")),
    ("yolo_values", [floats(6, 8), POSITIONS], {}, ((2, 8), "float32")),
    ("anchor_scores", [floats(6, 8)], {}, ((6,), "float32")),
    ("top_k", [floats(3, 8)], {"indices": True, "shape": (3, 2)}, ((3, 2), "int32")),
    ("histogram", [bytes_(9, 9)], {"shape": 256}, ((256,), "int32")),
]


@pytest.mark.parametrize(("name", "inputs", "named", "gives"), RESULTS)
def test_built_in_kernels_say_what_they_give(device, name, inputs, named, gives):
    found = KERNELS[name](*inputs, **named)
    assert (found.shape, str(found.dtype)) == gives
    want = compute.buffer_zeros(*gives)
    params = {key: value for key, value in named.items() if key in ("axis", "axes", "indices")}
    params |= {key: named[key] for key in ("size", "stride", "layout") if key in named}
    compute.run_kernel(name, [compute.from_numpy(item) for item in inputs], want, params)
    assert np.array_equal(found, compute.read(want))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("random_uniform", "float32"), ("random_normal", "float32"), ("permutation", "int32")],
)
def test_kernels_without_inputs_are_called_with_a_shape(name, dtype, device):
    found = KERNELS[name](shape=(50,), seed=3)
    assert (found.shape, str(found.dtype)) == ((50,), dtype)
    assert len(np.unique(found)) == 50
    with pytest.raises(ShapeError, match="give shape="):
        KERNELS[name](seed=3)


@pytest.mark.parametrize("name", ["top_k", "histogram", "class_mask", "soft_mask"])
def test_built_in_kernels_that_follow_their_output_ask_for_its_shape(name):
    with pytest.raises(ShapeError, match=rf"{name}: the output.*give shape=\(…\), or out="):
        KERNELS[name](np.zeros((3, 3), np.uint8))


def test_every_kernel_says_what_it_gives_or_asks():
    """No composite kernel that checks its output's shape leaves it to the first input's."""
    alike = {"softmax", "layer_norm", "prefix_sum", "heatmap_peaks"}
    for name, kernel in KERNELS.items():
        has_inputs = isinstance(kernel, CompositeKernel) and kernel.inputs
        if has_inputs and not getattr(kernel, "group", ""):
            assert kernel._sizing is not None or name in alike, name


def test_wgsl_text_is_called(webgpu):
    text = """
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<i32>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            if (id.x < arrayLength(&y)) { y[id.x] = i32(x[id.x]) * 2; }
        }
    """
    doubled = compute.Kernel.register("doubled", text, language="wgsl")
    found = doubled(np.array([1, 2, 3], np.float32))
    assert found.dtype == np.int32
    assert found.tolist() == [2, 4, 6]


def test_parity_mode_compares_calls(webgpu, x):
    with compute.device("parity"):
        assert np.allclose(saxpy(x, x[0], a=3.0), 3 * x + x[0])


def test_a_profile_sees_calls(device, x):
    with compute.profile() as seen:
        saxpy(x, x, a=1.0)
    assert [record.name for record in seen.records if record.name == "saxpy"]


def test_a_kernel_is_not_called_from_another():
    with pytest.raises(KernelSyntaxError, match=r"@dala\.function"):

        @dala.kernel
        def twice(x):
            return blurred(x)
