"""Models against ONNX Runtime with OpenCV before it, each in a process of its own."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.harness import Count, Duration, Result, quartiles
from benchmarks.peers import need
from benchmarks.start_up import printed_seconds
from dala.base.cache_folder import folder

SHARED = Path(__file__).parent.parent / "../shared"
CALLS = 10
"""Of either side at a time: the first ones find the caches as the other side has left them."""
SETTLED_S = 0.1
"""How long threads of the other side may look for more work before they sleep."""
LOADING = """
import time, numpy, dala.gpu.compute
start = time.perf_counter_ns()
from dala import ml
{call}
print((time.perf_counter_ns() - start) / 1e9)
"""


class Side:
    """A program that is asked, again and again, how long it takes for some calls."""

    def __init__(self, name: str, weights: Path, pixels: np.ndarray) -> None:
        with tempfile.TemporaryDirectory(prefix="dala-bench-") as folder:
            image, result = Path(folder) / "image.npy", Path(folder) / "result.npy"
            np.save(image, pixels)
            given = [name, str(weights), str(image), str(result)]
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.model_side", *given],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert self._answer() == "ready", f"{name} cannot be started"
            self.logits = np.load(result)

    def seconds(self) -> float:
        """How long a call takes now."""
        assert self._process.stdin is not None
        time.sleep(SETTLED_S)
        print(CALLS, file=self._process.stdin, flush=True)
        return float(self._answer())

    def stop(self) -> None:
        self._process.communicate()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def _compare(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Both see the same: OpenCV rounds to bytes, and does not average along one axis alone."""
    best, other = (set(np.argsort(logits[0])[-3:]) for logits in (ours, theirs))
    assert ours[0].argmax() == theirs[0].argmax(), "the two sides see something else"
    assert len(best & other) >= 2, f"the two sides see {best} and {other}"


@dataclass(frozen=True)
class Programs:
    """The same work done by two programs that take turns; the bar is the highest ratio."""

    work: str
    bar: float
    weights: Path
    pixels: np.ndarray
    sides: tuple[str, str] = ("ours", "opencv")
    compare: Callable[[np.ndarray, np.ndarray], None] = _compare

    def measure(self, rounds: int) -> Result:
        sides = [Side(name, self.weights, self.pixels) for name in self.sides]
        try:
            self.compare(*(side.logits for side in sides))
            for side in sides:
                side.seconds()
            taken = [[side.seconds() for side in sides] for _ in range(rounds)]
        finally:
            for side in sides:
                side.stop()
        low, ratio, high = quartiles([a / b for a, b in taken])
        ours, peer = (statistics.median(column) for column in zip(*taken, strict=True))
        return Result(self.work, ours, peer, ratio, self.bar, ratio <= self.bar, (low, high))


def weights() -> Path:
    """The weights of MobileNetV2: those beside this repository, else those that are kept."""
    beside = SHARED / "models/mobilenet_v2.onnx"
    return beside.resolve() if beside.exists() else _kept()


def _kept() -> Path:
    from dala.ml.catalog.entries import find
    from dala.ml.sources import fetch

    return fetch(find("mobilenet_v2"))


def photo() -> np.ndarray:
    """A photo of 451 × 300; where there is none, stripes that MobileNetV2 is as busy with."""
    from dala import media

    path = SHARED / "photos/chelsea.png"
    if path.exists():
        return np.ascontiguousarray(media.load(path)[..., :3])
    y, x = np.mgrid[:300, :451]
    return np.stack([x // 2 % 256, y % 256, (x ^ y) % 256], -1).astype(np.uint8)


def mobilenet(work: str, size: tuple[int, int] | None) -> Programs:
    need("cv2", "onnxruntime")
    import cv2

    pixels = photo()
    if size is not None:
        pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_CUBIC)
    return Programs(f"mobilenet_v2, {work} : OpenCV, ONNX Runtime", 1.05, weights(), pixels)


def loading() -> Duration:
    """From the cache where it is filled, else from a file, which is checked more thoroughly."""
    from dala.ml.catalog.entries import find
    from dala.ml.sources import store as kept

    need("onnxruntime")
    work, call = "load_model, warm cache", "ml.gpu.load_model('mobilenet_v2')"
    if kept.find(find("mobilenet_v2")) is None:
        work = "load_model, a file"
        call = f"ml.gpu.load_model({str(weights())!r}, like='mobilenet_v2')"
    program = LOADING.format(call=call)
    cache = str(folder() or "")
    return Duration(work, 0.300, partial(printed_seconds, ["-c", program], cache))


ROWS: dict[str, Callable[[], Programs | Duration | Count]] = {
    "mobilenet": partial(mobilenet, "451 × 300", None),
    "mobilenet-1080p": partial(mobilenet, "1080p", (1920, 1080)),
    "load-model": loading,
}
