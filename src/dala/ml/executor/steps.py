"""Stages that are written down one after another, from buffers to buffers between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dala.ir.types import F32, Scalar
from dala.kernels.tensor.matmul import matmul, transposed
from dala.ml.executor.epilogue import Epilogue, Shape, pointwise_stage
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage


class Steps(list[Stage]):
    """Stages so far; each method adds some, and returns where their result will be.

    Results go `into` a buffer where one is given, else into scratch.
    """

    def elementwise(
        self,
        text: str,
        *operands: Buffer,
        into: Buffer | None = None,
        scalar: Scalar | None = None,
        lines: Sequence[str] = (),
    ) -> Buffer:
        """An expression of x0, x1 …, the elements of operands, which are broadcast."""
        if into is None:
            shape = np.broadcast_shapes(*(item.shape for item in operands))
            into = scratch(shape, scalar or operands[0].scalar)
        self.append(pointwise_stage(Epilogue(tuple(lines), text), operands, into))
        return into

    def run(
        self,
        kernel: Kernel,
        inputs: Sequence[Buffer],
        shape: Sequence[int],
        params: dict[str, Any] | None = None,
        *,
        into: Buffer | None = None,
        scalar: Scalar = F32,
    ) -> Buffer:
        """What a kernel computes over a shape."""
        if into is None:
            into = scratch(tuple(shape), scalar)
        self.append(Stage(kernel, inputs, reshaped(into, tuple(shape)), params or {}))
        return into

    def reduce(
        self, kernel: Kernel, x: Buffer, axes: Sequence[int], *, into: Buffer | None = None
    ) -> Buffer:
        """A reduction that leaves 1 in the place of each axis."""
        given = {axis % len(x.shape) for axis in axes}
        ones = tuple(1 if axis in given else size for axis, size in enumerate(x.shape))
        params = {"axis": tuple(sorted(given))}
        return self.run(kernel, [x], ones, params, into=into, scalar=x.scalar)

    def transpose(self, x: Buffer, order: Sequence[int], *, into: Buffer | None = None) -> Buffer:
        """The elements of x with its axes in another order."""
        shape = tuple(x.shape[axis] for axis in order)
        if into is None:
            matter = [axis for axis in order if x.shape[axis] != 1]
            if matter == sorted(matter):
                return reshaped(x, shape)
            into = scratch(shape, x.scalar)
        self.extend(transposed(x, into, tuple(order)))
        return into

    def spread(self, x: Buffer, shape: Shape) -> Buffer:
        """Elements repeated along axes of 1, up to a shape."""
        if math.prod(x.shape) == math.prod(shape):
            return reshaped(x, shape)
        return self.elementwise("x0", x, into=scratch(shape, x.scalar))

    def multiply(
        self, a: Buffer, b: Buffer, *, into: Buffer | None = None, scalar: Scalar | None = None
    ) -> Buffer:
        """Products of matrices, whose batches are broadcast; sizes fit each other."""
        rows, columns = a.shape[-2], b.shape[-1]
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        if into is None:
            into = scratch((*batch, rows, columns), scalar or a.scalar)
        many, many_a, many_b = (math.prod(s) for s in (batch, a.shape[:-2], b.shape[:-2]))
        if many_b == 1 and many == many_a:
            seen = [reshaped(a, (many * rows, a.shape[-1])), reshaped(b, b.shape[-2:])]
            self.append(Stage(matmul, seen, reshaped(into, (many * rows, columns))))
            return into
        parts = []
        for item, own in ((a, many_a), (b, many_b)):
            whole = own in (1, many)
            held = item if whole else self.spread(item, (*batch, *item.shape[-2:]))
            parts.append(reshaped(held, (own if whole else many, *item.shape[-2:])))
        self.append(Stage(matmul, parts, reshaped(into, (many, rows, columns))))
        return into
