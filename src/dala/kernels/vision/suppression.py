"""Of boxes that overlap, the best.

The best candidates are put in order, and each has a row of bits that says which later ones it would
suppress. Then they are decided 32 at a time: within such a block one after another, which is quick
as all of it is in one word, and for all blocks after it side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

from dala.errors import ArgumentError, DtypeError, ShapeError
from dala.ir.types import F32, F64, S32, U32
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper
from dala.kernels.base.limits import SHARE, Limit
from dala.kernels.base.parameters import integer, number
from dala.kernels.base.results import position_dtype, require_size
from dala.kernels.tensor.elementwise import fill
from dala.kernels.tensor.ranking import top_k
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel, function
from dala.runtime.pipelines.composite import Stage

BLOCK = 32
"""Candidates that are decided together: the bits of a word."""
MOST_CANDIDATES = 8192
"""Each candidate has a bit for each other one: 8 MB."""


@composite(
    "*boxes_scores_classes",
    iou=number("the overlap above which a box is suppressed", 0.45, limit=SHARE),
    threshold=number("the score from which on a box counts", 0.0),
    candidates=integer(
        "how many of the best boxes are looked at", 1024, limit=Limit(1, MOST_CANDIDATES)
    ),
)
def non_maximum_suppression(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The positions of the boxes that overlap no better one, the best first, and -1 after the last

    Inputs are boxes (n, 4) as (x0, y0, x1, y1) and scores (n,), or these and classes (n,), where
    boxes of different classes do not suppress each other. A box is taken if its score is at least
    `threshold` and it shares no more than `iou` of its union with one taken before; of equal scores
    the first is better. At most as many are taken as the output is long, and only the best
    `candidates` are looked at. A box or score with NaN or infinity in it is none.
    """
    boxes, scores, *classes = _checked(inputs, output)
    iou, threshold, most = (params[name] for name in ("iou", "threshold", "candidates"))
    if 0 in output.shape:
        return
    n = scores.shape[0]
    count = min(n, most)
    if count == 0:
        yield Stage(fill, [], output, {"value": -1})
        return
    real = F64 if F64 in (boxes.scalar, scores.scalar) else F32
    usable, order = scratch((n,), real), scratch((count,), S32)
    yield Stage(_usable, [boxes, scores], usable, {"threshold": threshold})
    given = {"indices": True}
    yield from top_k.stages([reshaped(usable, (1, n))], reshaped(order, (1, count)), given)

    blocks = -(-count // BLOCK)
    corners, overlaps = scratch((4, count), real), scratch((blocks * BLOCK, blocks), U32)
    yield Stage(_corners_in_order, [boxes, order], corners)
    ordered = [scratch((count,), item.scalar) for item in (usable, *classes)]
    for item, target in zip((usable, *classes), ordered, strict=True):
        yield Stage(_in_order, [item, order], target)
    yield Stage(_overlap_kernel(bool(classes)), [corners, *ordered], overlaps, {"iou": iou})

    gone, after = scratch((blocks,), U32), scratch((blocks,), U32)
    yield Stage(_without_score, ordered[:1], gone)
    for block in range(blocks):
        yield Stage(_suppress, [overlaps, gone], after, {"block": block})
        gone, after = after, gone
    numbered = scratch(output.shape, S32)
    yield Stage(_number_those_left, [order, gone], numbered)
    yield Stage(_one_less, [numbered], output)


require_size(non_maximum_suppression, "the output is as long as boxes are wanted")
non_maximum_suppression.typed(position_dtype)


def _checked(inputs: Inputs, output: Buffer) -> Inputs:
    if len(inputs) not in (2, 3):
        raise ArgumentError(
            f"non_maximum_suppression takes boxes and scores, or boxes, scores and classes; "
            f"{len(inputs)} inputs were given."
        )
    boxes, *others = inputs
    if len(boxes.shape) != 2 or boxes.shape[1] != 4:
        raise ShapeError(
            f"non_maximum_suppression: boxes is {boxes.shape}, but they are (n, 4): x0, y0, x1, y1."
        )
    for name, item in zip(("scores", "classes"), others, strict=False):
        if item.shape != boxes.shape[:1]:
            raise ShapeError(
                f"non_maximum_suppression: {name} is {item.shape}, but boxes is {boxes.shape}: "
                f"give one for each box, {boxes.shape[:1]}."
            )
    if len(output.shape) != 1:
        raise ShapeError(
            f"non_maximum_suppression: the output is {output.shape}, but positions lie along one "
            f"axis: give (most boxes to take,)."
        )
    if output.scalar.is_float or output.scalar.kind != "s":
        raise DtypeError(
            f"non_maximum_suppression: the output is {output.dtype}, but positions are whole "
            f"numbers, and -1 after the last: give s32 or s64."
        )
    return inputs


# -- kernels ---------------------------------------------------------------------------------------


@function
def is_finite(value: Any) -> Any:
    return not (dala.isnan(value) or dala.isinf(value))


@function
def overlap(one: Any, other: Any, iou: Any) -> Any:
    """Whether two boxes (x0, y0, x1, y1) share more than iou of their union."""
    x0, y0, x1, y1 = one
    left, top, right, bottom = other
    across = max(min(x1, right) - max(x0, left), 0.0)
    down = max(min(y1, bottom) - max(y0, top), 0.0)
    area = max(x1 - x0, 0.0) * max(y1 - y0, 0.0)
    other_area = max(right - left, 0.0) * max(bottom - top, 0.0)
    shared = across * down
    return shared > iou * (area + other_area - shared)


@helper
def _usable(boxes: Any, scores: Any, threshold: dala.number) -> Any:
    (i,) = dala.position(1)
    score = scores[i]
    is_box = is_finite(boxes[i, 0]) and is_finite(boxes[i, 1])
    is_box = is_box and is_finite(boxes[i, 2]) and is_finite(boxes[i, 3])
    return score if is_box and is_finite(score) and score >= threshold else -math.inf


@helper
def _corners_in_order(boxes: Any, order: Any) -> Any:
    corner, j = dala.position(2)
    return boxes[order[j], corner]


@helper
def _in_order(x: Any, order: Any) -> Any:
    (j,) = dala.position(1)
    return x[order[j]]


@cache
def _overlap_kernel(by_class: bool) -> Kernel:
    @function
    def bit(box: Any, i: Any, j: Any, k: Any, iou: Any) -> Any:
        """The k-th bit of a word, if candidate i would suppress the later candidate j."""
        one = box[0, i], box[1, i], box[2, i], box[3, i]
        other = box[0, j], box[1, j], box[2, j], box[3, j]
        overlaps = overlap(one, other, iou)
        return dala.u32(1) << dala.u32(k) if overlaps and i < j else dala.u32(0)

    @function
    def turns(scores: Any, i: Any, first: Any) -> Any:
        """How many candidates from `first` on to compare with i; none if all of them come before.

        Those without a score come last. A loop of no turns costs nothing, but both sides of a
        condition are computed.
        """
        is_vain = first + BLOCK <= i or dala.isinf(scores[i]) or dala.isinf(scores[first])
        return 0 if is_vain else BLOCK

    def overlaps(box: Any, scores: Any, iou: dala.number) -> Any:
        i, word = dala.position(2)
        first = word * BLOCK
        return sum(bit(box, i, first + k, k, iou) for k in range(turns(scores, i, first)))

    def overlaps_by_class(box: Any, scores: Any, classes: Any, iou: dala.number) -> Any:
        i, word = dala.position(2)
        first, own = word * BLOCK, classes[i]
        return sum(
            bit(box, i, first + k, k, iou) if classes[first + k] == own else dala.u32(0)
            for k in range(turns(scores, i, first))
        )

    return helper(overlaps_by_class if by_class else overlaps)


@helper
def _without_score(scores: Any) -> Any:
    (word,) = dala.position(1)
    gone = dala.u32(0)
    for k in range(BLOCK):
        j = word * BLOCK + k
        if j >= scores.shape[0] or dala.isinf(scores[j]):
            gone |= dala.u32(1) << dala.u32(k)
    return gone


@helper
def _suppress(overlaps: Any, gone: Any, block: dala.s32) -> Any:
    (word,) = dala.position(1)
    here, mine = gone[block], gone[word]
    for k in range(BLOCK):
        if (here >> dala.u32(k)) & 1 == 0:
            row = block * BLOCK + k
            here |= overlaps[row, block]
            mine |= overlaps[row, word]
    return mine


@function
def _bits_set(word: Any) -> Any:
    pairs = word - ((word >> 1) & 0x55555555)
    fours = (pairs & 0x33333333) + ((pairs >> 2) & 0x33333333)
    return dala.s32((((fours + (fours >> 4)) & 0x0F0F0F0F) * 0x01010101) >> 24)


@helper
def _number_those_left(order: Any, gone: Any, out: dala.Out) -> Any:
    (i,) = dala.position(1)
    word, bit = i // BLOCK, i % BLOCK
    left = ~gone[word]
    before = _bits_set(left & ((dala.u32(1) << dala.u32(bit)) - 1))
    for k in range(word):
        before += _bits_set(~gone[k])
    if (left >> dala.u32(bit)) & 1 == 1:
        # What nobody writes stays 0, so positions are counted from 1.
        out[before] = order[i] + 1


@helper
def _one_less(x: Any) -> Any:
    return x - 1
