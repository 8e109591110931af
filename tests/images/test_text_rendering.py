"""Text in the font that comes with dala: which letters it has, and what it says of others."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest

from dala import errors
from dala.images.drawing import Drawing
from dala.images.drawing_renderer import drawn
from dala.images.text_rendering import checked_text, rendered_text, require_font

ALPHABETS = {
    "Latin": [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x180), *range(0x1E80, 0x1EFA)],
    "Greek": [number for number in range(0x386, 0x3CF) if number not in (0x38B, 0x38D, 0x3A2)],
    "Cyrillic": [*range(0x400, 0x483)],
    "signs": [ord(letter) for letter in "–—…‘’“”„•€₽₴≈≠≤≥√∞←→↑↓■●▲☺✓"],
}


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_the_font_has_every_letter_of_these_alphabets(alphabet):
    text = "".join(map(chr, ALPHABETS[alphabet]))
    require_font("text", text, None)
    shown = {letter: rendered_text("text", letter, 24).coverage.tobytes() for letter in text}
    assert all(any(coverage) for coverage in shown.values())


def test_letters_of_each_alphabet_are_drawn(device):
    def image_of(text: str) -> np.ndarray:
        drawing = Drawing()
        drawing.draw_text(text, 4, 4, 32, "white")
        return drawn(np.zeros((60, 300, 3), np.uint8), drawing)

    whole = image_of("Grüße Ω Ж")
    assert (whole == 255).sum() > 500
    for other in ("Gruße Ω Ж", "Grüße O Ж", "Grüße Ω X"):
        assert (image_of(other) != whole).any()


def test_a_letter_and_its_accent_are_one():
    apart = unicodedata.normalize("NFD", "Grüße, Žluťoučký, ά")
    assert len(apart) > len("Grüße, Žluťoučký, ά")
    assert checked_text("text", apart) == "Grüße, Žluťoučký, ά"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a日b", r"has no 日 \(U\+65E5\): give font=… the path of a font that has"),
        ("日本 語", r"has no 日 \(U\+65E5\), 本 \(U\+672C\), 語 \(U\+8A9E\): give"),
        ("\U0001f680", r".*has no \U0001f680 \(U\+1F680\)"),
        ("\ue000", r"has no U\+E000"),
        ("".join(map(chr, range(0x4E00, 0x4E0C))), ".* and 4 more: give font"),
    ],
)
def test_what_the_font_does_not_have_is_refused_by_name(text, said):
    with pytest.raises(errors.ArgumentError, match=f"^text: the built-in font, .*, {said}"):
        rendered_text("text", text, 20)


def test_spaces_and_breaks_are_not_looked_for_in_a_font():
    assert rendered_text("text", "a\u00a0b\u2009c\u200bd\ne", 20).coverage.any()
