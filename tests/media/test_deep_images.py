"""Every filter on images of 16 bits, u16 and f16: what it makes of f32, rounded once."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala import errors
from dala.gpu import compute
from dala.images.drawing import Drawing
from dala.images.drawing_renderer import drawn
from dala.kernels.image.temporal import mean_stages
from dala.media import gpu

SIZE = (41, 52)
SHAPES = {"gray": SIZE, "rgb": (*SIZE, 3), "rgba": (*SIZE, 4)}
WHITE = 65535
CURVE = np.linspace(0, 1, 17)[:, None] ** np.array([0.5, 1.0, 2.0])
CUBE = np.random.default_rng(9).random((5, 5, 5, 3))
FILTERS = {
    "beauty": {},
    "bilateral": {"radius": 2},
    "blur": {"radius": 3},
    "box_blur": {"radius": 2},
    "brightness": {"value": 0.21},
    "chroma_key": {"color": "#20c040"},
    "color_matrix": {"matrix": [[0.5, 0.25, 0.25], [0.1, 0.8, 0.1], [0.0, 0.3, 0.6]]},
    "contrast": {"value": 0.3},
    "crop": {"x": 3, "y": 5, "width": 20, "height": 11},
    "denoise": {"strength": 0.4},
    "dilate": {"radius": 2},
    "edge_detect": {},
    "erode": {"radius": 2},
    "exposure": {"stops": 0.7},
    "flip": {"direction": "horizontal"},
    "gamma": {"value": 2.2},
    "grayscale": {},
    "hdr": {"exposure": 1.5},
    "hue": {"degrees": 40.0},
    "invert": {},
    "letterbox": {"size": (64, 64)},
    "lut": {"table": CURVE},
    "median": {"radius": 2},
    "resize": {"size": (33, 57)},
    "rotate": {"degrees": 17.0},
    "saturation": {"value": 0.4},
    "sepia": {"intensity": 0.7},
    "sharpen": {"amount": 0.6},
    "threshold": {"value": 0.4},
    "unsharp": {"radius": 2},
    "vignette": {},
    "warp_affine": {"matrix": [[0.9, 0.1, 2.0], [-0.1, 1.1, 1.0]]},
    "white_balance": {"temperature": 5000.0},
}
VARIANTS = [
    *FILTERS.items(),
    ("lut", {"table": CUBE}),
    ("lut", {"table": CUBE, "interpolation": "trilinear"}),
    ("blur", {"radius": 3, "premultiply": True}),
    ("box_blur", {"radius": 12}),
    ("bilateral", {"radius": 9, "sigma_space": 4.0}),
    ("flip", {"direction": "vertical"}),
    ("median", {"radius": 1}),
    *(("resize", {"size": (26, 20), "method": name}) for name in ("nearest", "area")),
    *(("resize", {"size": (90, 70), "method": name}) for name in ("bicubic", "lanczos")),
    *(("erode", {"radius": 1, "border": name}) for name in ("mirror", "zero", "wrap")),
]


def picture(shape: tuple[int, ...], seed: int = 1) -> np.ndarray:
    """Levels of u16: a soft picture with noise, black and white in it."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[0], : shape[1]]
    light = 0.5 + 0.4 * np.sin(y / 7 + seed) * np.cos(x / 9)
    light = light if len(shape) == 2 else light[..., None] * random.uniform(0.6, 1.0, shape[2])
    noisy = light + random.normal(0, 0.03, shape)
    return np.rint(noisy.clip(0, 1) * WHITE).astype(np.uint16)


def colored(name: str, image: np.ndarray) -> np.ndarray:
    """The image, with colors where a filter takes no other."""
    return np.stack([image] * 3, -1) if name == "chroma_key" and image.ndim == 2 else image


def unit(levels: np.ndarray) -> np.ndarray:
    return (levels / np.float64(WHITE)).astype(np.float32)


def apart(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """How many levels of 65535 an image is away from one of f32."""
    assert got.shape == want.shape
    return np.abs(got.astype(np.float64) - np.rint(want.astype(np.float64).clip(0, 1) * WHITE))


def test_every_filter_is_tried():
    models = {"detect", "background_blur", "background_replace"}
    others = {"blend", "overlay", "convert"}
    assert sorted(FILTERS.keys() | models | others) == sorted(gpu.filters())


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize(
    ("name", "params"), VARIANTS, ids=[f"{n}-{i}" for i, (n, _) in enumerate(VARIANTS)]
)
def test_a_filter_of_u16_is_that_of_f32_to_a_level_of_65535(device, name, params, kind):
    image = colored(name, picture(SHAPES[kind]))
    given = image.copy()
    got, want = (gpu.apply_filter(item, name, **params) for item in (image, unit(image)))
    assert got.dtype == np.uint16
    assert apart(got, want).max() <= 1
    assert np.array_equal(image, given)


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_of_f16_is_that_of_f32_rounded(device, name, kind):
    image = unit(colored(name, picture(SHAPES[kind]))).astype(np.float16)
    got, want = (
        gpu.apply_filter(item, name, **FILTERS[name]) for item in (image, image.astype(np.float32))
    )
    assert got.dtype == np.float16
    np.testing.assert_allclose(got.astype(np.float32), want, rtol=2**-10, atol=2**-12)


def weighed(image: np.ndarray, radius: int, sigma: float) -> np.ndarray:
    """A Gaussian blur in f64, tap by tap, with the edge repeated."""
    taps = np.arange(-radius, radius + 1)
    weights = np.exp(-((taps / sigma) ** 2) / 2)
    weights /= weights.sum()
    for axis in (0, 1):
        size = image.shape[axis]
        rows = [np.take(image, np.clip(np.arange(size) + k, 0, size - 1), axis) for k in taps]
        image = sum(row * weight for row, weight in zip(rows, weights, strict=True))
    return image


def test_a_wide_blur_of_u16_is_exact_to_a_level_of_65535(device):
    image = picture((150, 160, 4))
    exact = image / np.float64(WHITE)
    want = weighed(exact, 60, 25.0)
    got = gpu.blur(image, radius=60, sigma=25.0)
    assert apart(got, want).max() <= 1
    sharper = gpu.unsharp(image, radius=60, sigma=25.0, amount=1.0)
    assert apart(sharper, 2 * exact - want).max() <= 1
    alpha = exact[..., 3:]
    colors = weighed(np.concatenate([exact[..., :3] * alpha, alpha], 2), 60, 25.0)
    want = np.concatenate([colors[..., :3] / colors[..., 3:], colors[..., 3:]], 2)
    assert apart(gpu.blur(image, radius=60, sigma=25.0, premultiply=True), want).max() <= 1


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("mode", ["normal", "multiply", "screen", "overlay", "soft_light", "hue"])
def test_layers_of_u16_are_composed_as_those_of_f32(device, mode, kind):
    below, above = picture(SHAPES[kind]), picture(SHAPES["rgba"], seed=2)
    got = gpu.blend(below, above, mode=mode, alpha=0.6)
    want = gpu.blend(unit(below), unit(above), mode=mode, alpha=0.6)
    assert apart(got, want).max() <= 1
    got = gpu.overlay(below, above[:20, :30], x=5, y=7)
    assert apart(got, gpu.overlay(unit(below), unit(above[:20, :30]), x=5, y=7)).max() <= 1
    mixed = gpu.overlay(below, (above[:20, :30] // 257).astype(np.uint8), x=5, y=7)
    assert mixed.dtype == np.uint16


def test_backgrounds_of_u16_are_blurred_and_replaced_by_a_mask(device):
    image, other = picture(SHAPES["rgb"]), picture(SHAPES["rgb"], seed=2)
    mask = unit(picture(SIZE, seed=3))
    for name, more in (("background_blur", []), ("background_replace", [other])):
        kernel = compute.Kernel.lookup(name)
        got = kernel(image, *more, mask)
        want = kernel(unit(image), *map(unit, more), mask)
        assert got.dtype == np.uint16
        assert apart(got, want).max() <= 1


def test_formats_of_u16_are_reordered_and_reduced(device):
    image = picture(SHAPES["rgb"])
    swapped = gpu.convert(image, "rgb", "bgra")
    assert np.array_equal(swapped[..., :3], image[..., ::-1])
    assert (swapped[..., 3] == WHITE).all()
    convert = compute.Kernel.lookup("convert")
    planes = [
        convert(item, **{"from": "rgb", "to": "yuv420p", "dtype": "u8"})
        for item in (image[:40], unit(image[:40]))
    ]
    assert np.abs(planes[0].astype(int) - planes[1].astype(int)).max() <= 1


def test_a_threshold_of_u16_tells_levels_apart_that_f32_does_not(device):
    levels = np.array([[26213, 26214, 26215]], np.uint16)
    image = np.repeat(levels[..., None], 3, 2)
    assert gpu.threshold(image, 26214 / WHITE)[0, :, 0].tolist() == [0, 0, WHITE]
    assert gpu.threshold(levels, 26214 / WHITE)[0].tolist() == [0, 0, WHITE]


def test_an_inverted_image_of_u16_is_exact(device):
    image = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    assert np.array_equal(gpu.invert(image), WHITE - image)
    assert np.array_equal(
        gpu.invert(image.reshape(64, 256, 4)[..., :3])[..., 0],
        WHITE - image.reshape(64, 256, 4)[..., 0],
    )


def test_chains_and_frames_keep_sixteen_bits(device):
    image = picture(SHAPES["rgba"])
    chain = [("blur", {"radius": 2}), "invert", ("contrast", {"value": 0.2})]
    got, want = gpu.filter_chain(image, chain), gpu.filter_chain(unit(image), chain)
    assert got.dtype == np.uint16
    assert apart(got, want).max() <= 2  # each of the three is rounded
    with gpu.start_pipeline(SIZE[1], SIZE[0]) as context:
        assert gpu.process_frame(context, image, ["invert"]).dtype == np.uint16


@dala.kernel
def levels_up(image: dala.Image):
    return image.levels.pixel + 300


@dala.kernel(border="mirror")
def between(image: dala.Image):
    y, x = dala.position(2)
    return image.sample(dala.f32(y) + 0.5, dala.f32(x) - 0.25)


@dala.kernel
def shade(image: dala.Image):
    return dala.luma(image.pixel)


def test_a_kernel_reads_levels_and_samples_of_u16(device):
    for kind, shape in SHAPES.items():
        image = picture(shape)
        raised = levels_up(image)
        assert np.array_equal(raised, np.minimum(image.astype(int) + 300, WHITE)), kind
        assert apart(between(image), between(unit(image))).max() <= 1, kind
    gray = shade(picture(SHAPES["rgb"]), dtype="u16")
    assert apart(gray, shade(unit(picture(SHAPES["rgb"])))).max() <= 1


def test_levels_of_u16_are_stored_in_other_dtypes_by_their_share_of_white(device):
    image = np.array([[0, 257, 32896, WHITE - 300]], np.uint16)
    as_bytes = levels_up(image, dtype="u8")
    assert as_bytes.tolist() == np.rint((image + 300.0) / 257)[:1].astype(int).tolist()
    assert np.allclose(levels_up(image, dtype="f32"), (image + 300.0) / WHITE, atol=1e-6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "uint64", "int32", "float64"])
def test_images_of_other_dtypes_are_refused(dtype):
    image = np.zeros((4, 5, 3), dtype)
    with pytest.raises(
        errors.DtypeError, match=r"u8 in 0\.\.255, u16 in 0\.\.65535, f32 in 0\.\.1 or f16"
    ):
        gpu.invert(image)
    with pytest.raises(errors.ShapeError, match="of u8, u16, f32 or f16"):
        shade(image)


def test_shapes_are_drawn_on_u16_as_on_f32(device):
    drawing = Drawing()
    drawing.fill_circle(20, 20, 9, "#ff8000")
    drawing.draw_round_rect(3, 25, 40, 12, 4, "#ffffff80", 2)
    drawing.draw_image(picture(SHAPES["rgba"], seed=4)[:9, :9], 30, 5, 12, 12, 0.5)
    for shape in SHAPES.values():
        image = picture(shape)
        assert apart(drawn(image, drawing), drawn(unit(image), drawing)).max() <= 1


def test_a_tensor_of_u16_is_that_of_f32(device):
    image = picture(SHAPES["rgb"])
    preprocess = compute.Kernel.lookup("preprocess")
    for fit in ("stretch", "letterbox"):
        got = preprocess(image, size=(24, 24), fit=fit, normalize=True)
        want = preprocess(unit(image), size=(24, 24), fit=fit, normalize=True)
        assert np.allclose(got, want, atol=1e-5)


def test_the_mean_of_frames_of_u16_is_exact_and_ties_go_up(device):
    frames = np.random.default_rng(6).integers(0, 65536, (9, 7, 11), dtype=np.uint16)
    for count in (2, 3, 9):
        output = compute.buffer_zeros((7, 11), "u16")
        for stage in mean_stages([*map(compute.from_numpy, frames[:count])], output):
            stage.kernel.run(stage.inputs, stage.output, stage.params)
        want = np.floor(frames[:count].astype(np.int64).sum(0) / count + 0.5)
        assert np.array_equal(compute.read(output), want)
