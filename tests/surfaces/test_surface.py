"""Surfaces: pixels that are set, computed, cleared, resized, saved and given back."""

import logging
import sys

import numpy as np
import pytest

import dala
from dala import gpu, media
from dala.devices import CPU
from dala.errors import (
    ArgumentError,
    DeviceError,
    DtypeError,
    FreedError,
    KernelTimeoutError,
    LimitError,
    ShapeError,
    UnknownKernelError,
)
from dala.gpu import compute

SIZES = [(64, 48), (5, 3), (1, 1), (131, 7)]
"""Rows of an integer of 256 bytes, and others."""


def noise(width, height, seed=1):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 4), np.uint8)


def offscreen(width, height):
    return gpu.create_surface(width, height, kind="offscreen")


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_new_surface_is_transparent_black(device, width, height):
    surface = offscreen(width, height)
    pixels = gpu.get_pixels(surface)
    assert pixels.shape == (height, width, 4)
    assert pixels.dtype == np.uint8
    assert not pixels.any()
    assert (surface.width, surface.height, surface.device) == (width, height, device)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_pixels_that_are_set_are_got(device, width, height):
    surface, pixels = offscreen(width, height), noise(width, height)
    gpu.set_pixels(surface, pixels)
    assert (gpu.get_pixels(surface) == pixels).all()


def test_pixels_are_set_by_bytes_by_a_view_and_by_a_buffer(device):
    surface, pixels = offscreen(5, 3), noise(5, 3)
    given = {
        "bytes": (pixels.tobytes(), pixels),
        "bytes with gaps": (memoryview(pixels.repeat(2).tobytes())[::2], pixels),
        "view": (pixels[:, ::-1], pixels[:, ::-1]),
        "buffer": (compute.from_numpy(255 - pixels), 255 - pixels),
    }
    for name, (data, want) in given.items():
        gpu.set_pixels(surface, data)
        assert (gpu.get_pixels(surface) == want).all(), name


def test_pixels_that_were_got_are_a_copy(device):
    surface, pixels = offscreen(4, 2), noise(4, 2)
    gpu.set_pixels(surface, pixels)
    gpu.get_pixels(surface)[:] = 0
    pixels_before = pixels.copy()
    pixels[:] = 0
    assert (gpu.get_pixels(surface) == pixels_before).all()


@pytest.mark.parametrize(
    ("color", "levels"),
    [
        ((1.0, 0.5, 0.0), (255, 128, 0, 255)),
        ((0.2, 0.4, 0.6, 0.8), (51, 102, 153, 204)),
        ("#ff800040", (255, 128, 0, 64)),
        (0.25, (64, 64, 64, 255)),
    ],
)
def test_a_cleared_surface_has_one_color(device, color, levels):
    surface = offscreen(5, 3)
    gpu.clear(surface, color)
    assert (gpu.get_pixels(surface) == levels).all()
    gpu.clear(surface)
    assert not gpu.get_pixels(surface).any()


@pytest.mark.parametrize("color", ["rgb(300, 0, 0)", "reddish", "#ff80f", (2.0, 0.0, 0.0), None])
def test_what_is_no_color_is_refused(color):
    surface = offscreen(5, 3)
    with pytest.raises(ArgumentError, match="clear: color"):
        gpu.clear(surface, color)
    assert not gpu.get_pixels(surface).any()


# -- kernels -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "height"), [*SIZES, (1920, 64), (320, 200)])
def test_what_a_kernel_computes_is_in_the_output_and_on_the_surface(device, width, height):
    surface, out = offscreen(width, height), compute.buffer_zeros((height, width, 4), "u8")
    compute.run_to_surface("generate_gradient", [], out, surface)
    alone = compute.buffer_zeros((height, width, 4), "u8")
    compute.run_kernel("generate_gradient", [], alone)
    assert (compute.read(out) == compute.read(alone)).all()
    assert (gpu.get_pixels(surface) == compute.read(alone)).all()


@pytest.mark.parametrize("width", [96, 37])
def test_kernels_of_inputs_params_and_stages_are_shown(device, width):
    image = noise(width, 41)
    surface, out = offscreen(width, 41), compute.buffer_zeros((41, width, 4), "u8")
    for kernel, params in [("brightness", {"value": 0.1}), ("blur", {"radius": 2}), ("invert", {})]:
        compute.run_to_surface(kernel, [compute.from_numpy(image)], out, surface, params)
        alone = compute.buffer_zeros(image.shape, "u8")
        compute.run_kernel(kernel, [compute.from_numpy(image)], alone, params)
        assert (compute.read(out) == compute.read(alone)).all(), kernel
        assert (gpu.get_pixels(surface) == compute.read(alone)).all(), kernel


@dala.kernel(border="wrap")
def shifted(image: dala.Image):
    y, x = dala.position(2)
    return image[y - 1, x - 1]


def test_a_kernel_may_read_the_surface_that_it_is_shown_on(device):
    surface, pixels = offscreen(64, 300), noise(64, 300)
    out = compute.buffer_zeros((300, 64, 4), "u8")
    gpu.set_pixels(surface, pixels)
    for turn in range(1, 4):
        compute.run_to_surface(shifted, [surface.buffer()], out, surface)
        want = np.roll(pixels, (turn, turn), (0, 1))
        assert (gpu.get_pixels(surface) == want).all()
        assert (compute.read(out) == want).all()


def test_a_kernel_may_compute_in_place(device):
    surface, pixels = offscreen(64, 40), noise(64, 40)
    image = compute.from_numpy(pixels)
    compute.run_to_surface("invert", [image], image, surface)
    want = np.dstack([255 - pixels[..., :3], pixels[..., 3:]])
    assert (compute.read(image) == want).all()
    assert (gpu.get_pixels(surface) == want).all()


def test_a_kernel_may_replace_what_it_reads_elsewhere(device):
    surface, pixels = offscreen(64, 40), noise(64, 40)
    image = compute.from_numpy(pixels)
    compute.run_to_surface(shifted, [image], image, surface)
    want = np.roll(pixels, (1, 1), (0, 1))
    assert (compute.read(image) == want).all()
    assert (gpu.get_pixels(surface) == want).all()


@dala.kernel
def endless(image: dala.Image):
    y, _ = dala.position(2)
    turns = 0
    while turns < 1 or y > 0:
        turns += 1
    return dala.rgba(dala.f32(turns), 1.0, 1.0, 1.0)


@pytest.mark.slow
def test_a_kernel_that_does_not_end_leaves_the_surface_as_it_was(device):
    surface, pixels = offscreen(1, 2), noise(1, 2)
    gpu.set_pixels(surface, pixels)
    out = compute.buffer_zeros((2, 1, 4), "u8")
    with pytest.raises(KernelTimeoutError):
        compute.run_to_surface(endless, [compute.from_numpy(pixels)], out, surface)
    assert not compute.read(out).any()
    assert (gpu.get_pixels(surface) == pixels).all()


def test_a_surface_keeps_its_pixels_when_the_output_changes(device):
    surface, out = offscreen(16, 16), compute.buffer_zeros((16, 16, 4), "u8")
    compute.run_to_surface("generate_gradient", [], out, surface)
    before = gpu.get_pixels(surface)
    compute.write(out, np.zeros((16, 16, 4), np.uint8))
    assert before.any()
    assert (gpu.get_pixels(surface) == before).all()


def test_a_kernel_that_is_refused_leaves_the_surface_as_it_was(device):
    surface, pixels = offscreen(4, 4), noise(4, 4)
    gpu.set_pixels(surface, pixels)
    out = compute.buffer_zeros((4, 4, 4), "u8")
    with pytest.raises(UnknownKernelError, match="generate_gradient"):
        compute.run_to_surface("generate_gradientt", [], out, surface)
    with pytest.raises(ArgumentError, match="takes no parameters"):
        compute.run_to_surface("generate_gradient", [], out, surface, {"speed": 1})
    with pytest.raises(ArgumentError, match="0 inputs"):
        compute.run_to_surface("generate_gradient", [out], out, surface)
    assert (gpu.get_pixels(surface) == pixels).all()


@pytest.mark.parametrize(("width", "kernel", "most"), [(64, "invert", 0), (37, "invert", 1)])
def test_on_the_cpu_a_frame_is_copied_once_at_most(monkeypatch, width, kernel, most):
    copies = []
    copy = type(CPU).copy
    monkeypatch.setattr(type(CPU), "copy", lambda *given: copies.append(copy(*given)))
    with compute.device("cpu"):
        image = compute.from_numpy(noise(width, 300))
        surface, out = offscreen(width, 300), compute.buffer_zeros((300, width, 4), "u8")
        compute.run_to_surface(kernel, [image], out, surface)
        assert len(copies) <= most
        assert (gpu.get_pixels(surface) == compute.read(out)).all()


def test_a_profile_sees_the_kernel_of_a_surface(device):
    surface, out = offscreen(64, 16), compute.buffer_zeros((16, 64, 4), "u8")
    with compute.profile() as profile:
        compute.run_to_surface("generate_gradient", [], out, surface)
    assert "generate_gradient" in [record.name for record in profile.records]
    assert (gpu.get_pixels(surface) == compute.read(out)).all()


def test_a_buffer_of_a_surface_has_its_pixels_on_its_device(device):
    surface, pixels = offscreen(37, 11), noise(37, 11)
    gpu.set_pixels(surface, pixels)
    buffer = surface.buffer()
    assert (buffer.device, buffer.dtype, buffer.shape) == (device, "u8", (11, 37, 4))
    assert (compute.read(buffer) == pixels).all()
    compute.run_kernel("invert", [buffer], buffer)
    surface.show(buffer)
    assert (gpu.get_pixels(surface)[..., :3] == 255 - pixels[..., :3]).all()


def test_surfaces_of_the_parity_device_hold_pixels_too(webgpu):
    with compute.device("parity"):
        surface, out = offscreen(37, 11), compute.buffer_zeros((11, 37, 4), "u8")
        compute.run_to_surface("generate_gradient", [], out, surface)
        assert gpu.get_pixels(surface).any()
        assert (gpu.get_pixels(surface) == compute.read(out)).all()


# -- what does not fit -------------------------------------------------------------------------


@pytest.mark.parametrize("extent", [0, -1, 1.5, float("nan"), True, "64", None])
def test_what_is_no_size_is_refused(device, extent):
    for size in [(extent, 4), (4, extent)]:
        with pytest.raises(ShapeError, match="integer from 1 on"):
            offscreen(*size)
    surface = offscreen(4, 4)
    with pytest.raises(ShapeError, match="resize_surface"):
        gpu.resize_surface(surface, extent, 4)
    assert surface.shape == (4, 4, 4)


def test_more_pixels_than_the_device_can_show_are_refused(device):
    for size in [(1 << 20, 1), (1, 1 << 20)]:
        with pytest.raises(LimitError, match=r"is 1,048,576, but a surface on .* has at most"):
            offscreen(*size)


def test_sizes_of_numpy_are_sizes(device):
    surface = offscreen(np.int64(5), np.int32(3))
    assert (surface.width, surface.height) == (5, 3)
    assert type(surface.width) is int


def test_pixels_of_another_size_or_dtype_are_refused_with_both(device):
    surface = offscreen(4, 2)
    with pytest.raises(ShapeError, match=r"\(4, 2, 4\).*takes \(2, 4, 4\)"):
        gpu.set_pixels(surface, np.zeros((4, 2, 4), np.uint8))
    with pytest.raises(ShapeError, match=r"31 bytes.*32"):
        gpu.set_pixels(surface, bytes(31))
    with pytest.raises(DtypeError, match=r"float32.*u8"):
        gpu.set_pixels(surface, np.zeros((2, 4, 4), np.float32))
    with pytest.raises(ArgumentError, match="not list"):
        gpu.set_pixels(surface, [[0]])


def test_an_output_of_another_size_or_dtype_is_refused_with_both_before_it_is_computed(device):
    surface = offscreen(4, 2)
    small = compute.buffer_zeros((2, 3, 4), "u8")
    floats = compute.buffer_zeros((2, 4, 4), "f32")
    with pytest.raises(ShapeError, match=r"\(2, 3, 4\).*takes \(2, 4, 4\)"):
        compute.run_to_surface("generate_gradient", [], small, surface)
    with pytest.raises(DtypeError, match=r"are f32.*takes u8"):
        compute.run_to_surface("generate_gradient", [], floats, surface)
    with pytest.raises(ArgumentError, match="not ndarray"):
        surface.show(np.zeros((2, 4, 4), np.uint8))
    assert not compute.read(small).any()
    assert not compute.read(floats).any()


def test_a_buffer_of_another_device_is_refused_with_a_way_to_move_it(webgpu):
    surface = offscreen(4, 2)
    with compute.device("cpu"):
        elsewhere = compute.buffer_zeros((2, 4, 4), "u8")
    for show in (
        lambda: surface.show(elsewhere),
        lambda: gpu.set_pixels(surface, elsewhere),
        lambda: compute.run_to_surface("generate_gradient", [], elsewhere, surface),
    ):
        with pytest.raises(DeviceError, match=r"buffer is on cpu.*surface is on webgpu.*\.to\('w"):
            show()


def test_what_is_no_surface_is_refused():
    with pytest.raises(ArgumentError, match="a surface is needed, but ndarray was given"):
        gpu.present(np.zeros((2, 2, 4), np.uint8))


# -- its life ----------------------------------------------------------------------------------


def test_a_resized_surface_is_transparent_black_in_its_new_size(device):
    surface = offscreen(8, 8)
    gpu.clear(surface, 1.0)
    gpu.resize_surface(surface, 5, 3)
    assert gpu.get_pixels(surface).shape == (3, 5, 4)
    assert not gpu.get_pixels(surface).any()


def test_a_surface_that_is_resized_to_its_own_size_keeps_its_pixels(device):
    surface = offscreen(8, 8)
    gpu.clear(surface, 1.0)
    gpu.resize_surface(surface, 8, 8)
    assert (gpu.get_pixels(surface) == 255).all()


@pytest.mark.parametrize(
    "use",
    [
        lambda surface, out: gpu.get_pixels(surface),
        lambda surface, out: gpu.set_pixels(surface, bytes(16)),
        lambda surface, out: gpu.clear(surface),
        lambda surface, out: gpu.present(surface),
        lambda surface, out: gpu.resize_surface(surface, 3, 3),
        lambda surface, out: gpu.save(surface, "never.png"),
        lambda surface, out: surface.buffer(),
        lambda surface, out: surface.show(out),
        lambda surface, out: surface._repr_png_(),
        lambda surface, out: surface.on("key", print),
        lambda surface, out: compute.run_to_surface("generate_gradient", [], out, surface),
    ],
)
def test_a_destroyed_surface_is_refused(device, use):
    surface, out = offscreen(2, 2), compute.buffer_zeros((2, 2, 4), "u8")
    gpu.destroy_surface(surface)
    gpu.destroy_surface(surface)
    assert surface.destroyed
    assert surface.closed
    with pytest.raises(FreedError, match=r"<Surface 2 × 2 .* destroyed> cannot be used"):
        use(surface, out)


def test_a_destroyed_surface_gives_its_memory_back():
    with compute.device("cpu"):
        before = compute.memory().live_bytes
        surface = offscreen(640, 480)
        assert compute.memory().live_bytes == before + 640 * 480 * 4
        gpu.destroy_surface(surface)
        assert compute.memory().live_bytes == before


def test_a_saved_surface_is_loaded_with_the_same_pixels(device, tmp_path):
    surface, pixels = offscreen(13, 7), noise(13, 7)
    gpu.set_pixels(surface, pixels)
    gpu.save(surface, tmp_path / "shown.png")
    assert (media.load(tmp_path / "shown.png") == pixels).all()


def test_a_surface_is_a_png_for_notebooks(device):
    surface, pixels = offscreen(13, 7), noise(13, 7)
    gpu.set_pixels(surface, pixels)
    assert (media.load(surface._repr_png_()) == pixels).all()


class Inverted:
    """An overlay that inverts what is there."""

    def __init__(self):
        self.drawn = 0

    def draw(self, surface):
        self.drawn += 1
        buffer = surface.buffer()
        compute.run_kernel("invert", [buffer], buffer)
        surface.show(buffer)


@pytest.mark.parametrize(
    "look",
    [
        gpu.get_pixels,
        gpu.present,
        lambda surface: surface.buffer(),
        lambda surface: surface._repr_png_(),
    ],
)
def test_what_is_pending_is_drawn_once_before_anyone_looks(device, look):
    surface = offscreen(5, 3)
    surface.pending = overlay = Inverted()
    look(surface)
    assert overlay.drawn == 1
    assert (gpu.get_pixels(surface) == (255, 255, 255, 0)).all()


@pytest.mark.parametrize(
    "replace",
    [
        gpu.clear,
        lambda surface: gpu.set_pixels(surface, bytes(60)),
        lambda surface: gpu.resize_surface(surface, 4, 3),
    ],
)
def test_what_is_pending_is_forgotten_where_all_pixels_are_replaced(device, replace):
    surface = offscreen(5, 3)
    surface.pending = overlay = Inverted()
    replace(surface)
    assert not gpu.get_pixels(surface).any()
    assert overlay.drawn == 0


# -- where it is shown -------------------------------------------------------------------------


@pytest.fixture
def no_display(monkeypatch):
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux can be without a display by its environment")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)


def test_without_a_display_a_surface_is_off_screen_and_says_why(no_display, caplog):
    with caplog.at_level(logging.INFO, logger="dala"):
        surface = gpu.create_surface(4, 2)
    assert surface.kind == "offscreen"
    assert "there is no display: set DISPLAY" in surface.why
    assert [record.getMessage() for record in caplog.records] == [surface.why]


def test_a_window_without_a_display_is_refused_with_what_to_do(no_display):
    with pytest.raises(DeviceError, match=r"no display.*Xvfb.*kind='offscreen'"):
        gpu.create_surface(4, 2, kind="window")


def test_an_unknown_kind_is_refused_with_those_that_there_are():
    with pytest.raises(ArgumentError, match="'screen' is not one of auto, window, offscreen"):
        gpu.create_surface(4, 2, kind="screen")


def test_handlers_are_called_in_order_with_what_happened():
    surface, called = offscreen(4, 2), []
    surface.on("key", lambda event: called.append(("first", event)))
    surface.on("key", lambda event: called.append(("second", event)))
    surface.on("close", lambda event: called.append(("close", event)))
    surface.emit("key", "a")
    assert called == [("first", "a"), ("second", "a")]


def test_an_unknown_event_and_what_is_no_handler_are_refused():
    surface = offscreen(4, 2)
    with pytest.raises(ArgumentError, match="'scroll' is not one of resize, key, pointer, close"):
        surface.on("scroll", print)
    with pytest.raises(ArgumentError, match="a handler is a function"):
        surface.on("key", None)


def test_every_name_of_dala_gpu_is_found_and_documented():
    for name in dir(gpu):
        assert getattr(gpu, name).__doc__, f"gpu.{name} has no docstring"
    with pytest.raises(AttributeError, match="no attribute 'create_surfaces'"):
        _ = gpu.create_surfaces
