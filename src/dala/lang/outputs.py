"""The outputs of a kernel: one for each value that it returns, and what is stored there."""

from __future__ import annotations

import ast

from dala.errors import KernelTypeError
from dala.ir.nodes import Input, Output, Value
from dala.ir.types import F32, N16, U8, U16, Scalar
from dala.lang.arithmetic import Mismatch
from dala.lang.loops import Lowering
from dala.lang.values import Literal, LoweredValue, Number, Pixel, Tuple, Vector, describe

Spec = tuple[Scalar, int, int | None]
"""A buffer's dtype, rank, and channels."""


def returned_items(returned: LoweredValue) -> tuple[LoweredValue, ...]:
    """Returns what is returned for each output: the items of a tuple, or one value."""
    if isinstance(returned, Tuple) and (len(returned.items) > 1 or returned.named is not None):
        return returned.items
    return (returned,)


def output_of(
    lowering: Lowering,
    tree: ast.FunctionDef,
    is_image: bool,
    returned: LoweredValue,
    spec: Spec,
    said: int | None,
) -> Output:
    """Returns the output for a value: of numbers, vectors or pixels; one number may be a pixel."""
    scalar, rank, channels = spec
    if isinstance(returned, Vector) or said is not None:
        return _vector_output(lowering, tree, returned, spec)
    if not is_image:
        return Output(scalar, rank)
    if isinstance(returned, Pixel) and channels is not None:
        return Output(scalar, 2, channels)
    if not isinstance(returned, Pixel) and rank == 2:
        return Output(scalar, 2)
    given, takes = "one value for each pixel", "one of (height, width)"
    if isinstance(returned, Pixel):
        given, takes = "pixels", "an image of u8, u16, f32 or f16"
    raise lowering.error(
        return_of(tree),
        f"the kernel returns {given}, but its output is {scalar} of rank {rank}.",
        f"Give {takes} as the output; dala.rgba(…) makes a pixel.",
        KernelTypeError,
    )


def _vector_output(
    lowering: Lowering, tree: ast.FunctionDef, returned: LoweredValue, spec: Spec
) -> Output:
    """Returns the output of a kernel that returns vectors, which are its last axis."""
    scalar, rank, channels = spec
    size = len(returned.items) if isinstance(returned, Vector) else None
    if size is not None and rank == lowering.domain.rank and channels in (None, size):
        return Output(scalar, rank, size)
    wanted = f"vectors of {channels}" if channels else f"{scalar} of rank {rank}"
    raise lowering.error(
        return_of(tree),
        f"the kernel returns {describe(returned)}, but its output is {wanted}.",
        "Annotate it with the vectors that it returns, as in `-> dala.vec3`: an output has one "
        "axis more, of their components.",
        KernelTypeError,
    )


def return_of(tree: ast.FunctionDef) -> ast.AST:
    """Returns the first `return` of a function, to point at; else the function."""
    return next((item for item in ast.walk(tree) if isinstance(item, ast.Return)), tree)


def stored(
    lowering: Lowering, tree: ast.FunctionDef, returned: LoweredValue, output: Output, *, gray: bool
) -> tuple[Value, ...]:
    """Returns the values to store: pixels by channel, all others converted.

    A float returned by an image kernel is a gray pixel in 0..1.
    """
    try:
        if isinstance(returned, Vector) and output.channels is not None:
            items = returned.items
            return tuple(lowering.arithmetic.stored(item, output.type) for item in items)
        if output.channels is None:
            levels = gray and output.type in (U8, U16)
            if levels and lowering.arithmetic.type_of(returned).is_float:
                return (_channel(lowering, lowering.arithmetic.typed(returned), output.type),)
            return (lowering.arithmetic.stored(returned, output.type),)
        assert isinstance(returned, Pixel)
        channels = (_gray(lowering, returned),) if output.channels == 1 else returned.channels
        return tuple(_channel(lowering, item, output.type) for item in channels[: output.channels])
    except Mismatch as mismatch:
        raise lowering.error(
            return_of(tree), mismatch.what, mismatch.instead, KernelTypeError
        ) from None


def _gray(lowering: Lowering, pixel: Pixel) -> Number:
    luma = lowering.luma(pixel)
    of_levels = pixel.channels[0].type.is_integer and luma.type.is_float
    return _unit(lowering, luma) if of_levels else luma


def _unit(lowering: Lowering, level: Number) -> Number:
    """Converts a level to 0..1."""
    build = lowering.build
    value = build.convert(level.value, F32)
    return Number(build.apply("mul", value, build.const(F32, 1 / lowering.white)))


def _channel(lowering: Lowering, channel: Number, type: Scalar) -> Value:
    """Returns a channel (in 0..1, or an integer level) as stored: levels round and clamp."""
    has_levels = type in (U8, U16)
    if channel.type.is_integer and has_levels and type.white == lowering.white:
        build, level = lowering.build, channel.value
        if channel.type.kind == "s":
            level = build.apply("max", level, build.const(channel.type, 0))
        if channel.type.highest > type.white:
            level = build.apply("min", level, build.const(channel.type, type.white))
        return build.convert(level, type)
    if channel.type == type == N16:
        return channel.value
    if channel.type.is_integer:
        channel = _unit(lowering, channel)
    if has_levels:
        scaled = lowering.arithmetic.binary("mul", channel, Literal(float(type.white)))
        return lowering.arithmetic.stored(scaled, type)
    return lowering.arithmetic.stored(channel, type)


def white_of(inputs: tuple[Input, ...]) -> int:
    """Returns the level of white of a kernel's integer pixels: that of its first such image."""
    images = (item.type for item in inputs if item.channels and item.type in (U8, U16))
    return next(images, U8).white
