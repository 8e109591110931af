"""Packing of scalars narrower than a word: several share each word of a storage buffer."""

from __future__ import annotations

from dala.ir.types import Scalar

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
    return f"({word} >> {offset}) & {field(scalar)}"


def field(scalar: Scalar) -> str:
    """Returns the bit mask of an element, as a literal."""
    return f"{(1 << 8 * scalar.size_bytes) - 1:#x}u"


def packed(scalar: Scalar, texts: list[str], first: int = 0) -> str:
    """Returns scalars packed into a word, starting at the place `first`."""
    width = 8 * scalar.size_bytes
    return " | ".join(f"({text} << {width * i}u)" for i, text in enumerate(texts, first))


def _log2(number: int) -> int:
    return number.bit_length() - 1
