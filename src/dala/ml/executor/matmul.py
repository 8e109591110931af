"""Products of matrices, with the epilogue that follows them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

import numpy as np

from dala.kernels.base.builtin import written
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
    if fixed and is_row and not node.get("transA", 0):
        return _dense(context, (count, made))
    return _general(context, (count, made))


def _dense(context: NodeContext, shape: Shape) -> Iterable[Stage]:
    """Rows times a matrix that is known, and a row added, with the epilogue that follows."""
    node, a, made = context.node, context.input(), shape[1]
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    turned = bool(node.get("transB", 0))
    by = context.weight(
        1, ("columns", turned, alpha), lambda given: (given.T if turned else given) * alpha
    )
    bias = context.bias(
        2, made, ("row", beta, made), lambda given: np.resize(given.reshape(-1) * beta, made)
    )

    def end(epilogue: Epilogue, operands: Sequence[Buffer], out: Buffer) -> Iterator[Stage]:
        yield dense_stage(a, by, bias, epilogue, operands, out)

    return context.defer(shape, end, dense_takes(shape))


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
    node, steps = context.node, Steps()
    a, b = context.input(0), context.input(1)
    many = len(a.shape) > 0 < len(b.shape)
    require(node, many, f"a is {a.shape} and b is {b.shape}: numbers are no vectors")
    rows = a.shape if len(a.shape) > 1 else (1, *a.shape)
    columns = b.shape if len(b.shape) > 1 else (*b.shape, 1)
    fits = rows[-1] == columns[-2]
    require(node, fits, f"a {a.shape} has {rows[-1]} columns, but b {b.shape} has {columns[-2]}")
    batch = broadcast(node, [rows[:-2], columns[:-2]])
    shape = [*batch]
    shape += [rows[-2]] if len(a.shape) > 1 else []
    shape += [columns[-1]] if len(b.shape) > 1 else []
    out = context.output(shape, a.scalar)
    target = reshaped(out, (*batch, rows[-2], columns[-1]))
    steps.multiply(reshaped(a, rows), reshaped(b, columns), into=target)
    return steps
