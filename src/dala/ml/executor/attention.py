"""Attention: queries that weigh values by how well their keys fit, and rotated embeddings."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

from dala.base.record import value
from dala.errors import ModelError
from dala.kernels.base.builtin import written
from dala.kernels.tensor.gathering import concat
from dala.ml.executor.epilogue import Mask, Shape
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.pointwise import literal
from dala.ml.executor.sizes import broadcast, require
from dala.ml.executor.steps import Steps
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

RAW, CAPPED, MASKED, SHARES = range(4)
"""What may be given as a further output: scores at each of their steps."""


@value
class _Rules:
    """Which keys a query may look at, and what its scores go through."""

    scale: float
    cap: float
    offset: int | None
    """How many keys come before the first query; None where lengths tell it."""
    is_causal: bool
    before: int
    after: int
    mask: Mask | None
    """Which axes the mask has."""
    mask_is_float: bool
    mask_length: int
    has_lengths: bool
    queries: int


def attention(context: NodeContext) -> Iterable[Stage]:
    """Attention, with grouped heads, masks, and keys and values of earlier calls."""
    node, steps = context.node, Steps()
    query, key, held = (_heads(context, steps, i) for i in range(3))
    past = key.shape[2]
    key, held = (_joined(context, steps, item, i) for i, item in ((1, key), (2, held)))
    past = key.shape[2] - past
    batch, heads, count, size = query.shape
    groups, total = key.shape[1], key.shape[2]
    fits = key.shape == (batch, groups, total, size) and held.shape[:3] == (batch, groups, total)
    fits = fits and heads % groups == 0
    require(node, fits, f"queries {query.shape}, keys {key.shape} and values {held.shape}")
    turned = steps.transpose(key, (0, 1, 3, 2))
    rows = reshaped(query, (batch, groups, heads // groups * count, size))
    shape = (batch, heads, count, total)
    scores = reshaped(steps.multiply(rows, turned), shape)
    rules, operands = _rules(context, shape, past, size)
    wanted = len(node.outputs) > 3 and bool(node.outputs[3])
    mode = node.get("qk_matmul_output_mode", 0)
    if not 0 <= mode <= SHARES:
        raise ModelError(f"{node}: qk_matmul_output_mode is {mode}, not 0 to 3.")
    more = context.output(shape, query.scalar, 3) if wanted else None
    if more is not None and mode in (RAW, CAPPED):
        plain = written("scores", _score_text(rules, masked=False, capped=mode == CAPPED))
        steps.run(plain, [scores], shape, into=more)
    masked = steps.run(
        _score_kernel(rules),
        [scores, *operands],
        shape,
        into=more if mode == MASKED else None,
        scalar=query.scalar,
    )
    flat = (batch * heads * count, total)
    into = more if mode == SHARES else None
    shares = steps.run(_share_kernel(), [reshaped(masked, flat)], flat, into=into)
    shares = reshaped(shares, (batch, groups, heads // groups * count, total))
    made = held.shape[3]
    if len(context.shape()) == 4:
        out = context.output((batch, heads, count, made), query.scalar)
        target = reshaped(out, (batch, groups, heads // groups * count, made))
        steps.multiply(shares, held, into=target)
        return steps
    apart = reshaped(steps.multiply(shares, held), (batch, heads, count, made))
    out = context.output((batch, count, heads * made), query.scalar)
    steps.transpose(apart, (0, 2, 1, 3), into=reshaped(out, (batch, count, heads, made)))
    return steps


def _heads(context: NodeContext, steps: Steps, index: int) -> Buffer:
    """An input as (batch, heads, places, size)."""
    node, x = context.node, context.input(index)
    if len(x.shape) == 4:
        return x
    name = "kv_num_heads" if index else "q_num_heads"
    heads = int(node.get(name, 0))
    fits = len(x.shape) == 3 and heads > 0 and x.shape[2] % heads == 0
    require(node, fits, f"{x.shape} are no places of {heads} heads ({name})")
    apart = reshaped(x, (*x.shape[:2], heads, x.shape[2] // heads))
    return steps.transpose(apart, (0, 2, 1, 3))


def _joined(context: NodeContext, steps: Steps, new: Buffer, index: int) -> Buffer:
    """Keys or values behind those of earlier calls, given out as well where that is wanted."""
    node, past = context.node, index + 3
    wanted = index < len(node.outputs) and bool(node.outputs[index])
    before = context.input(past) if node.has(past) else None
    if before is None:
        if wanted:
            steps.elementwise("x0", new, into=context.output(new.shape, new.scalar, index))
        return new
    rest = (*new.shape[:2], new.shape[3])
    fits = len(before.shape) == 4 and (*before.shape[:2], before.shape[3]) == rest
    require(node, fits, f"{before.shape} of before and {new.shape} do not fit each other")
    shape = (*new.shape[:2], before.shape[2] + new.shape[2], new.shape[3])
    into = context.output(shape, new.scalar, index) if wanted else None
    return steps.run(concat, [before, new], shape, {"axis": 2}, into=into, scalar=new.scalar)


def _rules(context: NodeContext, shape: Shape, past: int, size: int) -> tuple[_Rules, list[Buffer]]:
    """What becomes of scores, and the mask and the lengths that tell it."""
    node, operands = context.node, []
    batch, _, count, total = shape
    mask, has, length = context.input(3) if node.has(3) else None, None, total
    if mask is not None:
        length = mask.shape[-1] if mask.shape and mask.shape[-1] != 1 else total
        spread = broadcast(node, [mask.shape, (*shape[:3], length)]) == (*shape[:3], length)
        require(node, spread and length <= total, f"a mask of {mask.shape} is none for {shape}")
        padded = (1,) * (4 - len(mask.shape)) + mask.shape
        has = tuple(n != 1 for n in padded)
        operands.append(reshaped(mask, padded))
    if node.has(6):
        lengths = context.input(6)
        require(node, lengths.shape == (batch,), f"lengths are {lengths.shape}, not ({batch},)")
        operands.append(lengths)
    scale = node.get("scale")
    return _Rules(
        1.0 / math.sqrt(size) if scale is None else scale,
        node.get("softcap", 0.0),
        None if node.has(6) and not node.has(4) else past,
        bool(node.get("is_causal", 0)),
        int(node.get("left_window_size", -1)),
        int(node.get("right_window_size", -1)),
        has,
        mask is not None and mask.scalar.is_float,
        length,
        node.has(6),
        count,
    ), operands


@cache
def _score_kernel(rules: _Rules) -> Kernel:
    return written("scores", _score_text(rules, masked=True, capped=True))


def _score_text(rules: _Rules, *, masked: bool, capped: bool) -> str:
    """A kernel that scales scores, caps them, and leaves minus infinity for keys not looked at."""
    given, allowed = ["x"], []
    lines = ["b, h, i, j = dala.position(4)", f"v = x[b, h, i, j] * {literal(rules.scale)}"]
    if capped and rules.cap > 0:
        cap = literal(rules.cap)
        lines.append(f"v = {cap} * dala.tanh(v / {cap})")
    if masked and rules.mask is not None:
        given.append("mask")
        names = zip("bhij", rules.mask, strict=True)
        index = ", ".join(name if has else "0" for name, has in names)
        if rules.mask_is_float:
            lines.append(f"v = v + mask[{index}]")
        else:
            allowed.append(f"dala.s32(mask[{index}]) != 0")
        allowed.append(f"j < {rules.mask_length}")
    if masked and rules.has_lengths:
        given.append("lengths")
        allowed.append("j < lengths[b]")
    at = f"i + lengths[b] - {rules.queries}" if rules.offset is None else f"i + {rules.offset}"
    if masked and rules.is_causal:
        allowed.append(f"j <= {at}")
    if masked and rules.before >= 0:
        allowed.append(f"j >= {at} - {rules.before}")
    if masked and rules.after >= 0:
        allowed.append(f"j <= {at} + {rules.after}")
    lines.append(f"return v if {' and '.join(allowed)} else -1e999" if allowed else "return v")
    return f"def scores({', '.join(given)}):\n    " + "\n    ".join(lines)


@cache
def _share_kernel() -> Kernel:
    """A softmax of rows; where a row is minus infinity throughout, nothing has a share."""
    lines = [
        "i, _ = dala.position(2)",
        "n = x.shape[1]",
        "most = max(x[i, k] for k in range(n))",
        "top = 0.0 if most < -3e38 else most",
        "total = sum(dala.exp(x[i, k] - top) for k in range(n))",
        "share = 0.0 if total == 0.0 else 1.0 / total",
        "return dala.exp(x - top) * share",
    ]
    return written("shares", "def shares(x):\n    " + "\n    ".join(lines))


def rotated(context: NodeContext) -> Iterable[Stage]:
    """RotaryEmbedding: pairs of elements turned by an angle that depends on their place."""
    node, x, steps = context.node, context.input(), Steps()
    inner = len(x.shape) == 3
    shape = x.shape
    if inner:
        heads = int(node.get("num_heads", 0))
        fits = heads > 0 and x.shape[2] % heads == 0
        require(node, fits, f"{x.shape} are no places of {heads} heads (num_heads)")
        shape = (*x.shape[:2], heads, x.shape[2] // heads)
    require(node, len(shape) == 4, f"it takes three or four axes, not {x.shape}")
    size = int(node.get("rotary_embedding_dim", 0)) or shape[3]
    cosines, sines = context.input(1), context.input(2)
    by_place = node.has(3)
    batch, places = shape[0], shape[1] if inner else shape[2]
    rank = 2 if by_place else 3
    fits = size % 2 == 0 and size <= shape[3] and cosines.shape == sines.shape
    fits = fits and len(cosines.shape) == rank and cosines.shape[-1] == size // 2
    given = [reshaped(x, shape), cosines, sines]
    if by_place:
        given.append(context.input(3))
        fits = fits and given[3].shape == (batch, places)
    else:
        fits = fits and cosines.shape[:2] == (batch, places)
    require(node, fits, f"angles of {cosines.shape} are none for {size} of {x.shape}")
    kernel = _rotation_kernel(inner, size, by_place, bool(node.get("interleaved", 0)))
    steps.run(kernel, given, shape, into=context.output(x.shape, x.scalar))
    return steps


@cache
def _rotation_kernel(inner: bool, size: int, by_place: bool, interleaved: bool) -> Kernel:
    half = size // 2
    names = "b, s, h, k" if inner else "b, h, s, k"
    at = "at[b, s], q" if by_place else "b, s, q"
    if interleaved:
        pair = ["q, first = k // 2, k % 2 == 0", "other = k + 1 if first else k - 1"]
    else:
        pair = [f"q, first = k % {half}, k < {half}"]
        pair.append(f"other = k + {half} if first else k - {half}")
    lines = [
        f"{names} = dala.position(4)",
        *pair,
        f"beside = x[{names.replace('k', 'other')}]",
        f"turned = x * cosine[{at}] + (-beside if first else beside) * sine[{at}]",
        f"return turned if k < {size} else x",
    ]
    given = "x, cosine, sine, at" if by_place else "x, cosine, sine"
    return written("rotate", f"def rotate({given}):\n    " + "\n    ".join(lines))
