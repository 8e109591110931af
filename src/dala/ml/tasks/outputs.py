"""Outputs found among those that a model has, and what a decoder makes of them on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dala.errors import ModelError
from dala.images.frames import new_buffer
from dala.ml.catalog.reading import Reading
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.arguments import Params
from dala.runtime.kernels.kernel import Kernel

Outputs = Mapping[str, Buffer]
Axis = int | None
"""How long an axis has to be; None for any length."""


def find_output(outputs: Outputs, name: str, *shapes: Sequence[Axis]) -> Buffer | None:
    """The output of one of the shapes; of several, the one whose own name has `name` in it."""
    fitting = {
        own: item for own, item in outputs.items() if any(_fits(item.shape, s) for s in shapes)
    }
    named = [item for own, item in fitting.items() if name in own.lower()]
    if len(named) == 1:
        return named[0]
    return next(iter(fitting.values())) if len(fitting) == 1 else None


def require_output(outputs: Outputs, entry: Reading, name: str, *shapes: Sequence[Axis]) -> Buffer:
    """The same; a ModelError that says what there is where there is none, or no telling which."""
    found = find_output(outputs, name, *shapes)
    if found is None:
        wanted = " or ".join(shown(shape) for shape in shapes)
        raise ModelError(f"{entry.name}: expected {name!r} {wanted}, but {listed(outputs)}.")
    return found


def listed(outputs: Outputs) -> str:
    """Returns the outputs that there are, as a clause."""
    known = ", ".join(f"{name!r} {item.dtype} {item.shape}" for name, item in outputs.items())
    return f"the model gives {known}"


def shown(shape: Sequence[Axis]) -> str:
    """Returns a shape with n for what may have any length."""
    return f"({', '.join('n' if axis is None else str(axis) for axis in shape)})"


def without_batch(buffer: Buffer) -> Buffer:
    """Returns the same memory without the first axis, which is 1."""
    return reshaped(buffer, buffer.shape[1:])


def computed(
    kernel: Kernel,
    inputs: Sequence[Buffer],
    shape: tuple[int, ...],
    dtype: str = "f32",
    params: Params | None = None,
) -> Buffer:
    """Returns a new buffer with what the kernel makes of the inputs."""
    made = new_buffer(shape, dtype)
    kernel.run(inputs, made, params)
    return made


def _fits(shape: Sequence[int], wanted: Sequence[Any]) -> bool:
    return len(shape) == len(wanted) and all(
        axis is None or axis == size for size, axis in zip(shape, wanted, strict=True)
    )
