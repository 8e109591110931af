"""What showing costs: a kernel to a surface, against its parts driven by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.harness import Comparison, Row
from benchmarks.webgpu import Dispatch, storage
from dala import gpu
from dala.devices import current_device
from dala.gpu import compute

SHAPE = HEIGHT, WIDTH, _ = 1080, 1920, 4
KERNEL = "generate_gradient"


def on_the_cpu() -> Comparison:
    surface = gpu.create_surface(WIDTH, HEIGHT, kind="offscreen")
    out, alone = (compute.buffer_zeros(SHAPE, "u8") for _ in range(2))

    def check() -> None:
        want = compute.read(alone)
        assert want.std() > 0
        np.testing.assert_array_equal(compute.read(out), want)
        np.testing.assert_array_equal(gpu.get_pixels(surface), want)

    return Comparison(
        "gradient to a surface, 1080p : kernel alone",
        1.2,
        ours=lambda: compute.run_to_surface(KERNEL, [], out, surface),
        peer=lambda: compute.run_kernel(KERNEL, [], alone),
        check=check,
        sample_s=0.02,
    )


def on_webgpu() -> Comparison:
    import wgpu

    surface = gpu.create_surface(WIDTH, HEIGHT, kind="offscreen")
    out = compute.buffer_zeros(SHAPE, "u8")
    device = current_device().gpu
    by_hand = storage(np.zeros(SHAPE, np.uint8))
    texture = device.create_texture(
        size=(WIDTH, HEIGHT, 1),
        format="rgba8unorm",
        usage=wgpu.TextureUsage.COPY_DST | wgpu.TextureUsage.COPY_SRC,
    )
    dispatch = Dispatch(compute.Kernel.lookup(KERNEL), [out], [by_hand], {})
    layout = {"offset": 0, "bytes_per_row": WIDTH * 4, "rows_per_image": HEIGHT}
    size = (WIDTH, HEIGHT, 1)

    def run() -> None:
        compute.run_to_surface(KERNEL, [], out, surface)
        compute.synchronize()

    def run_by_hand() -> None:
        encoder = device.create_command_encoder()
        dispatch.encode(encoder)
        encoder.copy_buffer_to_texture({"buffer": by_hand, **layout}, {"texture": texture}, size)
        device.queue.submit([encoder.finish()])
        device.queue.on_submitted_work_done_sync()

    def check() -> None:
        raw = device.queue.read_texture({"texture": texture}, layout, size)
        want = np.frombuffer(raw, np.uint8).reshape(SHAPE)
        assert want.std() > 0
        np.testing.assert_array_equal(compute.read(out), want)
        np.testing.assert_array_equal(gpu.get_pixels(surface), want)

    return Comparison(
        "gradient to a texture, 1080p : wgpu by hand",
        1.1,
        ours=run,
        peer=run_by_hand,
        check=check,
        sample_s=0.02,
    )


ROWS: dict[str, Callable[[], Row]] = {
    "surface-cpu": on_the_cpu,
    "surface-webgpu": on_webgpu,
}
ON_WEBGPU = ("surface-webgpu",)
"""Those that are made and measured while the current device is a WebGPU one."""
