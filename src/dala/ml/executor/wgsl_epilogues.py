"""What WGSL texts of convolutions share: their arguments, their epilogues, and how they store."""

from __future__ import annotations

from collections.abc import Sequence

from dala.base.record import value
from dala.ml.executor.epilogue import Epilogue, Mask

MOST_OPERANDS = 4
"""Operands of an epilogue: with its inputs and the output, a kernel binds no more than eight."""

_HEAD = """
struct Params {
  pixels: u32, columns: u32, channels: u32, made: u32, blocks: u32, groups: u32,
  height: u32, width: u32, tall: u32, wide: u32, down: u32, across: u32,
  apart_down: u32, apart_across: u32, top: i32, left: i32, zero: u32,
  rows: u32, run: u32, units: u32, segments: u32
}
@group(0) @binding(0) var<storage, read> x: array<INPUT>;
@group(0) @binding(1) var<storage, read> weight: array<WEIGHT>;
@group(0) @binding(2) var<storage, read> bias: array<WEIGHT>;
@group(0) @binding(3) var<storage, read_write> out: array<OUTPUT>;
@group(0) @binding(4) var<uniform> args: Params;
"""
COMPONENTS = "xyzw"


@value
class BoundEpilogue:
    """A epilogue, and which of (batch, channels, places) each of its operands has."""

    epilogue: Epilogue
    masks: tuple[Mask, ...]


def masks_of(shape: tuple[int, ...], operands: Sequence[tuple[int, ...]]) -> tuple[Mask, ...]:
    """Which of (batch, channels, places) each operand has, where it has all places or none."""
    batch, channels = shape[:2]
    places = shape[2:]
    found = []
    for operand in operands:
        padded = (1,) * (len(shape) - len(operand)) + tuple(operand)
        has = [padded[0] == batch, padded[1] == channels, padded[2:] == places]
        spread = [padded[0] == 1, padded[1] == 1, all(size == 1 for size in padded[2:])]
        if not all(a or b for a, b in zip(has, spread, strict=True)):
            return ()
        found.append(tuple(a and not b for a, b in zip(has, spread, strict=True)))
    return tuple(found)


def takes(shape: tuple[int, ...], operands: Sequence[tuple[int, ...]]) -> bool:
    """Returns whether a shader can compute an epilogue of such operands."""
    return len(masks_of(shape, operands)) == len(operands) <= MOST_OPERANDS


def text_of(main: str, replaced: dict[str, str], bound: BoundEpilogue, *, wide: bool) -> str:
    """Returns a text with its parts filled in, and what stores sums after the epilogue.

    That is `store` for one, or where places come in fours, `store_four` for as many.
    """
    element = "vec4<f32>" if wide else "f32"
    text = _HEAD.replace("OUTPUT", element) + _store(bound, wide=wide) + main
    for word, meaning in ({"INPUT": "f32"} | replaced).items():
        text = text.replace(word, meaning)
    return text


def _store(bound: BoundEpilogue, *, wide: bool) -> str:
    """Returns the operands' declarations, the epilogue, and a function that writes its result."""
    bindings, reads, names = [], [], []
    for i, (batch, channel, place) in enumerate(bound.masks):
        four = wide and place
        element = "vec4<f32>" if four else "f32"
        bindings.append(f"@group(0) @binding({5 + i}) var<storage, read> o{i}: array<{element}>;")
        index = "n" if batch else "0u"
        if channel:
            index = f"({index} * args.groups * args.made + o)"
        if place:
            index = f"({index} * args.pixels + p)"
        reads.append(f"  let x{i} = o{i}[{index}{' >> 2u' if four else ''}];")
        names.append((f"x{i}", four))
    target = "(n * args.groups * args.made + o) * args.pixels + p"

    def ended(component: str) -> str:
        given = [f"{name}{component}" if four else name for name, four in names]
        return f"epilogue({', '.join([f'sum{component}', *given])})"

    if wide:
        made = ", ".join(ended(f".{c}") for c in COMPONENTS)
        head, last = "store_four(sum: vec4<f32>", f"out[({target}) >> 2u] = vec4<f32>({made});"
    else:
        head, last = "store(sum: f32", f"out[{target}] = {ended('')};"
    return "\n".join(
        [
            *bindings,
            bound.epilogue.in_wgsl(len(bound.masks)),
            f"fn {head}, n: u32, o: u32, p: u32) {{",
            *reads,
            f"  {last}",
            "}\n",
        ]
    )
