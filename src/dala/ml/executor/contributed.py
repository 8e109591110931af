"""Layers that exports for ONNX Runtime carry, of its own domain."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dala.errors import ModelError
from dala.ir.types import F32
from dala.kernels.tensor.reductions import reduce_mean
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.pointwise import literal
from dala.ml.executor.sizes import broadcast, require
from dala.ml.executor.steps import Steps
from dala.ml.onnx.contents import Node
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.pipelines.composite import Stage


def multiply_packed(context: NodeContext) -> Iterable[Stage]:
    """MatMulNBits: rows times a matrix whose columns are levels of 4 or 8 bits, in blocks."""
    node, x, steps = context.node, context.input(), Steps()
    rows, made = int(node.get("K", 0)), int(node.get("N", 0))
    fits = len(x.shape) > 0 and x.shape[-1] == rows
    require(node, fits, f"a is {x.shape}, but the weights have {rows} rows")
    order = context.array(4) if node.has(4) else None
    if order is not None and order.size:
        raise ModelError(f"{node}: g_idx, another order of rows, is not computed by kernels.")
    packed, scales, zeros = (context.array(i) for i in (1, 2, 3))
    assert packed is not None
    assert scales is not None
    said = tuple(node.get(name) for name in ("K", "N", "bits", "block_size"))
    role = ("unpacked", node.inputs[2:4], said)
    by = context.weight(
        1, role, lambda _: unpacked(node, packed, scales, zeros).T.astype(np.float32)
    )
    shape = (*x.shape[:-1], made)
    out = context.output(shape, F32)
    if not node.has(5):
        steps.multiply(x, by, into=out)
        return steps
    steps.elementwise("x0 + x1", steps.multiply(x, by), context.input(5), into=out)
    return steps


def unpacked(
    node: Node, packed: np.ndarray, scales: np.ndarray, zeros: np.ndarray | None
) -> np.ndarray:
    """The weights (N, K) that blocks of levels stand for."""
    bits, block = int(node.get("bits", 4)), int(node.get("block_size", 32))
    rows, made = int(node.get("K", 0)), int(node.get("N", 0))
    if bits not in (4, 8) or block < 1:
        raise ModelError(f"{node}: levels of {bits} bits in blocks of {block}, not of 4 or 8 bits.")
    blocks = -(-rows // block)
    wanted = made * blocks * block * bits // 8
    require(
        node,
        packed.size == wanted and scales.size == made * blocks,
        f"{packed.shape} and scales of {scales.shape} are no {made} columns of {blocks} blocks",
    )
    levels = _apart(packed.reshape(made, -1), bits).reshape(made, blocks, block)
    points = np.full((made, blocks), 1 << (bits - 1), np.float32)
    if zeros is not None:
        apart = zeros.reshape(made, -1)
        points = (_apart(apart, bits) if zeros.dtype == np.uint8 else apart)[:, :blocks]
    found = (levels.astype(np.float32) - points.astype(np.float32)[..., None]) * scales.reshape(
        made, blocks, 1
    )
    return np.asarray(found.reshape(made, blocks * block)[:, :rows])


def _apart(packed: np.ndarray, bits: int) -> np.ndarray:
    """Levels of bytes, the low half of each first."""
    if bits == 8:
        return packed
    return np.stack([packed & 15, packed >> 4], -1).reshape(packed.shape[0], -1)


def multiply_turned(context: NodeContext) -> Iterable[Stage]:
    """FusedMatMul: alpha · a · b, either of them transposed."""
    node, steps, parts = context.node, Steps(), []
    if node.get("transBatchA", 0) or node.get("transBatchB", 0):
        raise ModelError(f"{node}: transposed batches are not computed by kernels.")
    for index, name in enumerate(("transA", "transB")):
        x = context.input(index)
        require(node, len(x.shape) > 1, f"{x.shape} is no matrix")
        order = [*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2]
        parts.append(steps.transpose(x, order) if node.get(name, 0) else x)
    a, b = parts
    fits = a.shape[-1] == b.shape[-2]
    require(node, fits, f"a {a.shape} has {a.shape[-1]} columns, but b {b.shape} other rows")
    batch = broadcast(node, [a.shape[:-2], b.shape[:-2]])
    out = context.output((*batch, a.shape[-2], b.shape[-1]), a.scalar)
    alpha = literal(float(node.get("alpha", 1.0)))
    steps.elementwise(f"{alpha} * x0", steps.multiply(a, b), into=out)
    return steps


def skip_layer(context: NodeContext) -> Iterable[Stage]:
    """SkipLayerNormalization and SkipSimplifiedLayerNormalization: of a sum of two inputs."""
    node, x, steps = context.node, context.input(), Steps()
    simple = "Simplified" in node.op
    skip, scale = context.input(1), context.input(2)
    shift = None if simple or not node.has(3) else context.input(3)
    place = 3 if simple else 4
    given = [x, skip] + ([context.input(place)] if node.has(place) else [])
    fits = all(broadcast(node, [x.shape, item.shape]) == x.shape for item in given)
    fits = fits and scale.shape == x.shape[-1:]
    require(node, fits, f"{x.shape}, {skip.shape} and a scale of {scale.shape} do not fit")
    wanted = len(node.outputs) > 3 and bool(node.outputs[3])
    into = context.output(x.shape, x.scalar, 3) if wanted else None
    total = steps.elementwise(" + ".join(f"x{i}" for i in range(len(given))), *given, into=into)
    out = context.output(x.shape, x.scalar)
    _normalized(steps, total, scale, shift, node, out, simple=simple)
    return steps


def _normalized(
    steps: Steps,
    x: Buffer,
    scale: Buffer,
    shift: Buffer | None,
    node: Node,
    out: Buffer,
    *,
    simple: bool,
) -> None:
    epsilon, axes = literal(node.get("epsilon", 1e-5)), [len(x.shape) - 1]
    if not simple:
        x = steps.elementwise("x0 - x1", x, steps.reduce(reduce_mean, x, axes))
    squares = steps.reduce(reduce_mean, steps.elementwise("x0 * x0", x), axes)
    text = f"x0 / dala.sqrt(x1 + {epsilon}) * x2" + ("" if shift is None else " + x3")
    steps.elementwise(text, x, squares, scale, *([] if shift is None else [shift]), into=out)
