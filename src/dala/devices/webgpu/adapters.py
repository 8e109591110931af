"""Enumerates WebGPU adapters, best first, and opens devices on them."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dala.base.record import record
from dala.errors import DeviceError

if TYPE_CHECKING:
    from dala.devices.webgpu.device import WebGpu

FEATURES = ("shader-f64", "shader-int64", "shader-f16", "subgroup", "timestamp-query")
"""The features that kernels and profiles use if an adapter has them."""
_KINDS = ("DiscreteGPU", "IntegratedGPU", "Unknown", "CPU")
_SECOND_CHOICE = ("OpenGL", "OpenGLES")
_GPU_NODES = ("dri/render*", "nvidia*", "dxg", "kgsl*", "mali*")


@record
class Adapter:
    """An adapter: its facts, and wgpu's handle."""

    id: str
    name: str
    api: str
    driver: str
    hardware: bool
    limits: dict[str, int]
    features: tuple[str, ...]
    handle: Any

    def info(self) -> dict[str, Any]:
        """Returns the facts as `compute.devices()` lists them."""
        limits = self.limits
        return {
            "id": self.id,
            "name": self.name,
            "backend": "webgpu",
            "kind": self.api if self.hardware else f"{self.api}, in software",
            "api": self.api,
            "driver": self.driver,
            "gpu": self.hardware,
            "hardware": self.hardware,
            "has_f64": "shader-f64" in self.features,
            "has_s64": "shader-int64" in self.features,
            "max_buffer_bytes": largest_buffer(limits),
            "max_shared_bytes": limits["max-compute-workgroup-storage-size"],
            "max_group_threads": limits["max-compute-invocations-per-workgroup"],
            "features": list(self.features),
        }


class AdapterCatalog:
    """The adapters that were found, and the devices opened on them, by id.

    They belong to the process that found them: in a forked child they only tell what exists.
    Nothing here waits for a lock in such a child, since nobody would release it.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._found: tuple[Adapter, ...] | None = None
        self._finder_pid = 0
        self._opened: dict[str, WebGpu] = {}

    def adapters(self) -> tuple[Adapter, ...]:
        """Returns all adapters, best first; raises DeviceError if wgpu cannot be used."""
        if self._found is None:
            self._check_process("WebGPU")
            with self._lock:
                if self._found is None:
                    self._finder_pid = os.getpid()
                    handles = sorted(_enumerated(), key=_rank)
                    self._found = tuple(_described(i, each) for i, each in enumerate(handles))
        return self._found

    def device(self, adapter: Adapter) -> WebGpu:
        """Returns the adapter's device, opened on first use and again after a loss."""
        from dala.devices.webgpu.device import WebGpu
        from dala.devices.webgpu.opengl import OpenGl

        self._check_process(adapter.id)
        with self._lock:
            known = self._opened.get(adapter.id)
            if known is None or known.lost:
                fresh = adapter if known is None else self._again(adapter)
                with quiet():
                    kind = OpenGl if fresh.api == "OpenGL" else WebGpu
                    known = self._opened[adapter.id] = kind(fresh)
            return known

    def _again(self, lost: Adapter) -> Adapter:
        """Returns the adapter as it is now, after its device was lost."""
        self._found = None
        for adapter in self.adapters():
            if (adapter.id, adapter.name, adapter.api) == (lost.id, lost.name, lost.api):
                return adapter
        raise DeviceError(f"{lost.id} ({lost.name}) was lost, and is not there any more.")

    def _check_process(self, what: str) -> None:
        if self._finder_pid not in (0, os.getpid()):
            raise DeviceError(
                f"{what} cannot be used in this process: it was forked from one that used WebGPU, "
                f"whose threads do not exist here. Start processes by 'spawn', or use the device "
                f"'cpu'."
            )


CATALOG = AdapterCatalog()
"""The catalog of this process, like wgpu's own instance."""


def may_have_gpu(nodes: Path = Path("/dev")) -> bool:
    """Whether a GPU can exist: on Linux it needs a device node."""
    if not sys.platform.startswith("linux"):
        return True
    return any(next(nodes.glob(pattern), None) for pattern in _GPU_NODES)


def largest_buffer(limits: dict[str, int]) -> int:
    """Returns the size limit of a buffer that a kernel can bind completely."""
    return min(limits["max-buffer-size"], limits["max-storage-buffer-binding-size"]) & -16


def _enumerated() -> list[Any]:
    wgpu = _library()
    with quiet():
        return list(wgpu.gpu.enumerate_adapters_sync())


def _library() -> Any:
    try:
        import wgpu
    except ImportError as error:
        raise DeviceError(
            f"WebGPU needs the library wgpu, which is not installed ({error}): pip install "
            f"dala-gpu[gpu], or use the device 'cpu'."
        ) from error
    except AssertionError as error:
        raise DeviceError(
            "wgpu does not load: somebody called logging.getLogger('wgpu') before it was imported. "
            "Import wgpu first, or use the device 'cpu'."
        ) from error
    except (OSError, RuntimeError) as error:
        raise DeviceError(f"WebGPU cannot be used here: {error} Use the device 'cpu'.") from error
    return wgpu


def _rank(handle: Any) -> tuple[int, bool]:
    kind = handle.info["adapter_type"]
    known = kind if kind in _KINDS else "Unknown"
    return _KINDS.index(known), handle.info["backend_type"] in _SECOND_CHOICE


def _described(position: int, handle: Any) -> Adapter:
    info = handle.info
    return Adapter(
        id=f"webgpu:{position}" if position else "webgpu",
        name=info["device"] or info["vendor"] or "unnamed adapter",
        api=info["backend_type"],
        driver=info["description"],
        hardware=info["adapter_type"] != "CPU",
        limits=dict(handle.limits),
        features=tuple(name for name in FEATURES if name in handle.features),
        handle=handle,
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Silences what wgpu and the drivers print about missing things, such as a display."""
    logger = logging.getLogger("wgpu")
    level, runtime = logger.level, os.environ.get("XDG_RUNTIME_DIR")
    logger.setLevel(max(level, logging.ERROR))
    # Mesa prints a line for each attempt if this names no folder.
    missing = not (runtime and Path(runtime).is_dir())
    if missing:
        os.environ["XDG_RUNTIME_DIR"] = tempfile.gettempdir()
    try:
        yield
    finally:
        logger.setLevel(level)
        if missing and runtime is None:
            del os.environ["XDG_RUNTIME_DIR"]
        elif missing and runtime is not None:
            os.environ["XDG_RUNTIME_DIR"] = runtime
