"""Images from one way of storing pixels to another: order of channels, gray, planes of video."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from dala.errors import ArgumentError, DtypeError, LimitError, ShapeError
from dala.ir.types import IMAGES, U8
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper
from dala.kernels.base.parameters import choice, integer
from dala.kernels.base.shapes import Shape
from dala.kernels.image.pixel_pairs import expand_pairs, rearrange_pairs, reduce_pairs, repack_pairs
from dala.kernels.image.pixel_planes import (
    expand_gray,
    expanding_kernel,
    reducing_kernel,
    unweave,
    weave,
)
from dala.kernels.image.video_levels import RANGES, WEIGHTS, Levels, levels_of
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.pipelines.composite import Stage

CHANNELS = {"rgb": 3, "rgba": 4, "bgr": 3, "bgra": 4, "gray": 1}
"""Formats whose pixels lie side by side, and how many channels they have."""
PLANES = ("yuv420p", "nv12")
"""Formats with a plane of luma, then one level of U and of V for each 2 × 2 pixels."""
FORMATS = (*CHANNELS, *PLANES)
MOST_BYTES = 1 << 31

Size = tuple[int, int]


@composite(
    "image",
    group="geometry",
    **{
        "from": choice("the format that the image has", *FORMATS),
        "to": choice("the format that it is converted to", *FORMATS),
        "matrix": choice("the standard of the YUV side", *WEIGHTS, default="bt601"),
        "range": choice("whether luma is 16 to 235 or 0 to 255", *RANGES, default="limited"),
        "width": integer(
            "the width of a YUV image in one axis", None, unit="pixels", usual=(1, 8192)
        ),
        "height": integer(
            "the height of a YUV image in one axis", None, unit="pixels", usual=(1, 8192)
        ),
    },
)
def convert(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """An image in another format, out of rgb, rgba, bgr, bgra, gray, yuv420p and nv12

    Alpha is added as opaque or dropped; gray is 0.299 R + 0.587 G + 0.114 B. Of yuv420p and nv12,
    with `matrix` "bt601", "bt709" or "bt2020" and `range` "limited" or "full", gray is the luma
    itself, in full range; a luma below the black of its range is black. A level of chroma is that
    of its 2 × 2 pixels, and the mean of their colors makes it; where the size is odd the edge
    counts twice.

    These two are u8, (height · 3/2, width) where both are even, or any size in one axis: the plane
    Y, then U and V, one after another in yuv420p and in turns in nv12. `width` and `height` say how
    large such an image is where neither side tells.
    """
    (image,) = inputs
    source, target = params["from"], params["to"]
    levels = levels_of(params["matrix"], params["range"])
    _require_dtype(source, "the image", image)
    _require_dtype(target, "the output", output)
    own = _own_size(source, "the image", image.shape)
    size = _size(own or _own_size(target, "the output", output.shape), params)
    _require_shape(source, "the image", image.shape, size)
    _require_shape(target, "the output", output.shape, size)
    if 0 in size:
        return
    if source in CHANNELS and target in CHANNELS:
        yield from _reorder(image, output, source, target)
    elif source in PLANES and target in PLANES:
        yield from _between_planes(image, output, size, source, target)
    elif source in PLANES:
        yield from _expand(image, output, size, levels, source, target)
    else:
        yield from _reduce(image, output, size, levels, source, target)


@convert.sized
def _converted(shapes: Sequence[Shape], params: Given) -> Shape:
    source, target = params["from"], params["to"]
    size = _size(_own_size(source, "the image", shapes[0]), params)
    _require_shape(source, "the image", shapes[0], size)
    if source in PLANES and target in PLANES:
        return shapes[0]
    return _shapes(target, size)[0]


# -- what is given ---------------------------------------------------------------------------------


def _require_dtype(format: str, what: str, image: Buffer) -> None:
    allowed = IMAGES if format in CHANNELS else (U8,)
    if image.scalar not in allowed:
        shown = " or ".join(map(str, allowed))
        raise DtypeError(f"convert: {what} is {image.dtype}, but {format} images are {shown}.")


def _own_size(format: str, what: str, shape: Shape) -> Size | None:
    """Height and width of an image of that shape; None where it does not tell."""
    if format in CHANNELS:
        channels = CHANNELS[format]
        if shape[2:] == (() if channels == 1 else (channels,)) and len(shape) >= 2:
            return shape[0], shape[1]
        wanted = "(height, width)" if channels == 1 else f"(height, width, {channels})"
    else:
        if len(shape) == 1:
            return None
        if len(shape) == 2 and shape[0] % 3 == 0 and shape[1] % 2 == 0:
            return shape[0] // 3 * 2, shape[1]
        wanted = "(height · 3/2, width) for an even height and width, or has one axis"
    raise ShapeError(f"convert: {what} is {shape}, but a {format} image is {wanted}.")


def _size(found: Size | None, params: Given) -> Size:
    """Height and width, from a shape or as they are given."""
    given = [params[name] for name in ("height", "width")]
    if found is None:
        if given[0] is None or given[1] is None or min(given[0], given[1]) < 0:
            raise ArgumentError(
                f"convert: height is {given[0]} and width is {given[1]}, but an image in one axis "
                f"does not tell its size: give both as integers from 0 on."
            )
        found = given[0], given[1]
    for name, here, told in zip(("height", "width"), found, given, strict=True):
        if told not in (None, here):
            raise ShapeError(
                f"convert: {name} is given as {told}, but the image's is {here}: leave it out, or "
                f"give an image of that size."
            )
    if 2 * math.prod(found) >= MOST_BYTES:
        raise LimitError(
            f"convert: {found[0]} × {found[1]} pixels are too many: below {MOST_BYTES // 2} are "
            f"allowed. Convert the image in parts."
        )
    return found


def _shapes(format: str, size: Size) -> list[Shape]:
    """The shapes that an image of that size may have, the usual one first."""
    height, width = size
    if format in CHANNELS:
        return [size if format == "gray" else (*size, CHANNELS[format])]
    flat = (height * width + 2 * math.prod(_chroma_size(size)),)
    return [flat] if height % 2 or width % 2 else [(height // 2 * 3, width), flat]


def _require_shape(format: str, what: str, shape: Shape, size: Size) -> None:
    allowed = _shapes(format, size)
    if shape not in allowed:
        shown = " or ".join(map(str, allowed))
        raise ShapeError(
            f"convert: {what} is {shape}, but a {format} image of {size[0]} × {size[1]} pixels is "
            f"{shown}."
        )


def _chroma_size(size: Size) -> Size:
    return (size[0] + 1) // 2, (size[1] + 1) // 2


# -- stages ----------------------------------------------------------------------------------------


def _in_pairs(image: Buffer, output: Buffer, *even: int) -> bool:
    """Whether pixels can be gone through two at a time, as 16 bits."""
    fits = all(size % 2 == 0 for size in even)
    return fits and image.scalar == output.scalar == U8 and output.is_host


def _reorder(image: Buffer, output: Buffer, source: str, target: str) -> Iterator[Stage]:
    swapped = source.startswith("b") != target.startswith("b")
    alike = target == "gray" or (image.shape == output.shape and not swapped)
    if not alike and _in_pairs(image, output, image.shape[1]):
        yield from repack_pairs(image, output, swapped=swapped)
    else:
        yield Stage(_swap if swapped else _keep, [image], output)


def _flat(image: Buffer) -> Buffer:
    return reshaped(image, (math.prod(image.shape),))


def _places(format: str, size: Size) -> dict[str, int]:
    """Where levels of chroma lie: the first of U and of V, and from one to the next."""
    luma, (rows, columns) = math.prod(size), _chroma_size(size)
    if format == "nv12":
        return {"u": luma, "v": luma + 1, "down": 2 * columns, "across": 2}
    return {"u": luma, "v": luma + rows * columns, "down": columns, "across": 1}


def _expand(
    image: Buffer, output: Buffer, size: Size, levels: Levels, source: str, target: str
) -> Iterator[Stage]:
    swapped = target.startswith("b")
    if _in_pairs(image, output, *size):
        yield from expand_pairs(image, output, levels, nv12=source == "nv12", swapped=swapped)
        return
    weights = {name: weight / 255 for name, weight in levels.colors().items()}
    if target == "gray":
        given: Given = {"black": levels.black, "y": weights["y"]}
        yield Stage(expand_gray, [_flat(image)], output, given)
    else:
        given = {"black": levels.black, **weights, **_places(source, size)}
        yield Stage(expanding_kernel(swapped), [_flat(image)], output, given)


def _reduce(
    image: Buffer, output: Buffer, size: Size, levels: Levels, source: str, target: str
) -> Iterator[Stage]:
    swapped, nv12 = source.startswith("b"), target == "nv12"
    if _in_pairs(image, output, *size):
        yield from reduce_pairs(image, output, levels, nv12=nv12, swapped=swapped)
        return
    weights = {**levels.luma(), **levels.chroma()}
    given = {name: weight * 255 for name, weight in weights.items()}
    line = reshaped(output, (1, math.prod(output.shape)))
    kernel = reducing_kernel(nv12, swapped)
    yield Stage(kernel, [image], line, {"black": levels.black, **given})


def _between_planes(
    image: Buffer, output: Buffer, size: Size, source: str, target: str
) -> Iterator[Stage]:
    if source == target:
        yield Stage(_copy, [_flat(image)], _flat(output))
    elif _in_pairs(image, output, *size):
        yield from rearrange_pairs(image, output, *size, nv12=target == "nv12")
    else:
        given = {"luma": math.prod(size), "count": math.prod(_chroma_size(size))}
        kernel = weave if target == "nv12" else unweave
        yield Stage(kernel, [_flat(image)], _flat(output), given)


# -- kernels ---------------------------------------------------------------------------------------


@helper
def _keep(image: dala.Image) -> Any:
    return image.levels.pixel


@helper
def _swap(image: dala.Image) -> Any:
    p = image.pixel
    return dala.rgba(p.b, p.g, p.r, p.a)


@helper
def _copy(x: Any) -> Any:
    return x
