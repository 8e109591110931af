"""Packing of scalars narrower than a word: several share each word of a storage buffer."""

from __future__ import annotations

from dala.ir.types import BOOL, Scalar

WORD_BITS = 32


def is_packed(scalar: Scalar) -> bool:
    """Whether several of them share a word of storage."""
    return scalar.per_word > 1


def words_of_pixel(scalar: Scalar) -> int:
    """Returns the words of a packed pixel of four channels."""
    return 4 // scalar.per_word


def word_index(scalar: Scalar, element: str) -> str:
    """Returns the index of the word that holds an element."""
    return f"{element} >> {_log2(scalar.per_word)}u"


def bit_offset(scalar: Scalar, element: str) -> str:
    """Returns the bit offset of an element in its word."""
    return f"(({element} & {scalar.per_word - 1}u) << {_log2(8 * scalar.size_bytes)}u)"


def unpacked(scalar: Scalar, word: str, offset: str) -> str:
    """Returns the scalar at a bit offset of a word."""
    if scalar.kind == "s":
        spare = f"{WORD_BITS - scalar.bits}u"
        return f"bitcast<i32>({word} << ({spare} - {offset})) >> {spare}"
    bits = f"({word} >> {offset}) & {field(scalar)}"
    return f"(({bits}) != 0u)" if scalar == BOOL else bits


def stored(scalar: Scalar, text: str) -> str:
    """Returns the bits of a scalar as a word that has only them."""
    if scalar.kind == "s":
        return f"(bitcast<u32>({text}) & {field(scalar)})"
    return f"u32({text})" if scalar == BOOL else text


def field(scalar: Scalar) -> str:
    """Returns the bit mask of an element, as a literal."""
    return f"{(1 << 8 * scalar.size_bytes) - 1:#x}u"


def packed(scalar: Scalar, texts: list[str], first: int = 0) -> str:
    """Returns scalars packed into a word, starting at the place `first`."""
    width = 8 * scalar.size_bytes
    parts = [stored(scalar, text) for text in texts]
    return " | ".join(f"({text} << {width * i}u)" for i, text in enumerate(parts, first))


def _log2(number: int) -> int:
    return number.bit_length() - 1
