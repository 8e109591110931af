"""Masks of another size: as large as the image that lies somewhere in them."""

from __future__ import annotations

from collections.abc import Iterator
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


def _spans(kernel: str, mask: Buffer, output: Buffer, area: Any) -> tuple[Span, Span]:
    for name, item in (("mask", mask), ("output", output)):
        if len(item.shape) != 2:
            raise ShapeError(f"{kernel}: the {name} is {item.shape}, not (height, width).")
    height, width = mask.shape
    if 0 in mask.shape and 0 not in output.shape:
        raise ShapeError(f"{kernel}: the mask is {mask.shape}: there is nothing to take.")
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
