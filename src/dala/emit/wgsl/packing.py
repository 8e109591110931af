"""Scalars that are narrower than a word: several lie in each word of a storage buffer."""

from __future__ import annotations

from dala.ir.types import Scalar

WORD_BITS = 32


def is_packed(scalar: Scalar) -> bool:
    """Whether several of them share a word of storage."""
    return scalar.per_word > 1


def words_of_pixel(scalar: Scalar) -> int:
    """The words that a pixel of four channels takes, where they are packed."""
    return 4 // scalar.per_word


def word_index(scalar: Scalar, element: str) -> str:
    """The number of the word that an element lies in."""
    return f"{element} >> {_log2(scalar.per_word)}u"


def bit_offset(scalar: Scalar, element: str) -> str:
    """Where in its word an element begins."""
    return f"(({element} & {scalar.per_word - 1}u) << {_log2(8 * scalar.size_bytes)}u)"


def unpacked(scalar: Scalar, word: str, offset: str) -> str:
    """The scalar that begins at a bit of a word."""
    return f"({word} >> {offset}) & {field(scalar)}"


def field(scalar: Scalar) -> str:
    """The bits that an element takes up, as a literal."""
    return f"{(1 << 8 * scalar.size_bytes) - 1:#x}u"


def packed(scalar: Scalar, texts: list[str], first: int = 0) -> str:
    """Scalars side by side in a word, from the place `first` on."""
    width = 8 * scalar.size_bytes
    return " | ".join(f"({text} << {width * i}u)" for i, text in enumerate(texts, first))


def _log2(number: int) -> int:
    return number.bit_length() - 1
