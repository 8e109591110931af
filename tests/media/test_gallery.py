"""The page that shows every filter."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from dala import errors, media
from dala.media import gpu
from dala.media.showcase import gallery, gallery_page, sample
from dala.media.showcase.filter_examples import Material
from dala.media.showcase.gallery import write_gallery
from dala.media.showcase.gallery_page import Card

HEIGHT, WIDTH = 40, 60
FEW = ("grayscale", "blur", "brightness")


class Page(HTMLParser):
    """What a page names, and whether its tags are closed in order."""

    EMPTY = ("meta", "img", "input", "br", "link")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.files: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.files += [named[key] for key in ("src",) if key in named]
        self.links += [named["href"]] if "href" in named else []
        self.ids += [named["id"]] if "id" in named else []
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def few(monkeypatch):
    """A gallery of few filters, which is quick."""
    described = gpu.filters()
    monkeypatch.setattr(gallery, "filters", lambda: {name: described[name] for name in FEW})


def write(folder: Path) -> Path:
    return write_gallery(folder, height=HEIGHT, width=WIDTH)


def test_every_filter_is_on_the_page_with_its_pictures(device, tmp_path):
    index = write(tmp_path / "new" / "out")
    assert index == tmp_path / "new" / "out" / "index.html"
    page = Page(index.read_text(encoding="utf-8"))
    assert set(gpu.filters()) - {"detect"} <= {name.replace("-", "_") for name in page.ids}
    assert len(page.ids) == len(set(page.ids))
    for name in set(page.files):
        assert media.load(index.parent / name).ndim == 3, name
    beside = {item.name for item in index.parent.iterdir()}
    assert beside == {*page.files, "index.html", "sample.webp", "warm.cube"}
    assert all(link[0] == "#" and link[1:] in page.ids for link in page.links)
    assert [item.name for item in (tmp_path / "new").iterdir()] == ["out"]


def test_a_picture_is_what_the_filter_gives(device, tmp_path, few):
    index = write(tmp_path / "out")
    image = sample.picture(HEIGHT, WIDTH)
    material = Material(HEIGHT, WIDTH)
    for name in FEW:
        example = material.example(name, gpu.filters()[name])
        want = gpu.apply_filter(image, name, **example.params)
        np.testing.assert_array_equal(gallery.render(name, example, tmp_path), want)
        media.save(want, tmp_path / "want.webp", quality=88)
        shown = (index.parent / f"{name}.webp").read_bytes()
        assert shown == (tmp_path / "want.webp").read_bytes()


def test_the_page_loads_nothing_from_elsewhere(tmp_path, few):
    text = write(tmp_path / "out").read_text(encoding="utf-8")
    assert not re.search(r"https?:|//[a-z]|@import|url\(", text)


def test_texts_are_escaped():
    hostile = '<script>alert("x")</script>&'
    card = Card(
        name=hostile,
        group=hostile,
        doc=hostile,
        inputs=("image",),
        used={"value": hostile, "from": 1},
        params={hostile: {"kind": "choice", "choices": [hostile], "default": hostile}},
        before=hostile + ".webp",
        after='a" onload="b.webp',
        size=(6, 4),
        frame=(12, 8),
    )
    text = gallery_page.page([card], version=hostile, device=hostile)
    page = Page(text)
    assert text.count("<script>") == 1
    assert hostile not in text
    assert "onload=" not in text.replace("%20onload%3D", "")
    assert page.files == ["a%22%20onload%3D%22b.webp", *page.files[1:]]
    assert "12 × 8 becomes 6 × 4" in text


def test_the_call_is_written_as_one_would_write_it():
    card = Card(
        "blend",
        "g",
        "d",
        ("image", "layer"),
        {"mode": "add", "alpha": 0.5},
        {},
        *"ab",
        (1, 1),
        (1, 1),
    )
    assert gallery_page.call_text(card) == 'blend(image, layer, mode="add", alpha=0.5)'
    card = Card(
        "convert", "g", "d", ("image",), {"from": "rgba", "to": "gray"}, {}, *"ab", (1, 1), (1, 1)
    )
    assert gallery_page.call_text(card) == 'convert(image, to="gray", **{"from": "rgba"})'


def test_an_earlier_gallery_and_an_empty_folder_are_replaced(tmp_path, few):
    folder = tmp_path / "out"
    folder.mkdir()
    write(folder)
    (folder / "old.webp").write_bytes(b"of a filter that is no more")
    write(folder)
    assert not (folder / "old.webp").exists()
    assert (folder / "index.html").is_file()
    assert [item.name for item in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("inside", ["notes.txt", "index.html", "photo.webp", "folder.webp/x"])
def test_a_folder_with_something_else_is_left_as_it_is(tmp_path, few, inside):
    kept = tmp_path / "out" / inside
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")
    with pytest.raises(errors.FileError, match="something else than a gallery"):
        write(tmp_path / "out")
    assert kept.read_text() == "mine"
    assert [item.name for item in tmp_path.iterdir()] == ["out"]


def test_a_gallery_with_something_added_is_left_as_it_is(tmp_path, few):
    write(tmp_path / "out")
    (tmp_path / "out" / "folder.webp").mkdir()
    with pytest.raises(errors.FileError, match="something else"):
        write(tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(errors.FileError, match=r"notes\.txt"):
        write(tmp_path / "out")
    assert (tmp_path / "out" / "grayscale.webp").is_file()


def test_what_is_no_folder_is_refused(tmp_path, few):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(errors.FileError, match="is a file"):
        write(tmp_path / "file")
    with pytest.raises(errors.FileError, match="cannot be"):
        write(tmp_path / "file" / "out")
    for name in ("", None, 3, "a\0b"):
        with pytest.raises(errors.ArgumentError):
            write(name)
    assert [item.name for item in tmp_path.iterdir()] == ["file"]


def test_a_failure_half_way_leaves_the_earlier_gallery(tmp_path, few, monkeypatch):
    index = write(tmp_path / "out")
    before = {item.name: item.read_bytes() for item in index.parent.iterdir()}

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for module, name in ((gallery_page, "page"), (Path, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, full)
            with pytest.raises(errors.FileError, match="No space left"):
                write(tmp_path / "out")
        assert {item.name: item.read_bytes() for item in index.parent.iterdir()} == before
        assert [item.name for item in tmp_path.iterdir()] == ["out"]
    replace, calls = Path.replace, []

    def fail_at_the_end(path: Path, target: Path) -> Path:
        calls.append(path)
        if path.name == "new" and path.is_dir():
            raise OSError(28, "No space left on device")
        return replace(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail_at_the_end)
        with pytest.raises(errors.FileError, match="No space left"):
            write(tmp_path / "out")
    assert len(calls) > 2
    assert {item.name: item.read_bytes() for item in index.parent.iterdir()} == before
    with monkeypatch.context() as patch:
        patch.setattr(gallery, "apply_filter", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write(tmp_path / "none")
    assert [item.name for item in tmp_path.iterdir()] == ["out"]
