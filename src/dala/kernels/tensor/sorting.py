"""The order of the elements of rows."""

from __future__ import annotations

from collections.abc import Generator
from functools import cache
from typing import Any

import numpy as np

from dala.ir.types import BOOL, F32, F64, S32, S64, U8, Scalar
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper, host_call
from dala.lang.calls import Function
from dala.lang.language_names import SCALARS
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.kernels.kernel import Kernel, function
from dala.runtime.pipelines.composite import Stage

MANY = 1 << 12
"""Elements from which on a row is not sorted for a few of them."""
FEW = 8
"""How many times as many elements there are then, at least."""
BLOCK = 64
"""Elements of which the first is found together."""


def key_type(scalar: Scalar) -> Scalar:
    """The integer type of what elements of a type are ranked by."""
    return {F32: S32, F64: S64, BOOL: U8}.get(scalar.computed, scalar.computed)


@cache
def rank_function(scalar: Scalar, largest: bool) -> Function:
    """A function of the language: an integer that is the higher, the earlier the element comes."""
    whole = key_type(scalar)
    to, highest = SCALARS[whole.name], whole.highest
    is_float, is_number = scalar.is_float, scalar != BOOL
    infinity = int(np.array(np.inf, scalar.computed.numpy).view(whole.numpy)) if is_float else 0

    # Bits are looked at, not numbers: some devices take small numbers for 0, or know no NaN.
    @function
    def rank(value: Any) -> Any:
        """The key of a value; 0.0 and -0.0 have the same, NaN that of the largest."""
        key = value if is_number else to(value)
        if is_float:
            pattern = dala.bits(value, to)
            size = pattern & highest
            key = -size if pattern < 0 else size
            key = highest if size > infinity else key
        return key if largest else ~key

    return rank


@host_call("x")
def sort(x: np.ndarray, *, out: np.ndarray, largest: bool) -> None:
    """The positions of the first elements of each row, by NumPy's stable sort.

    Where these are few of many, what can be among them is found first.
    """
    count = out.shape[1]
    if x.dtype.kind == "V":  # NumPy has no order for bf16
        x = x.astype(np.float32)
    if x.shape[1] < MANY or count * FEW > x.shape[1]:
        out[...] = _in_order(x, largest)[:, :count]
        return
    for row, found in zip(x, out, strict=True):
        first = _first_of(row, count, largest)
        found[...] = first[_in_order(row[np.newaxis, first], largest)[0, :count]]


def _in_order(x: np.ndarray, largest: bool) -> np.ndarray:
    """The positions of the elements of rows, sorted; equal ones stay in their order."""
    # Backwards, equal elements stand in the order that turning the result round undoes.
    order = np.argsort(x[:, ::-1] if largest else x, axis=1, kind="stable")
    return np.subtract(x.shape[1] - 1, order[:, ::-1]) if largest else order


def _first_of(x: np.ndarray, count: int, largest: bool) -> np.ndarray:
    """The positions of the first elements, and of a few more.

    Each of the `count` best blocks has an element that is no worse than the last block's best.
    """
    blocks = x[: len(x) // BLOCK * BLOCK].reshape(-1, BLOCK)
    extremes = x
    if len(blocks) >= FEW * count:
        extremes = blocks.max(1) if largest else blocks.min(1)
    place = len(extremes) - count if largest else count - 1
    last = np.partition(extremes, place)[place]
    if last != last:  # NaN is the largest
        return np.flatnonzero(x != x) if largest else np.arange(len(x))
    return np.flatnonzero(~(x < last) if largest else x <= last)


def sorted_positions(x: Buffer, largest: bool) -> Generator[Stage, None, Buffer]:
    """Stages of a bitonic sort; the buffer they leave holds the positions of each row in order.

    Its rows are longer than those of x where these are no power of two: what follows is of no use.
    """
    rows, n = x.shape
    shape = (rows, 1 << (n - 1).bit_length())
    here, there = scratch(shape, S32), scratch(shape, S32)
    yield Stage(_own_position, [], here)
    kernel = _exchange_kernel(x.scalar, largest)
    block = 2
    while block <= shape[1]:
        distance = block // 2
        while distance:
            yield Stage(kernel, [x, here], there, {"distance": distance, "block": block})
            here, there = there, here
            distance //= 2
        block *= 2
    return here


@helper
def _own_position() -> Any:
    _, j = dala.position(2)
    return j


@cache
def _exchange_kernel(scalar: Scalar, largest: bool) -> Kernel:
    rank = rank_function(scalar, largest)

    # Two elements that stand `distance` apart are put in order: in every other block backwards, so
    # that a block and the next rise and fall, which is what the next passes need to merge them.
    def exchange(x: Any, where: Any, distance: dala.s32, block: dala.s32) -> Any:
        i, p = dala.position(2)
        n = x.shape[1]
        mine, other = where[i, p], where[i, p ^ distance]
        key, other_key = rank(x[i, mine]), rank(x[i, other])
        # Positions beyond the row come last, and equal elements in the order of their positions.
        by_position = key == other_key or mine >= n or other >= n
        is_first = mine < other if by_position else key > other_key
        wants_first = (p & distance == 0) == (p & block == 0)
        return mine if is_first == wants_first else other

    return helper(exchange)
