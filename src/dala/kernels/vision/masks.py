"""Masks of another size: as large as the image that lies somewhere in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from dala.devices import Device, current_device, using
from dala.errors import ArgumentError, DtypeError, ShapeError
from dala.ir.types import F32, Scalar
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper, zero_outside
from dala.kernels.base.parameters import other
from dala.kernels.base.results import require_size
from dala.kernels.base.shapes import number_within, positive_number
from dala.runtime.buffers.buffer import Buffer, from_numpy, scratch
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

MOST_TABLES = 32
"""Tables that are remembered, the latest ones."""

AREA = other("any", "the part of the mask that the image covers, (top, left, height, width)", None)
Span = tuple[float, float]
"""Where an image lies along an axis of a mask: from, and how far."""


@composite("mask", area=AREA)
def class_mask(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """A mask of classes in the size of the image: each pixel has that of the place it lies in

    `area` is the part of the mask that the image covers, (top, left, height, width), all of it
    unless given; outside the mask the class is 0. Classes that the output's dtype cannot hold
    become the nearest that it can.
    """
    (mask,) = inputs
    down, across = _spans("class_mask", mask, output, params["area"])
    if output.scalar.is_float:
        raise DtypeError(f"class_mask: the output is {output.dtype}, but classes are counted: u8.")
    if 0 in output.shape:
        return
    rows = _nearest(down, mask.shape[0], output.shape[0], current_device())
    columns = _nearest(across, mask.shape[1], output.shape[1], current_device())
    yield Stage(_picking_kernel(mask.scalar, output.scalar), [mask, rows, columns], output)


require_size(class_mask, "the output has the size of the image")


@composite("mask", area=AREA)
def soft_mask(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """A mask of floats in the size of the image, interpolated between the four nearest elements

    `area` is the part of the mask that the image covers, (top, left, height, width), all of it
    unless given; outside the mask it is 0. Elements have their center in their middle, and beyond
    the outermost centers the mask goes on as it is there.
    """
    (mask,) = inputs
    down, across = _spans("soft_mask", mask, output, params["area"])
    for name, item in (("mask", mask), ("output", output)):
        if not item.scalar.is_float:
            raise DtypeError(
                f"soft_mask: the {name} is {item.dtype}, but it is soft: give f32, or use the "
                f"kernel 'class_mask'."
            )
    if 0 in output.shape:
        return
    first, shares = _between(across, mask.shape[1], output.shape[1], current_device())
    widened = scratch((mask.shape[0], output.shape[1]), F32)
    yield Stage(_mix_columns, [mask, first, shares], widened)
    first, shares = _between(down, mask.shape[0], output.shape[0], current_device())
    yield Stage(_mix_rows, [widened, first, shares], output)


require_size(soft_mask, "the output has the size of the image")


@composite("coefficients", "prototypes", "boxes", area=AREA)
def instance_masks(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """A mask for each of several things, u8 (count, height, width) of the image: 1 where it is

    A thing is where the sum of the prototypes, (channels, h, w), each times its coefficient,
    (count, channels), is above 0, between four elements interpolated, and within its box (count,
    4), x0, y0, x1, y1 in pixels of the image. `area` is the part of the prototypes that the image
    covers, (top, left, height, width), all of it unless given.
    """
    coefficients, prototypes, boxes = inputs
    count = coefficients.shape[0] if len(coefficients.shape) == 2 else -1
    if len(prototypes.shape) != 3 or coefficients.shape[1:] != prototypes.shape[:1]:
        raise ShapeError(
            f"instance_masks: coefficients is {coefficients.shape} and prototypes "
            f"{prototypes.shape}, but they have to be (count, channels) and (channels, h, w)."
        )
    if boxes.shape != (count, 4) or len(output.shape) != 3 or output.shape[0] != count:
        raise ShapeError(
            f"instance_masks: boxes is {boxes.shape} and the output {output.shape}, but for "
            f"{count} things they are ({count}, 4) and ({count}, height, width)."
        )
    if 0 in output.shape:
        return
    size = prototypes.shape[1:]
    sums = scratch((count, *size), F32)
    yield Stage(_sum_prototypes, [coefficients, prototypes], sums)
    (top, tall), (left, wide) = _covered("instance_masks", size, params["area"])
    height, width = output.shape[1:]
    given = {"top": top, "left": left, "down": tall / height, "across": wide / width}
    yield Stage(_cut_out, [sums, boxes], output, given)


require_size(instance_masks, "the output has the size of the image")


def _spans(kernel: str, mask: Buffer, output: Buffer, area: Any) -> tuple[Span, Span]:
    for name, item in (("mask", mask), ("output", output)):
        if len(item.shape) != 2:
            raise ShapeError(f"{kernel}: the {name} is {item.shape}, not (height, width).")
    if 0 in mask.shape and 0 not in output.shape:
        raise ShapeError(f"{kernel}: the mask is {mask.shape}: there is nothing to take.")
    return _covered(kernel, mask.shape, area)


def _covered(kernel: str, mask: Sequence[int], area: Any) -> tuple[Span, Span]:
    height, width = mask
    if area is None:
        return (0.0, float(height)), (0.0, float(width))
    if not isinstance(area, tuple | list) or len(area) != 4:
        raise ArgumentError(f"{kernel}: area is (top, left, height, width), not {area!r}.")
    top, left = (number_within(kernel, "area's top and left", item) for item in area[:2])
    tall, wide = (positive_number(kernel, "area's height and width", item) for item in area[2:])
    return (top, tall), (left, wide)


def _centers(span: Span, count: int) -> np.ndarray:
    """Where in the mask the centers of so many pixels lie, its elements 1 apart."""
    start, length = span
    # One division, correctly rounded: a center on the edge of an element stays on its right side.
    centers: np.ndarray = start + (2 * np.arange(count) + 1) * length / (2 * count)
    return centers


@lru_cache(MOST_TABLES)
def _nearest(span: Span, old: int, new: int, device: Device) -> Buffer:
    """The element that each pixel lies in; outside, the one before the first or after the last."""
    place = np.floor(_centers(span, new)).clip(-1, old)
    with using(device):
        return from_numpy(place.astype(np.int32))


@lru_cache(MOST_TABLES)
def _between(span: Span, old: int, new: int, device: Device) -> tuple[Buffer, Buffer]:
    """The first of the two elements around each pixel, and the shares of both, (2, pixels)."""
    centers = _centers(span, new)
    place = (centers - 0.5).clip(0, old - 1)
    first = np.floor(place).clip(0, max(old - 2, 0))
    second_share = place - first
    shares = np.stack([1 - second_share, second_share])
    shares[:, (centers < 0) | (centers >= old)] = 0
    with using(device):
        return from_numpy(first.astype(np.int32)), from_numpy(shares.astype(np.float32))


# -- kernels ---------------------------------------------------------------------------------------


@cache
def _picking_kernel(given: Scalar, made: Scalar) -> Kernel:
    is_narrower = not given.is_float and given.highest > made.highest
    highest, is_signed = made.highest, given.kind == "s" and made.kind != "s"

    def pick_class(mask: Any, rows: Any, columns: Any) -> Any:
        y, x = dala.position(2)
        found = mask[rows[y], columns[x]]
        if is_signed:
            found = max(found, 0)
        if is_narrower:
            found = min(found, highest)
        return found

    return zero_outside(pick_class)


@helper
def _mix_columns(mask: Any, first: Any, shares: Any) -> Any:
    y, x = dala.position(2)
    start = first[x]
    return mask[y, start] * shares[0, x] + mask[y, start + 1] * shares[1, x]


@helper
def _mix_rows(mask: Any, first: Any, shares: Any) -> Any:
    y, x = dala.position(2)
    start = first[y]
    return mask[start, x] * shares[0, y] + mask[start + 1, x] * shares[1, y]


@helper
def _sum_prototypes(coefficients: Any, prototypes: Any) -> Any:
    i, y, x = dala.position(3)
    return sum(coefficients[i, k] * prototypes[k, y, x] for k in range(prototypes.shape[0]))


@helper
def _cut_out(
    sums: Any, boxes: Any, top: dala.f32, left: dala.f32, down: dala.f32, across: dala.f32
) -> Any:
    i, y, x = dala.position(3)
    last_row, last_column = sums.shape[1] - 1, sums.shape[2] - 1
    v = min(max((dala.f32(y) + 0.5) * down + top - 0.5, 0.0), dala.f32(last_row))
    u = min(max((dala.f32(x) + 0.5) * across + left - 0.5, 0.0), dala.f32(last_column))
    row, column = dala.s32(v), dala.s32(u)
    below, right = min(row + 1, last_row), min(column + 1, last_column)
    share_v, share_u = v - dala.f32(row), u - dala.f32(column)
    upper = sums[i, row, column] * (1.0 - share_u) + sums[i, row, right] * share_u
    lower = sums[i, below, column] * (1.0 - share_u) + sums[i, below, right] * share_u
    px, py = dala.f32(x) + 0.5, dala.f32(y) + 0.5
    inside = boxes[i, 0] <= px < boxes[i, 2] and boxes[i, 1] <= py < boxes[i, 3]
    return 1 if inside and upper * (1.0 - share_v) + lower * share_v > 0.0 else 0
