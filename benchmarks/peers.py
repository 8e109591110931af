"""Peers that may not be installed: what is missing is said in the row that needs it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dala.errors import DalaError

if TYPE_CHECKING:
    from benchmarks.harness import Outcome, Row

PACKAGES = {
    "PIL": ("Pillow", "pillow"),
    "av": ("PyAV", "av"),
    "cv2": ("OpenCV", "opencv-python-headless"),
    "onnxruntime": ("ONNX Runtime", "onnxruntime"),
    "skimage": ("scikit-image", "scikit-image"),
    "jax": ("JAX", "jax"),
    "numba": ("Numba", "numba"),
    "taichi": ("Taichi", "taichi"),
    "torch": ("PyTorch", "torch"),
    "pyvips": ("pyvips", "pyvips"),
    "stringzilla": ("StringZilla", "stringzilla"),
    "scipy": ("SciPy", "scipy"),
    "halide": ("Halide", "halide"),
    "wgpu": ("wgpu", "wgpu"),
}
"""What modules of peers are called, and the packages that have them."""
OURS = ("benchmarks", "dala")


class Absent(Exception):
    """A peer is not installed; the text says which, and how to get it."""


def need(*modules: str) -> None:
    """An Absent unless all of the modules can be imported; for rows that leave it to a program."""
    for module in modules:
        if find_spec(module) is None:
            raise absent_module(module)


def need_program(name: str, package: str | None = None) -> str:
    """The path of a program; an Absent where there is none."""
    path = shutil.which(name)
    if path is None:
        raise Absent(f"{name} is not installed: apt install {package or name}, or the like")
    return path


def absent_module(module: str) -> Absent:
    name, package = PACKAGES.get(module, (module, module))
    return Absent(f"{name} is not installed: .venv/bin/python -m pip install {package}")


def measured(name: str, make: Callable[[], Row], rounds: int) -> Outcome:
    """A row, made and measured; or what is missing for it, or how its sides differ."""
    return tried(name, lambda: make().measure(rounds))


def checked(name: str, check: Callable[[], None]) -> Outcome:
    """A row whose sides are compared, and not measured."""
    from benchmarks.harness import Same

    return tried(name, lambda: check() or Same(name))


def tried(name: str, work: Callable[[], Outcome]) -> Outcome:
    """What the work gives; or a row that says what is missing, or what is wrong.

    Any other mistake of a row stays an error.
    """
    from benchmarks.harness import Missing, Wrong

    try:
        return work()
    except Absent as error:
        return Missing(name, str(error))
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if not module or module in OURS:
            raise
        return Missing(name, str(absent_module(module)))
    except AssertionError as error:
        return Wrong(name, " ".join(str(error).split())[:300])
    except DalaError as error:  # a model that cannot be fetched, a device without memory for it
        return Missing(name, " ".join(str(error).split()))
