"""Suggestions in error messages: the kernel language's equivalents of Python and NumPy names."""

from __future__ import annotations

import inspect
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dala.base.suggestions import nearest
from dala.lang.language_names import INTRINSICS, NAMES

_SYNONYMS = {
    "absolute": "dala.abs(x)",
    "fabs": "dala.abs(x)",
    "arccos": "dala.acos(x)",
    "arcsin": "dala.asin(x)",
    "arctan": "dala.atan(x)",
    "arctan2": "dala.atan2(y, x)",
    "around": "dala.round(x)",
    "rint": "dala.round(x)",
    "fix": "dala.trunc(x)",
    "clip": "dala.clamp(x, low, high)",
    "maximum": "dala.max(a, b)",
    "fmax": "dala.max(a, b)",
    "amax": "max(… for k in range(…))",
    "minimum": "dala.min(a, b)",
    "fmin": "dala.min(a, b)",
    "amin": "min(… for k in range(…))",
    "power": "dala.pow(x, y)",
    "float_power": "dala.pow(x, y)",
    "square": "x * x",
    "arcsinh": "dala.asinh(x)",
    "arccosh": "dala.acosh(x)",
    "arctanh": "dala.atanh(x)",
    "bitwise_count": "dala.popcount(x)",
    "countOneBits": "dala.popcount(x)",
    "countLeadingZeros": "dala.clz(x)",
    "reverseBits": "dala.reverse_bits(x)",
    "remainder": "x % y",
    "expit": "dala.sigmoid(x)",
    "lerp": "dala.mix(a, b, t)",
    "where": "a if condition else b",
    "select": "a if condition else b",
    "logical_and": "a and b",
    "logical_or": "a or b",
    "logical_not": "not a",
    "mean": "sum(… for k in range(n)) / n",
    "prod": "a loop that multiplies",
    "eye": "dala.identity(n)",
    "inv": "dala.inverse(m)",
    "det": "dala.determinant(m)",
    "matmul": "a @ b",
    "norm": "dala.length(v)",
    "float32": "dala.f32(x)",
    "float64": "dala.f64(x)",
    "int32": "dala.s32(x)",
    "int64": "dala.s64(x)",
    "uint8": "dala.u8(x)",
    "uint32": "dala.u32(x)",
}
"""What to write in a kernel for functions of NumPy, SciPy, OpenCV or GLSL."""
_MODULES = {"random": "Write dala.random(seed, i): it depends on the seed and the counters alone."}
"""Advice for modules none of whose functions has an equivalent."""


def instead_of_name(name: str, known: Iterable[str]) -> str:
    """Returns a suggestion for an unknown name."""
    own = {item: item for item in known}
    language = {item: f"dala.{item}" for item in NAMES if item not in own}
    meant = _nearest(name, {**language, **own})
    if meant is None and name in _SYNONYMS:
        return f"Write {_SYNONYMS[name]}."
    return f"Did you mean `{meant}`?" if meant else "Assign it, or make it an argument."


def instead_of_attribute(owner: Any, name: str) -> str:
    """Returns a suggestion for an attribute that an object does not have."""
    if getattr(owner, "__name__", "") == "dala":
        meant = _nearest(name, {item: f"dala.{item}" for item in NAMES})
        if meant is None and name in _SYNONYMS:
            return f"Write {_SYNONYMS[name]}."
        return f"Did you mean `{meant}`?" if meant else f"Kernels have {', '.join(INTRINSICS)}."
    meant = _nearest(name, {item: item for item in dir(owner) if not item.startswith("_")})
    return f"Did you mean `{meant}`?" if meant else "Look it up in its documentation."


def instead_of_call(target: Any) -> str:
    """Returns a suggestion for a Python function that kernels cannot call."""
    name = str(getattr(target, "__name__", ""))
    if name in INTRINSICS:
        return f"Write dala.{name}(…)."
    if name in _SYNONYMS:
        return f"Write {_SYNONYMS[name]}."
    module = getattr(target, "__module__", None) or type(getattr(target, "__self__", "")).__module__
    for part in module.split("."):
        if part in _MODULES:
            return _MODULES[part]
    if inspect.isfunction(target) and not _is_installed(target):
        return f"Write @dala.function above `def {name}`."
    return "Kernels call @dala.functions and the math functions of dala, e.g. dala.exp(x)."


def _nearest(name: str, meant: dict[str, str]) -> str | None:
    near = nearest(name, meant)
    return meant[near[0]] if near else None


def _is_installed(function: Any) -> bool:
    """Whether a function belongs to Python or an installed package, not to the user."""
    file = Path(function.__code__.co_filename)
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(file.is_relative_to(folder) for folder in folders if folder)
