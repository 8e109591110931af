"""The WebGPU device against wgpu-py driven by hand: the same shaders, on the same adapter."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Self
from unittest.mock import patch

import numpy as np

import dala
from benchmarks import matmul_wgsl, tiled_wgsl
from benchmarks.harness import Comparison, Count, Row, seconds_per_call
from dala.devices import current_device, using
from dala.devices.webgpu.adapters import quiet
from dala.devices.webgpu.device import WebGpu
from dala.gpu import compute
from dala.runtime.kernels.specialization import specialized_task

HEIGHT, WIDTH = 1080, 1920
TRANSFER_BYTES = 64 << 20
RADIUS = 3
WEIGHTS = np.exp(-0.5 * (np.arange(-RADIUS, RADIUS + 1) / 1.5) ** 2)
TAPS = tuple(WEIGHTS / WEIGHTS.sum())
TILED_AMOUNT = 0.4
"""No sum of levels times this lies in the middle of two: so nobody rounds to another one."""
CREATIONS = ("buffer", "shader_module", "bind_group_layout", "compute_pipeline", "bind_group")


@dala.kernel
def blur(image: dala.Image):
    y, x = dala.position(2)
    total = dala.rgba(0.0, 0.0, 0.0, 0.0)
    for dy in range(2 * RADIUS + 1):
        for dx in range(2 * RADIUS + 1):
            total += image[y + dy - RADIUS, x + dx - RADIUS] * (TAPS[dy] * TAPS[dx])
    return total


@dala.kernel
def sharpen(image: dala.Image, amount: dala.f32):
    y, x = dala.position(2)
    around = image[y - 1, x] + image[y + 1, x] + image[y, x - 1] + image[y, x + 1]
    sharp = image.pixel + (image.pixel * 4.0 - around) * amount
    return dala.rgba(sharp.r, sharp.g, sharp.b, image.pixel.a)


@dala.kernel
def grayscale(image: dala.Image):
    gray = dala.luma(image.pixel)
    return dala.rgba(gray, gray, gray, image.pixel.a)


class Dispatch:
    """A kernel's shader with buffers of its own: all that wgpu needs to run it, made once.

    `buffers` are the inputs, then the output.
    """

    def __init__(
        self,
        kernel: compute.Kernel,
        like: Sequence[compute.Buffer],
        buffers: Sequence[Any],
        params: dict[str, float],
    ) -> None:
        import wgpu

        gpu = current_device().gpu
        *inputs, output = [(item.scalar, item.shape) for item in like]
        task = specialized_task(kernel.name, kernel.definition, tuple(inputs), (output,), (), ())
        runner = current_device().load(task)
        shader = runner.shader()
        arguments = gpu.create_buffer_with_data(
            data=shader.arguments.pack(task.domain, runner.sizes, list(params.values())),
            usage=wgpu.BufferUsage.UNIFORM,
        )
        bound = [arguments, buffers[-1], *buffers[:-1]]
        self._make(gpu, shader.text, bound, runner.groups)

    @classmethod
    def of_text(cls, gpu: Any, text: str, buffers: Sequence[Any], groups: Sequence[int]) -> Self:
        """A shader as text, on buffers in the order of its bindings."""
        made = cls.__new__(cls)
        made._make(gpu, text, buffers, groups)
        return made

    def _make(self, gpu: Any, text: str, buffers: Sequence[Any], groups: Sequence[int]) -> None:
        self.pipeline = gpu.create_compute_pipeline(
            layout="auto",
            compute={"module": gpu.create_shader_module(code=text), "entry_point": "main"},
        )
        self.group = gpu.create_bind_group(
            layout=self.pipeline.get_bind_group_layout(0),
            entries=[
                {"binding": i, "resource": {"buffer": item, "offset": 0, "size": item.size}}
                for i, item in enumerate(buffers)
            ],
        )
        self.groups = groups

    def encode(self, encoder: Any) -> None:
        """Add a pass of its own to what is encoded."""
        compute_pass = encoder.begin_compute_pass()
        compute_pass.set_pipeline(self.pipeline)
        compute_pass.set_bind_group(0, self.group)
        compute_pass.dispatch_workgroups(*self.groups)
        compute_pass.end()


def run_by_hand(dispatches: Sequence[Dispatch], gpu: Any = None) -> None:
    """All of them in one submission, waited for."""
    gpu = gpu or current_device().gpu
    encoder = gpu.create_command_encoder()
    for dispatch in dispatches:
        dispatch.encode(encoder)
    gpu.queue.submit([encoder.finish()])
    gpu.queue.on_submitted_work_done_sync()


def storage(data: np.ndarray) -> Any:
    """A buffer of wgpu-py that holds the array."""
    import wgpu

    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    return current_device().gpu.create_buffer_with_data(data=data, usage=usage)


def same_bytes(ours: compute.Buffer, by_hand: Any) -> None:
    theirs = current_device().gpu.queue.read_buffer(by_hand)
    np.testing.assert_array_equal(
        np.frombuffer(compute.read_binary(ours), np.uint8), np.frombuffer(theirs, np.uint8)
    )


STAGES: tuple[tuple[compute.Kernel, dict[str, float]], ...] = (
    (blur, {}),
    (sharpen, {"amount": 0.5}),
    (grayscale, {}),
)


def frames() -> list[np.ndarray]:
    """An image, then room for what each stage makes of it."""
    shape = (HEIGHT, WIDTH, 4)
    image = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
    return [image, *[np.zeros(shape, np.uint8) for _ in STAGES]]


def run_chain(buffers: Sequence[compute.Buffer]) -> None:
    for (kernel, params), source, target in zip(STAGES, buffers, buffers[1:], strict=False):
        compute.run_kernel(kernel, [source], target, params)
    compute.synchronize()


def image_chain() -> Comparison:
    ours = [compute.from_numpy(item) for item in frames()]
    peers = [storage(item) for item in frames()]
    dispatches = [
        Dispatch(kernel, ours[i : i + 2], peers[i : i + 2], params)
        for i, (kernel, params) in enumerate(STAGES)
    ]

    def check() -> None:
        assert compute.read(ours[-1]).std() > 0
        for mine, theirs in zip(ours, peers, strict=True):
            same_bytes(mine, theirs)

    return Comparison(
        "blur, sharpen, gray, 1080p : wgpu by hand",
        1.15,
        ours=lambda: run_chain(ours),
        peer=lambda: run_by_hand(dispatches),
        check=check,
    )


def tiled_chain() -> Comparison:
    """The chain of built-in filters in the tiles that dala finds, and in those of a programmer."""
    import wgpu

    with patch.dict(os.environ, DALA_TILES="1"), quiet():
        device = WebGpu(current_device().adapter)
    image, _, zeros, *_ = frames()
    with using(device):
        x, out = compute.from_numpy(image), compute.from_numpy(zeros)
        soft, sharp = (compute.scratch(image.shape, "u8") for _ in range(2))
        pipeline = compute.pipeline()
        pipeline.add("blur", [x], soft, {"radius": RADIUS})
        pipeline.add("sharpen", [soft], sharp, {"amount": TILED_AMOUNT})
        pipeline.add("grayscale", [sharp], out)
        size = device.gpu.create_buffer_with_data(
            data=np.array([HEIGHT, WIDTH], np.int32), usage=wgpu.BufferUsage.UNIFORM
        )
        buffers = [size, storage(zeros), storage(image)]
    text = tiled_wgsl.tiled_chain(TAPS[RADIUS:], TILED_AMOUNT)
    groups = (-(-WIDTH // tiled_wgsl.COLUMNS), -(-HEIGHT // tiled_wgsl.ROWS), 1)
    by_hand = Dispatch.of_text(device.gpu, text, buffers, groups)

    def run() -> None:
        pipeline.run()
        device.synchronize()

    def check() -> None:
        theirs = np.frombuffer(device.gpu.queue.read_buffer(buffers[1]), np.uint8)
        apart = np.abs(compute.read(out).ravel().astype(int) - theirs)
        assert theirs.std() > 0
        # A blurred level that is rounded to the other side is 1 + 4 · amount levels off at the end.
        assert (apart > 0).mean() < 1e-3
        assert apart.max() <= 1 + 4 * TILED_AMOUNT + 1

    return Comparison(
        "blur, sharpen, gray in tiles : WGSL by hand",
        1.1,
        ours=run,
        peer=lambda: run_by_hand([by_hand], device.gpu),
        check=check,
    )


def product(size: int) -> Comparison:
    """`matmul`, and the fastest of the kernels that are published for GPUs."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((size, size)).astype(np.float32) for _ in range(2))
    *inputs, out = [compute.from_numpy(item) for item in (a, b, np.zeros_like(a))]
    peers = [storage(item) for item in (a, b, np.zeros_like(a))]
    gpu = current_device().gpu
    by_hand = {
        name: Dispatch.of_text(gpu, *arguments(text(size), peers))
        for name, text in matmul_wgsl.KERNELS.items()
    }
    wanted = a.astype(np.float64) @ b
    for dispatch in by_hand.values():
        run_by_hand([dispatch])
        made = np.frombuffer(gpu.queue.read_buffer(peers[-1]), np.float32)
        np.testing.assert_allclose(made.reshape(size, size), wanted, rtol=1e-3, atol=1e-3)
    taken = {
        name: seconds_per_call(lambda dispatch=dispatch: run_by_hand([dispatch]), 2)
        for name, dispatch in by_hand.items()
    }
    fastest = min(taken, key=lambda name: taken[name])

    def run() -> None:
        compute.run_kernel("matmul", inputs, out)
        compute.synchronize()

    def check() -> None:
        np.testing.assert_allclose(compute.read(out), wanted, rtol=1e-3, atol=1e-3)

    return Comparison(
        f"matmul {size}³ : WGSL by hand",
        1.1,
        ours=run,
        peer=lambda: run_by_hand([by_hand[fastest]]),
        check=check,
        most_rounds=5,
        peer_name=fastest,
        others=tuple(by_hand),
    )


def arguments(given: tuple[str, Sequence[int]], buffers: Sequence[Any]) -> tuple[Any, ...]:
    """A text and its workgroups in the order in which a dispatch takes them."""
    text, groups = given
    return text, buffers, groups


def three_elements() -> Comparison:
    a, b, zeros = (np.array(data, np.float32) for data in ([1, 2, 3], [4, 5, 6], [0, 0, 0]))
    ours = [compute.from_numpy(item) for item in (a, b, zeros)]
    peers = [storage(item) for item in (a, b, zeros)]
    dispatch = Dispatch(compute.Kernel.lookup("elementwise_add"), ours, peers, {})
    *inputs, out = ours

    def run() -> None:
        compute.run_kernel("elementwise_add", inputs, out)
        compute.synchronize()

    return Comparison(
        "run_kernel on 3 elements, done : by hand",
        1.3,
        ours=run,
        peer=lambda: run_by_hand([dispatch]),
        check=lambda: same_bytes(out, peers[-1]),
        sample_s=0.02,
    )


def upload_and_read_back() -> Comparison:
    import wgpu

    data = np.random.default_rng(1).integers(0, 256, TRANSFER_BYTES, np.uint8)
    ours, peer = compute.from_numpy(np.zeros_like(data)), storage(np.zeros_like(data))
    gpu = current_device().gpu
    # At its best: queue.read_buffer makes a staging buffer each time, and takes twice as long.
    usage = wgpu.BufferUsage.COPY_DST | wgpu.BufferUsage.MAP_READ
    staging = gpu.create_buffer(size=TRANSFER_BYTES, usage=usage)

    def run() -> np.ndarray:
        compute.write(ours, data)
        return compute.read(ours)

    def by_hand() -> np.ndarray:
        gpu.queue.write_buffer(peer, 0, data)
        encoder = gpu.create_command_encoder()
        encoder.copy_buffer_to_buffer(peer, 0, staging, 0, TRANSFER_BYTES)
        gpu.queue.submit([encoder.finish()])
        staging.map_sync("READ_NOSYNC")
        back = np.array(np.frombuffer(staging.read_mapped(copy=False), np.uint8))
        staging.unmap()
        return back

    def check() -> None:
        np.testing.assert_array_equal(run(), data)
        np.testing.assert_array_equal(by_hand(), data)

    return Comparison(
        "upload and read 64 MiB : wgpu by hand", 1.2, ours=run, peer=by_hand, check=check
    )


def creations_in_a_second_run() -> Count:
    buffers = [compute.from_numpy(item) for item in frames()]
    run_chain(buffers)
    probe = [storage(item) for item in frames()[:2]]
    # Creations by hand are counted: else a count of 0 would say nothing.
    assert creations(lambda: Dispatch(grayscale, buffers[:2], probe, {})).total() >= len(STAGES)
    return Count(
        "shaders, pipelines, … made in a second run",
        0,
        lambda: creations(lambda: run_chain(buffers)).total(),
    )


def creations(work: Callable[[], object]) -> Counter[str]:
    """How many objects of each kind the work has wgpu make."""
    gpu, made = current_device().gpu, Counter[str]()
    with ExitStack() as watched:
        for kind in CREATIONS:
            method = f"create_{kind}"
            spy = watched.enter_context(patch.object(gpu, method, wraps=getattr(gpu, method)))
            watched.callback(lambda kind=kind, spy=spy: made.update({kind: spy.call_count}))
        work()
    return made


ROWS: dict[str, Callable[[], Row]] = {
    "webgpu-chain": image_chain,
    "webgpu-tiles": tiled_chain,
    "webgpu-matmul-256": partial(product, 256),
    "webgpu-matmul-512": partial(product, 512),
    "webgpu-matmul-1024": partial(product, 1024),
    "webgpu-call": three_elements,
    "webgpu-transfer": upload_and_read_back,
    "webgpu-made": creations_in_a_second_run,
}
"""Each is made and measured while the current device is a WebGPU one."""
