"""Loads a user's kernels from Python files."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from dala.errors import ArgumentError, DalaError, FileError
from dala.runtime.kernels.kernel import KERNELS, Kernel
from dala.runtime.pipelines.kernel_text import is_built_in


def load_kernels(paths: Iterable[str]) -> list[str]:
    """Runs the files as Python, registers their kernels, and returns the kernels' names."""
    names: list[str] = []
    for path in paths:
        for name, kernel in kernels_in(run_file(Path(path))).items():
            if name in names or (name in KERNELS and is_built_in(KERNELS[name])):
                raise ArgumentError(
                    f"{path}: a kernel named {name!r} is there already: give the function another "
                    f'name, or write @dala.kernel(name="…").'
                )
            KERNELS[name] = kernel
            names.append(name)
    return names


def run_file(path: Path, given: dict[str, Any] | None = None) -> ModuleType:
    """Runs a file and returns its module; raises FileError with the line for its errors."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise FileError(f"{path} cannot be read: {reason}.") from error
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    vars(module).update(given or {})
    # As for a script: modules next to the file can be imported.
    sys.path.insert(0, str(path.resolve().parent))
    try:
        exec(compile(text, str(path), "exec"), vars(module))
    except DalaError:
        raise
    except (Exception, SystemExit) as error:
        raise FileError(f"{path}{_line(error, path)}: {type(error).__name__}: {error}.") from error
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module


def kernels_in(module: ModuleType) -> dict[str, Kernel]:
    """Returns the kernels that a module defines, by name."""
    found = [item for item in vars(module).values() if isinstance(item, Kernel)]
    return {item.name: item for item in found if KERNELS.get(item.name) is not item}


def _line(error: BaseException, path: Path) -> str:
    """Returns ", line N" for the line of the file that raised the error."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f", line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    return f", line {lines[-1]}" if lines else ""
