"""A kernel for buffers of given dtypes and shapes: lowered and checked, a task for their device."""

from __future__ import annotations

from dala.errors import ShapeError
from dala.ir.types import IMAGES, N16, Scalar
from dala.lang.example_specialization import vector_sizes
from dala.lang.lower import Definition, Specialization
from dala.lang.lowering_cache import lowered
from dala.plan.task import Kind, Shape, Task

Consts = tuple[tuple[str, bool | int | float], ...]
Types = tuple[tuple[str, Scalar], ...]


def specialized_task(
    name: str,
    definition: Definition,
    inputs: tuple[Kind, ...],
    outputs: tuple[Kind, ...],
    consts: Consts,
    types: Types,
) -> Task:
    """Returns the kernel, specialized; raises ShapeError where the shapes do not fit it."""
    special = specialize(name, definition, inputs, outputs, consts, types)
    try:
        program = lowered(definition, special)
    except ShapeError as error:
        shapes = ", ".join(str(shape) for _, shape in inputs)
        raise ShapeError(
            f"{error} The inputs are {shapes}, the output is {outputs[0][1]}: an input that is "
            f"read at its own position has the same shape, or broadcasts to it. Index it to read "
            f"elsewhere."
        ) from None
    return Task(name, program, inputs, outputs)


def specialize(
    name: str,
    definition: Definition,
    inputs: tuple[Kind, ...],
    outputs: tuple[Kind, ...],
    consts: Consts,
    types: Types,
) -> Specialization:
    """Returns the specialization for given buffers; raises ShapeError for what is no image."""
    arguments = definition.signature.inputs
    specs = tuple(
        _image(name, f"input {item.name!r}", kind)
        if item.image
        else _vectors(name, f"the elements of input {item.name!r}", kind, item.vector)
        for item, kind in zip(arguments, inputs, strict=True)
    )
    sizes = (vector_sizes(definition) * len(outputs))[: len(outputs)]
    written = tuple(
        (kind[0], len(kind[1]) or 1, image_channels(kind))
        if definition.is_image and size is None
        else _vectors(name, "what it returns", kind, size)
        for kind, size in zip(outputs, sizes, strict=True)
    )
    domain = positions(outputs[0][1], sizes[0])
    if definition.is_image and sizes[0] is None:
        domain = outputs[0][1][:2]
    sized = [
        (item.name, shape[:2] if item.image else positions(shape, item.vector))
        for item, (_, shape) in zip(arguments, inputs, strict=True)
    ]
    if definition.signature.out is not None and inputs:
        domain = sized[0][1]
    broadcast = tuple(
        (item.name, stretched)
        for item, (_, shape) in zip(arguments, sized, strict=True)
        if not item.image and (stretched := stretched_axes(shape, domain)) is not None
    )
    return Specialization(specs, written, consts, types, broadcast)


def positions(shape: Shape, vector: int | None) -> Shape:
    """Returns the axes of a buffer's elements: all, but for the last where these are vectors."""
    return shape if vector is None else shape[:-1]


def _vectors(name: str, what: str, kind: Kind, size: int | None) -> tuple[Scalar, int, int | None]:
    """Returns a buffer's dtype, rank and channels; raises ShapeError for other vectors."""
    scalar, shape = kind
    if size is not None and shape[-1:] != (size,):
        raise ShapeError(
            f"{name}: {what} are vectors of {size}, so the last axis of the buffer has {size}; it "
            f"is {scalar} {shape}."
        )
    return scalar, len(positions(shape, size)) or 1, size


def stretched_axes(shape: Shape, domain: Shape) -> tuple[bool, ...] | None:
    """Returns which axes are stretched where a shape is broadcast to a domain, by NumPy's rules.

    None where both are the same, or the shape does not broadcast.

    >>> stretched_axes((3, 1), (2, 3, 5))
    (False, True)
    """
    shape, domain = shape or (1,), domain or (1,)
    if shape == domain or len(shape) > len(domain):
        return None
    stretched = tuple(
        extent == 1 != wide for extent, wide in zip(shape, domain[-len(shape) :], strict=True)
    )
    fits = all(
        once or extent == wide
        for once, extent, wide in zip(stretched, shape, domain[-len(shape) :], strict=True)
    )
    return stretched if fits else None


def _image(name: str, what: str, kind: Kind) -> tuple[Scalar, int, int]:
    channels = image_channels(kind)
    if channels is None:
        raise ShapeError(
            f"{name}: {what} is {kind[0]} {kind[1]}, which is not an image: images are (height, "
            f"width), (height, width, 3) or (height, width, 4), of u8, u16, f32 or f16."
        )
    return kind[0], 2, channels


def image_channels(kind: Kind) -> int | None:
    """Returns how many channels the buffer has as an image, or None where it cannot be one."""
    scalar, shape = kind
    if scalar not in (*IMAGES, N16):
        return None
    if len(shape) == 2:
        return 1
    return shape[2] if len(shape) == 3 and shape[2] in (3, 4) else None
