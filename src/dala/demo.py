"""The demo: kernels, then a video generated and filtered, on the current device."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import dala
from dala.errors import FileError
from dala.gpu import compute
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.kernel import Kernel

_SHADES = " .:-=+*#%@"
_ROWS, _COLUMNS = 20, 64
_LARGE = 1 << 22
CLIP, RESULT = "clip.mp4", "out.mp4"


@dala.kernel
def mandelbrot(steps: dala.s32) -> Any:
    """How soon each point of the plane escapes, as 0..1."""
    y, x = dala.position(2)
    rows, columns = dala.shape(2)
    cr = -2.2 + 3.2 * (x + 0.5) / columns
    ci = -1.2 + 2.4 * (y + 0.5) / rows
    zr, zi, turn = 0.0, 0.0, 0
    while turn < steps and zr * zr + zi * zi < 4.0:
        zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
        turn += 1
    return turn / steps


@dala.kernel(border="mirror")
def smooth(x: Any) -> Any:
    """The mean of the 3×3 window around each element."""
    i, j = dala.position(2)
    return sum(x[i + di - 1, j + dj - 1] for di in range(3) for dj in range(3)) / 9.0


def run(folder: Path | None) -> Iterator[str]:
    """Runs the demo, and yields its lines; videos go into the folder, or are left out."""
    info = compute.device_info()
    yield f"dala {info['version']} on {info['name']} ({info['backend']}, {info['kind']})"
    yield ""
    yield from _vectors()
    yield from _picture()
    yield from _speed()
    if folder is not None:
        yield from _video(folder)


def _vectors() -> Iterator[str]:
    a = compute.buffer([1.0, 2.0, 3.0], (3,), "f32")
    b = compute.buffer([4.0, 5.0, 6.0], (3,), "f32")
    out = compute.buffer_zeros((3,), "f32")
    compute.run_kernel("elementwise_add", [a, b], out)
    yield f"[1, 2, 3] + [4, 5, 6] = {compute.read_list(out)}   built-in kernel, {out!r}"
    compute.free_many([a, b, out])


def _picture() -> Iterator[str]:
    yield "a kernel written in Python, smoothed by another:"
    shape = (_ROWS, _COLUMNS)
    with compute.buffer_zeros(shape, "f32") as sharp, compute.buffer_zeros(shape, "f32") as soft:
        compute.run_kernel(mandelbrot, [], sharp, {"steps": 60})
        compute.run_kernel(smooth, [sharp], soft)
        for row in compute.read(soft):
            yield "    " + "".join(_SHADES[int(value * (len(_SHADES) - 1))] for value in row)


def _speed() -> Iterator[str]:
    x = compute.from_numpy(np.linspace(0.0, 1.0, _LARGE, dtype=np.float32))
    out = compute.buffer_zeros((_LARGE,), "f32")
    first = _seconds(smoothstep, x, out)
    again = min(_seconds(smoothstep, x, out) for _ in range(5))
    expected = np.asarray(x)
    expected = expected * expected * (3.0 - 2.0 * expected)
    worst = float(np.abs(np.asarray(out) - expected).max())
    yield (
        f"{_LARGE:,} elements: {first * 1e3:.1f} ms the first time (compiled, or from the cache), "
        f"then {again * 1e3:.2f} ms; largest difference from NumPy {worst:.1e}"
    )
    compute.free_many([x, out])


def _video(folder: Path) -> Iterator[str]:
    if find_spec("av") is None or find_spec("PIL") is None:
        yield 'for video: pip install "dala-gpu[media]"'
        return
    from dala import media
    from dala.media.showcase.clip import write_clip

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be made: {error.strerror}.") from error
    clip, out = folder / CLIP, folder / RESULT
    yield f"a clip with sound, written to {clip}, and then:"
    write_clip(clip)
    yield f"    dala process {clip} {out} -f blur:radius=3,sigma=1.5 -f sharpen:amount=0.5"
    start = time.perf_counter()
    filters = [("blur", {"radius": 3, "sigma": 1.5}), ("sharpen", {"amount": 0.5})]
    done = media.transcode(clip, out, filters)
    rate = done.frames / (time.perf_counter() - start)
    width, height = done.size
    yield f"{out}: {done.frames} frames of {width} × {height}, {rate:.0f} in a second"


@dala.kernel
def smoothstep(x: Any) -> Any:
    """The cubic that rises from 0 to 1 with flat ends."""
    return x * x * (3.0 - 2.0 * x)


def _seconds(kernel: Kernel, x: Buffer, out: Buffer) -> float:
    start = time.perf_counter()
    compute.run_kernel(kernel, [x], out)
    compute.synchronize()
    return time.perf_counter() - start
