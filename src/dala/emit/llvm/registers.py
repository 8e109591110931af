"""Emits shuffles register by register: of longer vectors LLVM often moves single elements."""

from __future__ import annotations

from collections.abc import Sequence

from dala.emit.llvm.ir_writer import Operand, Writer

PIXEL = 4
"""So few are gathered from where they are, which LLVM merges with the shuffles before."""

Pick = tuple[int, int]
"""A register, and the place of an element in it."""


def parts_of(writer: Writer, vector: Operand, element: str, count: int) -> list[Operand]:
    """Returns the registers of a vector, of so many elements each."""
    total = length_of(vector)
    if total == count:
        return [vector]
    return [
        shuffled(writer, vector, vector, range(first, min(total, first + count)), element)
        for first in range(0, total, count)
    ]


def length_of(vector: Operand) -> int:
    return int(vector.type[1:].split(" x ")[0])


def shuffled(
    writer: Writer, a: Operand, b: Operand, places: Sequence[int], element: str
) -> Operand:
    """Emits elements of two vectors, by their places in both; below 0 there may be any."""
    picks = ", ".join(f"i32 {place}" if place >= 0 else "i32 poison" for place in places)
    text = f"shufflevector {a}, {b}, <{len(places)} x i32> <{picks}>"
    return writer.emit(f"<{len(places)} x {element}>", text)


def gathered(
    writer: Writer, sources: Sequence[Operand], picks: Sequence[Pick], element: str
) -> Operand:
    """Emits a register of elements of others, two of which are merged at a time."""
    used = sorted({source for source, _ in picks})
    count, found = length_of(sources[used[0]]), None
    for pair in (used[i : i + 2] for i in range(0, len(used), 2)):
        a, b = sources[pair[0]], sources[pair[-1]]
        places = [
            -1 if source not in pair else place + count * (source != pair[0])
            for source, place in picks
        ]
        if found is not None and len(pair) == 1:
            places = [i if place < 0 else count + place for i, place in enumerate(places)]
            return shuffled(writer, found, a, places, element)
        part = shuffled(writer, a, b, places, element)
        if found is None:
            found, known = part, places
            continue
        merged = [i if known[i] >= 0 else count + i for i in range(len(picks))]
        found = shuffled(writer, found, part, merged, element)
        known = [max(x, y) for x, y in zip(known, places, strict=True)]
    assert found is not None
    return found


def woven(writer: Writer, registers: Sequence[Operand], element: str) -> list[Operand]:
    """Emits the first elements of all registers, then the second ones, and so on.

    Of many, those with even and with odd numbers are woven first.
    """
    count = length_of(registers[0])
    if len(registers) == 1:
        return list(registers)
    if len(registers) % 2 or len(registers) <= PIXEL:
        places = [divmod(i, len(registers)) for i in range(len(registers) * count)]
        picks = [(source, place) for place, source in places]
        return [
            gathered(writer, registers, picks[first : first + count], element)
            for first in range(0, len(picks), count)
        ]
    pairs = zip(*(woven(writer, registers[i::2], element) for i in range(2)), strict=True)
    order = [i // 2 + i % 2 * count for i in range(2 * count)]
    return [
        shuffled(writer, a, b, half, element)
        for a, b in pairs
        for half in (order[:count], order[count:])
    ]
