"""Products of matrices, with the epilogue that follows them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from dala.devices import current_device
from dala.errors import ModelError
from dala.kernels.base.builtin import written
from dala.kernels.tensor.matmul import matmul
from dala.ml.executor import native_convolutions as native
from dala.ml.executor.epilogue import Epilogue, Mask, Shape, reads
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.sizes import require
from dala.ml.onnx.contents import Node
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
    a, b_shape = context.input(), context.shape(1)
    if node.get("transA", 0):
        raise ModelError(f"{node}: transA is not computed by kernels.")
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    turned = bool(node.get("transB", 0))
    matrices = len(a.shape) == len(b_shape) == 2
    require(node, matrices, f"a is {a.shape} and b is {b_shape}: both have two axes")
    rows, made = b_shape[::-1] if turned else b_shape
    columns = a.shape[1]
    require(node, columns == rows, f"a {a.shape} has {columns} columns, but b has {rows} rows")
    shape = (a.shape[0], made)
    by, bias = ("columns", turned, alpha), ("row", beta, made)

    def columns_of(given: np.ndarray) -> np.ndarray:
        return (given.T if turned else given) * np.float32(alpha)

    def row_of(given: np.ndarray) -> np.ndarray:
        return np.resize(given.reshape(-1) * np.float32(beta), made)

    row = context.array(2)
    if row is not None and row.size != 1 and row.shape[-1] != row.size:
        raise ModelError(f"{node}: c is {row.shape}, but kernels add one row.")
    fits = row is None or row.size in (1, made)
    require(
        node, fits, f"c is {() if row is None else row.shape}, but the product has {made} columns"
    )
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
    """MatMul of matrices and batches of them."""
    wanted = _product_shape(context.node, context.shape(0), context.shape(1))
    constant = context.is_constant(1) and not context.is_constant(0)
    if constant and len(context.shape(1)) == 2 and current_device().is_host and 0 not in wanted:
        return _by_tiles(context, ("plain", _as_given), ("plain", _as_given), wanted)
    return _multiplied(context, wanted)


def _as_given(weight: np.ndarray) -> np.ndarray:
    return weight


def _multiplied(context: NodeContext, wanted: Shape) -> Iterator[Stage]:
    a, b = context.input(0), context.input(1)
    many_a, many_b = math.prod(a.shape[:-2]), math.prod(b.shape[:-2])
    out = context.output(wanted)
    if many_b == 1:
        rows = reshaped(a, (many_a * a.shape[-2], a.shape[-1]))
        target = reshaped(out, (rows.shape[0], b.shape[-1]))
        yield Stage(matmul, [rows, reshaped(b, b.shape[-2:])], target)
        return
    inputs = [reshaped(a, (many_a, *a.shape[-2:])), reshaped(b, (many_b, *b.shape[-2:]))]
    yield Stage(matmul, inputs, reshaped(out, (max(many_a, many_b), *wanted[-2:])))


def _product_shape(node: Node, a: Shape, b: Shape) -> Shape:
    """Returns the shape of a product; a batch that both have is the same, or one."""
    batches = [item[:-2] for item in (a, b) if math.prod(item[:-2]) > 1]
    if min(len(a), len(b)) < 2 or a[-1] != b[-2] or len(set(batches)) > 1:
        raise ModelError(f"{node} of {a} and {b} is not computed by kernels.")
    return (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])
