"""Fingerprints of a run's inputs, so that a run only resumes its own segments."""

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


class Unidentifiable(Exception):
    """A filter that cannot be fingerprinted, such as a Python function."""


def filter_fingerprint(
    filters: Iterable[tuple[Filter, Mapping[str, Any]]],
) -> tuple[list[Any], bool]:
    """Returns a fingerprint of the filters, and whether it identifies them.

    If it does not, the fingerprint is random, and so matches no other run.
    """
    try:
        return [[_described(what), _stamped(params)] for what, params in filters], True
    except Unidentifiable:
        return [secrets.token_hex()], False


def file_stamp(path: Path) -> tuple[Any, ...]:
    """Returns a stamp that changes with the file's content: path, size and time."""
    if not path.exists():
        return (str(path),)
    stat = path.stat()
    return (str(path.resolve()), stat.st_size, stat.st_mtime_ns)


def _stamped(params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parameters, with paths of files replaced by their stamps."""
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
    raise Unidentifiable


def _of_kernel(kernel: Kernel) -> Any:
    """Returns a built-in kernel's name, or everything that another kernel's code depends on."""
    if is_built_in(kernel):
        return kernel.name
    if isinstance(kernel, WgslKernel):
        if callable(kernel.groups):
            raise Unidentifiable
        defaults = [[item.name, repr(item.default)] for item in kernel.params]
        return [kernel.name, kernel.module.text, defaults, kernel.groups]
    if type(kernel) is not Kernel:
        raise Unidentifiable
    definition = kernel.definition
    # The program includes globals and functions that the source only names.
    program = dump(definition.lower(example_of(definition)))
    return [kernel.name, "\n".join(definition.source.lines), definition.border, program]
