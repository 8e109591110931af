"""Models by dala's own kernels, on the CPU and on WebGPU, against ONNX Runtime on the CPU."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.harness import Count, Duration
from benchmarks.models import SHARED, Programs
from benchmarks.peers import Absent, need
from benchmarks.start_up import printed_seconds

MODELS = {
    "mobilenet_v2": (1, 3, 224, 224),
    "blazeface": (1, 128, 128, 3),
    "selfie_segmentation": (1, 256, 256, 3),
    "posenet": (1, 385, 385, 3),
    "deeplab": (1, 513, 513, 3),
}
"""The models beside this repository, and the shapes of their inputs."""
BAR, WEBGPU_BAR, MEMORY_BAR, CALLS_BAR = 1.5, 5.0, 120, 300
CLOSE = 1e-4
"""How far apart results may be, of the largest; places of the largest may differ where two are."""

ONCE = """
import time, numpy, sys, dala.gpu.compute
start = time.perf_counter_ns()
from pathlib import Path
from benchmarks import model_side
model_side.SIDES[sys.argv[1]](Path(sys.argv[2]), numpy.load(sys.argv[3]))
print((time.perf_counter_ns() - start) / 1e9)
"""
PEAK = (
    ONCE
    + """
import resource
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
)
CALLS = """
import sys, numpy
from pathlib import Path
from benchmarks import model_side
call, _ = model_side.kernels(Path(sys.argv[1]), numpy.load(sys.argv[2]))
call(), call()
count = 0
def profile(frame, event, argument):
    global count
    count += event == "call"
sys.setprofile(profile)
call()
sys.setprofile(None)
print(count)
"""


def weights(name: str) -> Path:
    return (SHARED / f"models/{name}.onnx").resolve()


def tensor(name: str) -> np.ndarray:
    """What the model is given: noise, which takes as long as anything else."""
    noise = np.random.default_rng(0).random(MODELS[name], np.float32)
    return (noise * 255).astype(np.uint8) if name == "deeplab" else noise


def compare(ours: np.ndarray, theirs: np.ndarray) -> None:
    apart = np.abs(ours - theirs) > CLOSE * max(float(np.abs(theirs).max()), CLOSE)
    assert apart.mean() < CLOSE, f"{apart.mean():.2%} of the results differ"


def against_onnx_runtime(name: str) -> Programs:
    _need(name)
    work, sides = f"{name}, own kernels : ONNX Runtime", ("kernels", "onnxruntime")
    return Programs(work, BAR, weights(name), tensor(name), sides, compare)


def on_webgpu(name: str) -> Programs:
    _need(name)
    work, sides = f"{name} on WebGPU : ONNX Runtime", ("webgpu", "onnxruntime")
    return Programs(work, WEBGPU_BAR, weights(name), tensor(name), sides, compare)


def first_run(name: str, *, cached: bool) -> Duration:
    """From loading the model to its first result."""
    _need(name)
    folder = tempfile.TemporaryDirectory(prefix="dala-bench-")
    given = Path(folder.name) / "input.npy"
    np.save(given, tensor(name))
    program = ["-c", ONCE, "kernels", str(weights(name)), str(given)]

    def sample() -> float:
        if cached:
            return printed_seconds(program, folder.name)
        with tempfile.TemporaryDirectory() as empty:
            return printed_seconds(program, empty)

    how = "from the disk cache" if cached else "nothing cached"
    return Duration(f"first run of {name}, {how}", 0.3 if cached else 2.0, sample)


def warm_calls(name: str) -> Count:
    _need(name)
    return Count(
        f"calls of Python in a warm run of {name}",
        CALLS_BAR,
        partial(_printed, CALLS, name),
    )


def peak_memory(name: str) -> Count:
    _need(name)

    def share() -> int:
        ours, theirs = (_printed(PEAK, name, side) for side in ("kernels", "onnxruntime"))
        return round(100 * ours / theirs)

    return Count(f"peak memory of {name}, percent of ONNX Runtime's", MEMORY_BAR, share)


def _printed(program: str, name: str, *given: str) -> int:
    """The last number that a program prints, which is given a model and an input."""
    with tempfile.TemporaryDirectory(prefix="dala-bench-") as folder:
        path = Path(folder) / "input.npy"
        np.save(path, tensor(name))
        command = [sys.executable, "-c", program, *given, str(weights(name)), str(path)]
        printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return int(printed.split()[-1])


def _need(name: str) -> None:
    need("onnxruntime")
    if not weights(name).exists():
        raise Absent(f"{weights(name)} is not there")


ROWS: dict[str, Callable[[], Programs | Duration | Count]] = {
    **{f"own-{name}": partial(against_onnx_runtime, name) for name in MODELS},
    **{f"webgpu-{name}": partial(on_webgpu, name) for name in MODELS},
    "first-run-mobilenet": partial(first_run, "mobilenet_v2", cached=False),
    "first-run-mobilenet-cached": partial(first_run, "mobilenet_v2", cached=True),
    "own-calls": partial(warm_calls, "mobilenet_v2"),
    "own-memory": partial(peak_memory, "mobilenet_v2"),
}
