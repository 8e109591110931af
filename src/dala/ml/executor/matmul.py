"""Products of matrices, with the epilogue that follows them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from dala.devices import current_device
from dala.ir.types import F32
from dala.kernels.base.builtin import written
from dala.ml.executor import native_convolutions as native
from dala.ml.executor.epilogue import Epilogue, Mask, Shape, reads
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.pointwise import literal
from dala.ml.executor.sizes import broadcast, require
from dala.ml.executor.steps import Steps
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

MOST_OPERANDS = 4

Made = tuple[Any, Callable[[np.ndarray], np.ndarray]]
"""The role of a constant, and what makes it of what a node has."""


def gemm(context: NodeContext) -> Iterable[Stage]:
    """Gemm: alpha · a · b + beta · c."""
    node = context.node
    a, b = context.shape(), context.shape(1)
    matrices = len(a) == len(b) == 2
    require(node, matrices, f"a is {a} and b is {b}: both have two axes")
    count, columns = a[::-1] if node.get("transA", 0) else a
    rows, made = b[::-1] if node.get("transB", 0) else b
    require(node, columns == rows, f"a {a} has {columns} columns, but b has {rows} rows")
    c = context.shape(2) if node.has(2) else ()
    fits = broadcast(node, [(count, made), c]) == (count, made)
    require(node, fits, f"c is {c}, but the product is {(count, made)}")
    is_row = math.prod(c) == 1 or c in ((made,), (1, made))
    fixed = context.is_constant(1) and (not node.has(2) or context.is_constant(2))
    if fixed and is_row and not node.get("transA", 0) and 0 not in (count, columns, made):
        return _dense(context, (count, made))
    return _general(context, (count, made))


def _dense(context: NodeContext, shape: Shape) -> Iterable[Stage]:
    """Rows times a matrix that is known, and a row added, with the epilogue that follows."""
    node, a, made = context.node, context.input(), shape[1]
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    turned = bool(node.get("transB", 0))
    by, bias = ("columns", turned, alpha), ("row", beta, made)

    def columns_of(given: np.ndarray) -> np.ndarray:
        return (given.T if turned else given) * np.float32(alpha)

    def row_of(given: np.ndarray) -> np.ndarray:
        return np.resize(given.reshape(-1) * np.float32(beta), made)

    if current_device().is_host:
        return _by_tiles(context, (by, columns_of), (bias, row_of), shape)
    weight, added = context.weight(1, by, columns_of), context.bias(2, made, bias, row_of)

    def end(epilogue: Epilogue, operands: Sequence[Buffer], out: Buffer) -> Iterator[Stage]:
        yield dense_stage(a, weight, added, epilogue, operands, out)

    return context.defer(shape, end, dense_takes(shape))


def _by_tiles(context: NodeContext, by: Made, bias: Made, shape: Shape) -> Iterator[Stage]:
    """Defers a product with a constant to code for the CPU that computes it with its epilogue."""
    a = context.input()
    (role, make), (bias_role, make_bias) = by, bias
    weight = context.weight(1, ("tiles", role), lambda it: native.arranged_matrix(make(it)))
    added = context.bias(
        2, shape[-1], ("tiles", bias_role), lambda it: native.arranged_bias(make_bias(it))
    )

    def end(epilogue: Epilogue, operands: Sequence[Buffer], out: Buffer) -> Iterator[Stage]:
        yield native.product_stage([a, weight, added], operands, out, epilogue)

    return context.defer(shape, end, partial(native.takes_product, shape))


def _general(context: NodeContext, shape: Shape) -> Iterable[Stage]:
    """The product of any two matrices, and anything added that is broadcast to it."""
    node, steps = context.node, Steps()
    alpha, beta = literal(node.get("alpha", 1.0)), literal(node.get("beta", 1.0))
    a, b = (
        steps.transpose(context.input(i), (1, 0)) if node.get(name, 0) else context.input(i)
        for i, name in enumerate(("transA", "transB"))
    )
    out = context.output(shape, a.scalar)
    if node.has(2):
        text = f"{alpha} * x0 + {beta} * x1"
        steps.elementwise(text, steps.multiply(a, b), context.input(2), into=out)
    elif alpha == "1.0":
        steps.multiply(a, b, into=out)
    else:
        steps.elementwise(f"{alpha} * x0", steps.multiply(a, b), into=out)
    return steps


def dense_takes(shape: Shape) -> Callable[[Sequence[Shape]], bool]:
    """Returns whether what follows a product of rows (n, o) can be computed with it."""
    return lambda given: len(given) <= MOST_OPERANDS and _masks(shape, given) is not None


def _masks(shape: Shape, operands: Sequence[Shape]) -> tuple[Mask, ...] | None:
    """Returns which of (rows, columns) each operand has; None where it has others."""
    rows, columns = shape[:2]
    found = []
    for operand in operands:
        padded = ((1,) * (len(shape) - len(operand)) + tuple(operand))[:2]
        if padded[0] not in (1, rows) or padded[1] not in (1, columns):
            return None
        found.append((padded[0] == rows > 1, padded[1] == columns > 1))
    return tuple(found)


def dense_stage(
    x: Buffer,
    weight: Buffer,
    bias: Buffer,
    epilogue: Epilogue,
    operands: Sequence[Buffer],
    output: Buffer,
) -> Stage:
    """Returns the stage that multiplies rows (n, k) with weight (k, o), with bias and epilogue."""
    rows, made = x.shape[0], weight.shape[1]
    masks = _masks(output.shape, [item.shape for item in operands])
    assert masks is not None
    seen = [
        reshaped(item, tuple(n for n, has in zip((rows, made), mask, strict=True) if has) or (1,))
        for item, mask in zip(operands, masks, strict=True)
    ]
    kernel = _dense_kernel(epilogue, masks)
    return Stage(kernel, [x, weight, bias, *seen], reshaped(output, (rows, made)))


@cache
def _dense_kernel(epilogue: Epilogue, masks: tuple[Mask, ...]) -> Kernel:
    lines = [
        "i, j = dala.position(2)",
        "v0 = sum(x[i, k] * weight[k, j] for k in range(x.shape[1])) + bias[j]",
        *reads(masks, ["i", "j"]),
        *epilogue.lines,
        f"return {epilogue.result}",
    ]
    given = ", ".join(["x", "weight", "bias", *(f"o{i}" for i in range(len(masks)))])
    return written("dense", f"def dense({given}):\n    " + "\n    ".join(lines))


def multiply(context: NodeContext) -> Iterable[Stage]:
    """MatMul of matrices, batches of them that are broadcast, and vectors."""
    node, a, b = context.node, context.shape(0), context.shape(1)
    many = len(a) > 0 < len(b)
    require(node, many, f"a is {a} and b is {b}: numbers are no vectors")
    rows = a if len(a) > 1 else (1, *a)
    columns = b if len(b) > 1 else (*b, 1)
    fits = rows[-1] == columns[-2]
    require(node, fits, f"a {a} has {rows[-1]} columns, but b {b} has {columns[-2]}")
    batch = broadcast(node, [rows[:-2], columns[:-2]])
    shape = (*batch, *rows[-2:-1][: len(a) - 1], *columns[-1:][: len(b) - 1])
    floats = context.dtype(0) == context.dtype(1) == F32
    constant = context.is_constant(1) and not context.is_constant(0)
    on_host = current_device().is_host and floats and 0 not in (*a, *b)
    if on_host and constant and len(a) > 1 and len(b) == 2:
        return _by_tiles(context, ("plain", _as_given), ("plain", _as_given), shape)
    steps = Steps()
    out = context.output(shape, context.dtype())
    target = reshaped(out, (*batch, rows[-2], columns[-1]))
    given = (reshaped(context.input(0), rows), reshaped(context.input(1), columns))
    steps.multiply(*given, into=target)
    return steps


def _as_given(weight: np.ndarray) -> np.ndarray:
    return weight
