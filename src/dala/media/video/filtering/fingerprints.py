"""What a run depends on, so that one that goes on uses nothing that another has made."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dala.ir.dump import dump
from dala.lang.example_specialization import example_of
from dala.media.filters.chain import Filter
from dala.runtime.kernels.kernel import KERNELS, Kernel
from dala.runtime.kernels.wgsl import WgslKernel
from dala.runtime.pipelines.kernel_text import is_built_in


class Untold(Exception):
    """Nothing tells it from another, such as the code of a Python function."""


def described_filters(
    filters: Iterable[tuple[Filter, Mapping[str, Any]]],
) -> tuple[list[Any], bool]:
    """What tells these filters from others, and whether there is such a thing.

    If not, the description is one that no other run has.
    """
    try:
        return [[_described(what), _stamped(params)] for what, params in filters], True
    except Untold:
        return [secrets.token_hex()], False


def file_stamp(path: Path) -> tuple[Any, ...]:
    """What tells one content of a file from another."""
    if not path.exists():
        return (str(path),)
    stat = path.stat()
    return (str(path.resolve()), stat.st_size, stat.st_mtime_ns)


def _stamped(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters, those that name files with what tells the file's content."""
    return {
        name: file_stamp(Path(value))
        if isinstance(value, str | os.PathLike) and Path(value).is_file()
        else value
        for name, value in params.items()
    }


def _described(what: Filter) -> Any:
    if isinstance(what, str):
        return _of_kernel(KERNELS[what]) if what in KERNELS else what
    if isinstance(what, Kernel):
        return _of_kernel(what)
    raise Untold


def _of_kernel(kernel: Kernel) -> Any:
    """The name of a kernel that every dala has; of others all that their code depends on."""
    if is_built_in(kernel):
        return kernel.name
    if isinstance(kernel, WgslKernel):
        if callable(kernel.groups):
            raise Untold
        defaults = [[item.name, repr(item.default)] for item in kernel.params]
        return [kernel.name, kernel.module.text, defaults, kernel.groups]
    if type(kernel) is not Kernel:
        raise Untold
    definition = kernel.definition
    # The program has what the source does not: values and functions from outside of it.
    program = dump(definition.lower(example_of(definition)))
    return [kernel.name, "\n".join(definition.source.lines), definition.border, program]
