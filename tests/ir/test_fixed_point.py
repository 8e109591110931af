"""Floats on levels in 8 and 16 bits: what plain image kernels compute stays what they say."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu import compute
from dala.ir.level_plans import LARGEST_ERROR

SHAPE = (9, 83, 4)
random = np.random.default_rng(3)
IMAGE = random.integers(0, 256, SHAPE, np.uint8)
DEEP = random.integers(0, 65536, SHAPE, np.uint16)


def code_of(kernel, shape=SHAPE, **params) -> str:
    with compute.device("cpu"):
        image, out = (compute.buffer_zeros(shape, "u8") for _ in range(2))
        return kernel.explain([image], out, **({"params": params} if params else {}))


def shifted(image: np.ndarray, down: int, across: int) -> np.ndarray:
    padded = np.pad(image.astype(float), ((4, 4), (4, 4), (0, 0)), "edge")
    h, w = image.shape[:2]
    return padded[4 + down : 4 + down + h, 4 + across : 4 + across + w]


def weighted_sum(seed: int, count: int, image: np.ndarray):
    """A kernel that adds up weighted neighbors, and what it should give."""
    draw = np.random.default_rng(seed)
    weights = draw.normal(0, 1 / count, count) if seed % 2 else draw.random(count) / count
    if seed % 3 == 0:
        weights = np.round(weights * 16) / 16
    offset = float(draw.choice([0.0, 0.25, draw.normal(0, 0.3)]))
    places = draw.integers(-3, 4, (count, 2)).tolist()
    pairs = list(zip(weights.tolist(), places, strict=True))
    terms = [f"{w!r} * image[y + {dy}, x + {dx}]" for w, (dy, dx) in pairs]
    text = "def k(image: dala.Image):\n    y, x = dala.position(2)\n    return "
    kernel = compute.Kernel.register("k", text + " + ".join([*terms, repr(offset)]))
    real = sum(w * shifted(image, *place) for w, place in pairs)
    highest = np.iinfo(image.dtype).max
    return kernel, (real + highest * offset).clip(0, highest)


@pytest.mark.parametrize("seed", range(24))
def test_a_weighted_sum_is_rounded_to_the_level_that_it_is_nearest_to(device, seed):
    kernel, want = weighted_sum(seed, 1 + seed * 7 % 9, IMAGE)
    error = 1e-4 if seed % 3 == 0 else LARGEST_ERROR
    assert np.abs(kernel(IMAGE, dtype="u8") - want).max() <= 0.5 + error


@pytest.mark.parametrize("seed", range(24))
def test_a_weighted_sum_of_16_bits_is_rounded_to_the_nearest_level(device, seed):
    kernel, want = weighted_sum(seed, 1 + seed * 7 % 19, DEEP)
    assert np.abs(kernel(DEEP, dtype="u16") - want).max() <= 0.5 + 0.05


@pytest.mark.parametrize("value", [0.1, -0.3, 2.0, -2.0, float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("image", [IMAGE, DEEP], ids=["u8", "u16"])
def test_what_a_parameter_adds_saturates_and_nothing_wraps(device, value, image):
    @dala.kernel
    def lift(image: dala.Image, value: dala.f32):
        p = image.pixel
        return dala.rgba(p.r + value, p.g - 2.0 * value, 1.0 - p.b + value, p.a)

    x, highest = image.astype(float), np.iinfo(image.dtype).max
    with np.errstate(invalid="ignore"):
        real = np.stack(
            [
                x[..., 0] + highest * value,
                x[..., 1] - 2 * highest * value,
                highest - x[..., 2] + highest * value,
                x[..., 3],
            ],
            -1,
        )
    want = np.nan_to_num(real, nan=0.0).clip(0, highest)
    assert np.abs(lift(image, value=value) - want).max() <= 0.5 + LARGEST_ERROR


@pytest.mark.parametrize("low", [0.0, 0.2])
def test_a_clamp_before_storing_is_kept(device, low):
    kernel = compute.Kernel.register(
        "k",
        "def k(image: dala.Image):\n"
        f"    return dala.clamp(0.7 * image.pixel + 0.3 * (1.0 - image.pixel), {low}, 0.6)",
    )
    want = np.clip(0.4 * IMAGE + 0.3 * 255, low * 255, 0.6 * 255)
    assert np.abs(kernel(IMAGE, dtype="u8") - want).max() <= 0.5 + LARGEST_ERROR


@pytest.mark.parametrize("sign", [1, -1])
def test_the_least_of_levels_is_found_in_bytes_whatever_is_made_of_it(device, sign):
    value = "image[y, x + j]" if sign > 0 else "1.0 - image[y, x + j]"
    kernel = compute.Kernel.register(
        "k",
        "def k(image: dala.Image):\n"
        "    y, x = dala.position(2)\n"
        "    found = image.pixel if True else image.pixel\n"
        "    for j in range(-1, 2):\n"
        f"        found = min(found, {value})\n"
        "    return found",
    )
    near = [sign * (shifted(IMAGE, 0, j) - 255 * (sign < 0)) for j in (-1, 0, 1)]
    want = np.minimum(np.minimum.reduce(near), IMAGE)
    assert np.array_equal(kernel(IMAGE, dtype="u8"), want)


def test_a_choice_of_levels_stays_a_choice(device):
    @dala.kernel
    def k(image: dala.Image):
        p = image.pixel
        return p if p.r > 0.5 else image[0, 0]

    want = np.where(IMAGE[..., :1] > 127, IMAGE, IMAGE[0, 0])
    assert np.array_equal(k(IMAGE), want)


def test_plain_arrays_of_bytes_are_narrow_too(device):
    @dala.kernel
    def k(x) -> dala.u8:
        return 0.25 * x + 0.5 * x + 7.0

    x = np.arange(256, dtype=np.uint8)
    assert np.abs(k(x) - (0.75 * x + 7.0)).max() <= 0.5


@pytest.mark.parametrize(
    "formula", ["0.5 * x", "x + 0.5", "0.25 * x + 0.5 * y", "x - 0.5 * y + 0.25", "1.5 * x - 3.0"]
)
def test_the_middle_of_two_levels_goes_to_the_even_one(device, formula):
    kernel = compute.Kernel.register("k", f"def k(x, y) -> dala.u8:\n    return {formula}")
    x, y = (part.ravel().astype(np.uint8) for part in np.mgrid[:256, :256:7])
    real = eval(formula, {"x": x.astype(float), "y": y.astype(float)})
    assert np.array_equal(kernel(x, y), np.rint(real).clip(0, 255))


@pytest.mark.parametrize("value", [0.5, -0.5, 7.5, 0.25, -300.5, 254.5])
def test_so_it_does_if_a_parameter_makes_it_the_middle(device, value):
    @dala.kernel
    def k(x, y, value: float) -> dala.u8:
        return 0.5 * x + y + value

    x, y = (part.ravel().astype(np.uint8) for part in np.mgrid[:256, :256:7])
    want = np.rint(0.5 * x + y.astype(float) + value).clip(0, 255)
    assert np.array_equal(k(x, y, value=value), want)


def blur_of(weights: tuple[float, ...]):
    @dala.kernel
    def down(image: dala.Image):
        y, x = dala.position(2)
        total = dala.rgba(0.0, 0.0, 0.0, 0.0)
        for k in range(len(weights)):
            total += image[y + k - 1, x] * weights[k]
        return total

    @dala.kernel
    def across(image: dala.Image):
        y, x = dala.position(2)
        total = dala.rgba(0.0, 0.0, 0.0, 0.0)
        for k in range(len(weights)):
            total += image[y, x + k - 1] * weights[k]
        return total

    return down, across


@pytest.mark.parametrize("dtype", ["f32", "u8"])
@pytest.mark.parametrize("weights", [(1 / 3,) * 3, (1 / 11,) * 11, (0.5, 0.5), (0.2, 0.5, 0.3)])
def test_fused_steps_give_the_bytes_of_steps_run_one_by_one(weights, dtype):
    image = random.integers(0, 256, (64, 83, 4), np.uint8)
    down, across = blur_of(weights)
    with compute.device("cpu"):
        source = compute.from_numpy(image)
        between = compute.buffer_zeros(image.shape, dtype)
        alone = compute.buffer_zeros(image.shape, "u8")
        compute.run_kernel(down, [source], between)
        compute.run_kernel(across, [between], alone)
        fused, scratch = (
            compute.buffer_zeros(image.shape, "u8"),
            compute.scratch(image.shape, dtype),
        )
        pipeline = compute.pipeline().add(kernel=down, inputs=[source], output=scratch)
        pipeline.add(kernel=across, inputs=[scratch], output=fused).run()
    assert np.array_equal(compute.read(fused), compute.read(alone))


def test_a_float_between_inlined_steps_is_rounded_as_by_itself():
    @dala.kernel
    def half(x) -> dala.f32:
        return 0.3 * x

    @dala.kernel
    def lift(x) -> dala.u8:
        return x + 0.2 * x + 0.1

    x = np.arange(256, dtype=np.uint8)
    with compute.device("cpu"):
        source, fused = compute.from_numpy(x), compute.buffer_zeros(256, "u8")
        scratch = compute.scratch(256, "f32")
        pipeline = compute.pipeline().add(kernel=half, inputs=[source], output=scratch)
        pipeline.add(kernel=lift, inputs=[scratch], output=fused).run()
        assert np.array_equal(compute.read(fused), lift(half(x)))


@pytest.mark.parametrize(("count", "is_encoded"), [(3, True), (11, True), (4, False)])
def test_sums_between_steps_are_kept_in_sixteen_bits_if_no_result_can_change(count, is_encoded):
    down, across = blur_of((1 / count,) * count)
    with compute.device("cpu"):
        image, out = (compute.buffer_zeros((64, 83, 4), "u8") for _ in range(2))
        between = compute.scratch(image.shape, "f32")
        pipeline = compute.pipeline().add(kernel=down, inputs=[image], output=between)
        pipeline.add(kernel=across, inputs=[between], output=out)
    said = pipeline.explain()
    assert ("in 16 bits" in said) == is_encoded


def test_a_float_that_somebody_can_see_stays_a_float(device):
    @dala.kernel
    def half(image: dala.Image):
        return image.pixel * 0.3

    @dala.kernel
    def double(image: dala.Image):
        return image.pixel * 2.0

    source, out = compute.from_numpy(IMAGE), compute.buffer_zeros(SHAPE, "u8")
    between = compute.buffer_zeros(SHAPE, "f32")
    pipeline = compute.pipeline().add(kernel=half, inputs=[source], output=between)
    pipeline.add(kernel=double, inputs=[between], output=out).run()
    assert np.allclose(compute.read(between), IMAGE / 255 * 0.3, atol=1e-6)


OTHER = random.integers(0, 256, SHAPE, np.uint8)
MIXES = {
    "a * b": lambda a, b: a * b,
    "a + b - a * b": lambda a, b: a + b - a * b,
    "(1.0 - a) * (1.0 - b)": lambda a, b: (1 - a) * (1 - b),
    "0.5 * a * b + 0.1": lambda a, b: 0.5 * a * b + 0.1,
    "abs(a - b)": lambda a, b: abs(a - b),
    "1.0 - abs(b - a)": lambda a, b: 1 - abs(b - a),
    "min(a + b, 1.0)": lambda a, b: a + b,
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "b - a": lambda a, b: b - a,
    "max(a - b, 0.25)": lambda a, b: np.maximum(a - b, 0.25),
    "min(a + b, 0.75)": lambda a, b: np.minimum(a + b, 0.75),
}


@pytest.mark.parametrize("formula", MIXES)
@pytest.mark.parametrize("white", [255, 65535])
def test_two_levels_are_multiplied_added_and_taken_from_each_other(device, formula, white):
    text = "def k(x: dala.Image, y: dala.Image):\n    a, b = x.pixel, y.pixel\n    return "
    kernel = compute.Kernel.register("k", text + formula, replace=True)
    dtype = {255: "u8", 65535: "u16"}[white]
    a, b = (
        (item.astype(int) * (white // 255)).astype(dtype.replace("u", "uint"))
        for item in (IMAGE, OTHER)
    )
    got = kernel(a, b, dtype=dtype)
    real = np.clip(MIXES[formula](a / white, b / white), 0, 1) * white
    error = LARGEST_ERROR if white == 255 else 0.01
    assert np.abs(got - real).max() <= 0.5 + error


def test_extremes_sums_and_distances_of_bytes_are_bytes():
    with compute.device("cpu"):
        images = [compute.buffer_zeros(SHAPE, "u8") for _ in range(2)]
        for formula in ("min(a + b, 1.0)", "a - b", "abs(a - b)"):
            text = "def k(x: dala.Image, y: dala.Image):\n    a, b = x.pixel, y.pixel\n    return "
            kernel = compute.Kernel.register("k", text + formula, replace=True)
            said = kernel.explain(images, compute.buffer_zeros(SHAPE, "u8"))
            assert "x float>" not in said
            assert "x i16>" not in said


def test_no_vector_of_floats_is_left_in_the_code():
    @dala.kernel
    def k(image: dala.Image, value: float):
        y, x = dala.position(2)
        p = 0.4 * image.pixel + 0.6 * image[y + 1, x]
        return dala.rgba(p.r + value, p.g, p.b, 1.0 - p.a)

    said = code_of(k, value=0.1)
    assert "in fixed point:" in said
    assert "x float>" not in said
    assert "x i16>" in said


def test_what_is_no_sum_stays_as_it_is():
    @dala.kernel
    def k(image: dala.Image):
        return image.pixel / (image.pixel + 1.0)

    said = code_of(k)
    assert "in fixed point:" not in said
    assert "x float>" in said


@pytest.mark.parametrize(("name", "params"), [("grayscale", {}), ("brightness", {"value": 0.1})])
def test_built_in_kernels_need_no_twin_for_bytes(name, params):
    assert "x float>" not in code_of(compute.Kernel.lookup(name), **params)


def test_a_plain_blur_over_two_axes_is_unrolled_and_narrow():
    weights = tuple((np.exp(-((np.arange(7) - 3) ** 2) / 4.5)).tolist())

    @dala.kernel
    def blur(image: dala.Image):
        y, x = dala.position(2)
        total = dala.rgba(0.0, 0.0, 0.0, 0.0)
        for i in range(7):
            for j in range(7):
                total += image[y + i - 3, x + j - 3] * (weights[i] * weights[j] / 14.0)
        return total

    assert "x float>" not in code_of(blur)


def fused_and_alone(first, second, image, between):
    """What two kernels make of an image in a pipeline, and one by one."""
    with compute.device("cpu"):
        source, other = compute.from_numpy(image), compute.from_numpy(image[::-1].copy())
        fused, alone = (compute.buffer_zeros(image.shape, "u8") for _ in range(2))
        scratch, buffer = (
            compute.scratch(image.shape, between),
            compute.buffer_zeros(image.shape, between),
        )
        pipeline = compute.pipeline().add(first, [source], scratch)
        pipeline.add(second, [scratch, other], fused).run()
        compute.run_kernel(first, [source], buffer)
        compute.run_kernel(second, [buffer, other], alone)
        return compute.read(fused), compute.read(alone)


def test_a_branch_in_one_step_changes_nothing_in_another():
    @dala.kernel
    def first(x) -> dala.u8:
        if x > 100:
            return 0.3 * x
        return x

    @dala.kernel
    def second(s, x) -> dala.u8:
        return 0.3 * s + 0.7 * x

    fused, alone = fused_and_alone(first, second, IMAGE, "u8")
    assert np.array_equal(fused, alone)


def test_a_float_that_stood_between_pixels_is_rounded_as_by_itself():
    @dala.kernel
    def first(image: dala.Image):
        y, x = dala.position(2)
        return 0.3 * image[y, x + 1]

    @dala.kernel
    def second(image: dala.Image, other: dala.Image):
        return image.pixel + other.pixel * 0.7

    image = random.integers(0, 256, (64, 667, 4), np.uint8)
    fused, alone = fused_and_alone(first, second, image, "f32")
    assert np.array_equal(fused, alone)


def test_a_consumer_that_computes_what_its_producer_does_is_rounded_as_by_itself():
    @dala.kernel
    def third(x) -> dala.f32:
        return 0.3 * x

    @dala.kernel
    def both(s, x, y):
        return dala.u8(0.3 * x + 0.7 * y), s * 2.0

    x, y = (part.ravel() for part in (IMAGE, IMAGE[::-1].copy()))
    with compute.device("cpu"):
        sources = [compute.from_numpy(x), compute.from_numpy(y)]
        made = [compute.buffer_zeros(x.size, "u8"), compute.buffer_zeros(x.size, "f32")]
        between = compute.scratch(x.size, "f32")
        pipeline = compute.pipeline().add(third, sources[:1], between)
        pipeline.add(both, [between, *sources], made).run()
        assert np.array_equal(compute.read(made[0]), both(third(x), x, y)[0])


@pytest.mark.parametrize("between", ["f16", "f32", "f64"])
def test_sums_that_a_buffer_would_round_are_rounded_between_steps(between):
    @dala.kernel
    def across(x):
        i, j = dala.position(2)
        total = 0.0
        for k in range(11):
            total += x[i, j + k - 5]
        return total

    @dala.kernel
    def down(x, y) -> dala.u8:
        i, j = dala.position(2)
        total = 0.0
        for k in range(11):
            total += x[i + k - 5, j]
        return total * (1 / 121) + 0.0 * y[0, 0]

    image = random.integers(0, 256, (256, 512), np.uint8)
    fused, alone = fused_and_alone(across, down, image, between)
    assert np.array_equal(fused, alone)


def test_what_a_float_loses_on_purpose_is_lost(device):
    @dala.kernel
    def halves(x) -> dala.u8:
        return dala.f32(dala.f16(x * 1000.0)) / 1000.0

    x = np.array([60, 66, 200], np.uint8)
    assert halves(x).tolist() == [60, 255, 255]


def test_a_sum_beside_which_levels_are_lost_is_left_to_floats():
    @dala.kernel
    def steps(x) -> dala.u8:
        return 100.0 * ((0.01 * x + 8388608.0) - 8388608.0)

    with compute.device("cpu"):
        assert steps(np.array([0, 40, 60, 200], np.uint8)).tolist() == [0, 0, 100, 200]
