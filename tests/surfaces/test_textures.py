"""Surfaces on WebGPU: textures that are filled, drawn and copied without leaving the device."""

import numpy as np
import pytest

from dala import gpu
from dala.devices import find_device
from dala.errors import DeviceLostError, LimitError
from dala.gpu import compute

WIDTHS = [64, 65]
"""Rows that can be copied as they are, and rows that have to be moved."""


@pytest.fixture
def opened(webgpu):
    """The device itself, which a test may lose: the next one gets another."""
    return find_device(webgpu)


@pytest.fixture
def mapped_bytes(webgpu, monkeypatch):
    """What the host was let look into, one entry for each time."""
    from wgpu.backends.wgpu_native import GPUBuffer

    sizes = []
    mapping = GPUBuffer.map_async

    def counted(self, mode, offset=0, size=None):
        sizes.append(self.size - offset if size is None else size)
        return mapping(self, mode, offset, size)

    monkeypatch.setattr(GPUBuffer, "map_async", counted)
    return sizes


@pytest.fixture
def submissions(opened, monkeypatch):
    """How many command buffers each submission had."""
    counts = []
    submit = opened.gpu.queue.submit

    def counted(command_buffers):
        counts.append(len(command_buffers))
        submit(command_buffers)

    monkeypatch.setattr(opened.gpu.queue, "submit", counted)
    return counts


def shown(width, height=48):
    surface = gpu.create_surface(width, height, kind="offscreen")
    return surface, compute.buffer_zeros((height, width, 4), "u8")


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_read_back_to_show_what_was_computed(mapped_bytes, width):
    surface, out = shown(width)
    for _ in range(2):
        compute.run_to_surface("generate_gradient", [], out, surface)
        gpu.present(surface)
    buffer = surface.buffer()
    compute.run_kernel("invert", [buffer], buffer)
    surface.show(buffer)
    gpu.clear(surface, 0.5)
    gpu.set_pixels(surface, out)
    compute.synchronize()
    assert sum(mapped_bytes) == 0
    assert (gpu.get_pixels(surface) == compute.read(out)).all()
    assert sum(mapped_bytes) >= 2 * width * 48 * 4


@pytest.mark.parametrize("width", WIDTHS)
def test_a_kernel_and_its_copy_to_the_texture_are_one_submission(submissions, width):
    surface, out = shown(width)
    compute.run_to_surface("generate_gradient", [], out, surface)
    submissions.clear()
    compute.run_to_surface("generate_gradient", [], out, surface)
    assert submissions == [1]


def test_what_is_asked_for_in_a_batch_is_done_in_order(opened):
    surface, out = shown(65)
    pixels = np.full((48, 65, 4), 7, np.uint8)
    with opened.batch():
        compute.run_to_surface("generate_gradient", [], out, surface)
        gpu.set_pixels(surface, pixels)
        first = surface.buffer()
        gpu.clear(surface, 1.0)
        second = surface.buffer()
        surface.show(out)
        gpu.clear(surface)
    assert (compute.read(first) == 7).all()
    assert (compute.read(second) == 255).all()
    assert not gpu.get_pixels(surface).any()
    assert compute.read(out).any()


def test_a_batch_that_only_clears_does_so(opened):
    surface, _ = shown(65)
    with opened.batch():
        gpu.clear(surface, 1.0)
    assert (gpu.get_pixels(surface) == 255).all()


def test_every_byte_survives_a_texture(opened):
    surface, _ = shown(256, 4)
    pixels = np.broadcast_to(np.arange(256, dtype=np.uint8)[None, :, None], (4, 256, 4)).copy()
    gpu.set_pixels(surface, compute.from_numpy(pixels))
    assert (gpu.get_pixels(surface) == pixels).all()
    for level in range(256):
        gpu.clear(surface, (level / 255,) * 4)
        assert (gpu.get_pixels(surface)[0, 0] == level).all()


def test_large_pictures_are_written_in_pieces_that_fit_together(opened):
    surface, _ = shown(1027, 1100)
    pixels = np.random.default_rng(3).integers(0, 256, (1100, 1027, 4), np.uint8)
    gpu.set_pixels(surface, pixels)
    assert (gpu.get_pixels(surface) == pixels).all()


def test_more_bytes_than_can_be_copied_are_refused(opened, monkeypatch):
    monkeypatch.setitem(opened.limits, "max-buffer-size", 65 * 48 * 4)
    with pytest.raises(LimitError, match=r"65 × 48 pixels take 24,576 bytes.*at most 12,480"):
        shown(65)


def test_a_surface_of_a_lost_device_is_refused_and_another_works(opened):
    surface, out = shown(65)
    opened.lose()
    for use in (
        lambda: gpu.get_pixels(surface),
        lambda: gpu.clear(surface),
        lambda: gpu.set_pixels(surface, bytes(65 * 48 * 4)),
        lambda: surface.show(out),
        lambda: compute.run_to_surface("generate_gradient", [], out, surface),
    ):
        with pytest.raises(DeviceLostError):
            use()
    gpu.destroy_surface(surface)
    surface, out = shown(65)
    compute.run_to_surface("generate_gradient", [], out, surface)
    assert gpu.get_pixels(surface).any()


def test_a_surface_that_was_lost_and_a_new_buffer_do_not_fit(opened):
    surface, _ = shown(65)
    opened.lose()
    out = compute.buffer_zeros((48, 65, 4), "u8")
    with pytest.raises(DeviceLostError, match="the surface was on webgpu, which was lost"):
        surface.show(out)


@pytest.mark.slow
def test_textures_work_through_opengl_too(webgpu):
    if "OpenGL" not in [info["api"] for info in compute.devices()[1:]]:
        pytest.skip("no OpenGL adapter")
    with compute.device("opengl"):
        surface, out = shown(65)
        compute.run_to_surface("generate_gradient", [], out, surface)
        assert gpu.get_pixels(surface).any()
        assert (gpu.get_pixels(surface) == compute.read(out)).all()
        gpu.clear(surface, (0.2, 0.4, 0.6, 0.8))
        assert (gpu.get_pixels(surface) == (51, 102, 153, 204)).all()
