"""`dala kernel check`: a file's kernels compiled for every device, without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dala.cli import options
from dala.cli.terminal import print_json, tell
from dala.errors import ArgumentError, DalaError, KernelError, ShapeError

if TYPE_CHECKING:
    from dala.lang.lower import Specialization
    from dala.runtime.kernels.kernel import Kernel

_EXTENT = 16
"""The extent of each axis that a kernel is compiled for."""


def check(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A Python file with kernels, or a .wgsl text.")
    ],
    json: options.Json = False,
) -> int:
    """Compile the kernels of a file for the CPU and as WGSL, and show what is wrong with them.

    No GPU is needed. The file is run as Python.
    """
    path = Path(file)
    found = _text_kernel(path) if path.suffix.lower() == ".wgsl" else _python_kernels(path)
    if not found:
        raise ArgumentError(
            f"{file} has no kernels: decorate a function with @dala.kernel, at the top level."
        )
    wrong = sum(not item["ok"] for item in found)
    if json:
        print_json({"ok": not wrong, "file": file, "kernels": found})
    else:
        for item in found:
            for line in _lines(item):
                tell(line)
    return 1 if wrong else 0


def _lines(item: dict[str, Any]) -> Iterator[str]:
    if item["ok"]:
        yield f"ok     {item['call']}"
        yield f"       {item['compiled']}"
        return
    yield f"wrong  {item['name']}"
    yield from (f"       {line}".rstrip() for line in item["error"].splitlines())


def _python_kernels(path: Path) -> list[dict[str, Any]]:
    from dala.cli.kernel_files import kernels_in, run_file

    with _collected_errors() as mistakes:
        found = kernels_in(run_file(path))
    checked = [_checked(kernel) for kernel in found.values()]
    wrong = [{"name": name, "ok": False, "error": str(error)} for name, error in mistakes]
    return checked + wrong


def _text_kernel(path: Path) -> list[dict[str, Any]]:
    from dala.base.text_file import read_text
    from dala.runtime.kernels.wgsl import from_wgsl

    try:
        kernel = from_wgsl(path.stem, read_text(path), None, None)
    except KernelError as error:
        return [{"name": path.stem, "ok": False, "error": str(error)}]
    said = "its bindings are as they have to be; a WebGPU device compiles it when it is run"
    return [{"name": path.stem, "ok": True, "call": _call(kernel), "compiled": said}]


@contextmanager
def _collected_errors() -> Iterator[list[tuple[str, KernelError]]]:
    """Collects errors of `@dala.kernel` inside the block instead of raising them."""
    import dala

    mistakes: list[tuple[str, KernelError]] = []
    original = dala.kernel

    def kernel(function: Callable[..., Any] | None = None, /, **given: Any) -> Any:
        if function is None:
            return lambda later: kernel(later, **given)
        try:
            return original(**given)(function) if given else original(function)
        except KernelError as error:
            mistakes.append((function.__name__, error))
            return None

    vars(dala)["kernel"] = kernel
    try:
        yield mistakes
    finally:
        vars(dala)["kernel"] = original


def _checked(kernel: Kernel) -> dict[str, Any]:
    try:
        said = _compiled(kernel)
    except DalaError as error:
        return {"name": kernel.name, "ok": False, "error": str(error)}
    return {"name": kernel.name, "ok": True, "call": _call(kernel), "compiled": said}


def _call(kernel: Kernel) -> str:
    return f"{kernel.name}({', '.join([*kernel.inputs, *map(str, kernel.params)])})"


def _compiled(kernel: Kernel) -> str:
    """Compiles a kernel, and returns for what, and the size of its WGSL."""
    from dala.devices import CPU
    from dala.emit.wgsl.grid import grid_for
    from dala.emit.wgsl.shader import emit
    from dala.plan.task import Task
    from dala.runtime.pipelines.composite import CompositeKernel, HostCallKernel

    if isinstance(kernel, CompositeKernel | HostCallKernel):
        return "planned on the host, when it is run"
    definition = kernel.definition
    names, sizes = [], []
    for special in _specializations(kernel):
        program = definition.lower(special)
        inputs = tuple((item[0], _shape(item)) for item in special.inputs)
        made = [(item.type, item.rank, item.channels) for item in program.outputs]
        outputs = tuple((item[0], _shape(item)) for item in made)
        names.append(_name(special, definition.is_image))
        try:
            task = Task(kernel.name, program, inputs, outputs)
        except ShapeError:  # it has its own rules for shapes
            CPU.executable(program, CPU.target())
            continue
        CPU.executable(task.program, CPU.target())
        shader = emit(task.program, grid_for(task), frozenset(), "counted")
        sizes.append(len(shader.text))
    wgsl = f"WGSL ({max(sizes):,} characters)" if sizes else "not as WGSL: its shapes are its own"
    return f"CPU and {wgsl}, for {', '.join(names)}" if sizes else f"CPU, {wgsl}"


def _specializations(kernel: Kernel) -> Iterator[Specialization]:
    """Yields the specializations to compile: images of every kind, or fitting buffers."""
    from dala.ir.types import F32, U8
    from dala.lang.example_specialization import example_of
    from dala.lang.lower import Specialization

    definition = kernel.definition
    example = example_of(definition)
    if not definition.is_image or definition.signature.out is not None:
        yield example
        return
    for scalar in (U8, F32):
        for channels in (1, 3, 4):
            inputs = tuple(
                (scalar, 2, channels) if argument.image else said
                for argument, said in zip(definition.signature.inputs, example.inputs, strict=True)
            )
            outputs = ((scalar, 2, channels),) * len(example.outputs)
            yield Specialization(inputs, outputs, example.consts, example.types)


def _shape(spec: tuple[Any, int, int | None]) -> tuple[int, ...]:
    _, rank, channels = spec
    return (_EXTENT,) * rank + ((channels,) if channels is not None and channels > 1 else ())


def _name(special: Specialization, is_image: bool) -> str:
    scalar, rank, channels = special.outputs[0]
    if channels is None or not is_image:
        return f"{scalar.name} of rank {rank}"
    return f"{scalar.name} {({1: 'gray', 3: 'RGB', 4: 'RGBA'})[channels]}"
