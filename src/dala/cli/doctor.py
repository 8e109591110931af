"""`dala doctor`: what is installed, which devices there are, what is missing and how to get it."""

from __future__ import annotations

import importlib
import platform
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import typer

from dala import __version__
from dala.base.record import record
from dala.cli import options
from dala.cli.terminal import is_terminal, one_line, output, print_json, tell
from dala.errors import DalaError

State = Literal["ok", "missing", "broken"]
_STYLES = {"ok": "green", "missing": "yellow", "broken": "red"}
LEAST_PYTHON = (3, 11)
LIBRARIES = (
    # module, distribution, extra, purpose
    ("numpy", "NumPy", None, "arrays"),
    ("llvmlite", "llvmlite", None, "kernels on the CPU"),
    ("wgpu", "wgpu", "gpu", "kernels on GPUs"),
    ("PIL", "Pillow", "media", "pictures"),
    ("av", "PyAV", "media", "video"),
    ("pillow_heif", "pillow-heif", "heic", "pictures in HEIC"),
    ("cv2", "OpenCV", "camera", "cameras"),
    ("onnxruntime", "ONNX Runtime", "ml", "models"),
    ("onnx", "ONNX", "ml", "models that are converted"),
)
_DISTRIBUTIONS = {"PIL": "pillow"}


@record
class Finding:
    """The result of one check."""

    name: str
    state: State
    said: str
    remedy: str = ""


def doctor(context: typer.Context, json: options.Json = False) -> int:
    """Say what is installed, which devices work, what is missing and how to get it.

    The exit code is 0 unless something is broken; what is missing need not be there.
    """
    found = list(findings())
    broken = [item for item in found if item.state == "broken"]
    if json:
        print_json({"ok": not broken, "findings": [vars(item) for item in found]})
        return 1 if broken else 0
    console, colored = output(), is_terminal()
    wide = max(len(item.name) for item in found)
    for item in found:
        head = f"{item.state:<8}{item.name:<{wide}}  "
        if colored:
            console.print(item.state, style=_STYLES[item.state], end="")
            console.print(head[len(item.state) :] + item.said, soft_wrap=True)
        else:
            tell(head + item.said)
        if item.remedy:
            tell(f"{'':<{8 + wide}}  {item.remedy}")
    missing = [item for item in found if item.state == "missing"]
    print(f"\n{_conclusion(len(broken), len(missing))}")
    return 1 if broken else 0


def _conclusion(broken: int, missing: int) -> str:
    if broken:
        return f"{broken} {'things are' if broken > 1 else 'thing is'} broken."
    return "Everything is there." if not missing else "What is there works."


def findings() -> Iterator[Finding]:
    """Yields all findings, in order."""
    yield _python()
    yield Finding("dala", "ok", f"{__version__}, in {Path(__file__).parents[1]}")
    for module, name, extra, purpose in LIBRARIES:
        yield _library(module, name, extra, purpose)
    yield from _encoders()
    yield from _devices()
    yield _cache()


def _python() -> Finding:
    said = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info < LEAST_PYTHON:
        wanted = ".".join(map(str, LEAST_PYTHON))
        return Finding("Python", "broken", said, f"Install Python {wanted} or newer.")
    return Finding("Python", "ok", said)


def _library(module: str, name: str, extra: str | None, purpose: str) -> Finding:
    wanted = "dala-gpu" if extra is None else f'"dala-gpu[{extra}]"'
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name == module:
            state: State = "broken" if extra is None else "missing"
            return Finding(name, state, f"not installed; for {purpose}", f"pip install {wanted}")
        return _unusable(name, error, wanted)
    except Exception as error:
        return _unusable(name, error, wanted)
    return Finding(name, "ok", f"{_version(module, found)}, for {purpose}")


def _unusable(name: str, error: Exception, wanted: str) -> Finding:
    remedy = f"pip install --force-reinstall {wanted}"
    return Finding(name, "broken", f"cannot be loaded: {one_line(error)}", remedy)


def _version(module: str, found: Any) -> str:
    said = getattr(found, "__version__", None)
    if said is None:
        said = metadata.version(_DISTRIBUTIONS.get(module, module))
    return str(said)


def _encoders() -> Iterator[Finding]:
    try:
        import av
    except ImportError:
        return
    from dala.media.video.writing.encoding import CODECS

    absent = []
    for name, codec in CODECS.items():
        try:
            av.codec.Codec(codec.encoder, "w")
        except Exception:
            absent.append(name)
    there = ", ".join(name for name in CODECS if name not in absent)
    if absent:
        said = f"{there or 'none'}; not {', '.join(absent)}"
        yield Finding("encoders", "missing", said, "pip install --force-reinstall av")
    else:
        yield Finding("encoders", "ok", there)


def _devices() -> Iterator[Finding]:
    from dala.devices import current_device, devices
    from dala.devices.webgpu import adapters

    try:
        default = current_device().id
    except DalaError as error:
        default = ""
        yield Finding("default device", "broken", one_line(error), "Change or unset DALA_DEVICE.")
    for info in devices():
        mark = ", the default" if info["id"] == default else ""
        said = f"{info['name']} ({info['kind']}){mark}"
        trouble = _trouble(info["id"])
        if trouble:
            yield Finding(info["id"], "broken", f"{said}: {trouble}", "Update its driver.")
        else:
            yield Finding(info["id"], "ok", said)
    try:
        there = adapters.CATALOG.adapters()
    except DalaError:
        return  # wgpu was reported above
    if not there:
        remedy = "Install the driver of your GPU"
        if sys.platform.startswith("linux"):
            remedy += "; apt install mesa-vulkan-drivers has one that needs none"
        yield Finding("adapters", "missing", "WebGPU finds no GPU and no driver", f"{remedy}.")


def _trouble(device: str) -> str:
    """Returns what goes wrong when a device adds two numbers, or an empty string."""
    from dala.gpu import compute

    try:
        with compute.device(device):
            a, b = (compute.buffer([value], (1,), "f32") for value in (2.0, 3.0))
            out = compute.buffer_zeros((1,), "f32")
            compute.add(a, b, out)
            found = compute.read_list(out)
    except (DalaError, OSError) as error:
        return one_line(error)
    return "" if found == [5.0] else f"2 + 3 is {found[0]} there"


def _cache() -> Finding:
    from dala.base.cache_folder import folder
    from dala.devices.cpu.object_cache import fault_of

    where = folder()
    if where is None:
        return Finding("cache", "ok", "turned off by DALA_CACHE_DIR")
    if fault := fault_of(where):
        remedy = "Run chmod go-w on it, or set DALA_CACHE_DIR."
        return Finding("cache", "missing", f"{where} is not used: {fault}", remedy)
    try:
        files = [item.stat().st_size for item in where.rglob("*") if item.is_file()]
    except OSError as error:
        return Finding("cache", "missing", f"{where}: {error.strerror}", "Set DALA_CACHE_DIR.")
    size = f"{sum(files) / 1e6:.1f} MB" if files else "empty"
    return Finding("cache", "ok", f"{where}, {size}")
