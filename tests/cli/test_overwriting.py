"""What is there already is not replaced unasked."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from media.small_models import write_bright_class
from PIL import Image

from dala import errors, media
from dala.media.pictures import files

OLD = b"what was there before"
CTRL_C = ""


@pytest.fixture
def classes(folder):
    return write_bright_class(folder / "classes.onnx")


def written(name: str) -> bytes:
    return Path(name).read_bytes()


WRITING = {
    "a picture": (["process", "photo.png", "out.png", "-f", "invert"], "out.png"),
    "a video": (["process", "clip.mp4", "out.mp4"], "out.mp4"),
    "a GIF": (["process", "clip.mp4", "out.gif"], "out.gif"),
    "a list of filters": (["run", "list.json", "photo.png", "out.png"], "out.png"),
    "a pipeline": (["run", "pipeline.json", "photo.png", "out.png"], "out.png"),
    "a batch": (["batch", "photo.png", "--out", "made"], "made/photo.png"),
    "predictions": (
        ["predict", "classes.onnx", "photo.png", "--like", "mobilenet_v2", "-o", "out.png"],
        "out.png",
    ),
}


@pytest.fixture(params=WRITING)
def writing(request, folder, picture, clip, classes):
    """A command, and the file that it writes, which is there already."""
    (folder / "list.json").write_text('["invert"]')
    (folder / "pipeline.json").write_text(
        '{"version": 1, "buffers": {"a": {"shape": [30, 40, 3], "dtype": "u8"}, '
        '"b": {"shape": [30, 40, 3], "dtype": "u8"}}, '
        '"stages": [{"kernel": "invert", "inputs": ["a"], "output": "b"}]}'
    )
    arguments, target = WRITING[request.param]
    (folder / target).parent.mkdir(exist_ok=True)
    (folder / target).write_bytes(OLD)
    return arguments, target


def test_nothing_is_replaced_where_nobody_can_be_asked(refused, writing):
    arguments, target = writing
    said = refused(*arguments, code=1)
    assert f"{target} is there already: --overwrite (-y) replaces it, --skip-existing" in said
    assert written(target) == OLD


@pytest.mark.parametrize("option", ["--overwrite", "-y"])
def test_it_is_replaced_where_that_is_said(told, writing, option):
    arguments, target = writing
    code, _, err = told(*arguments, option)
    assert code == 0, err
    assert written(target) != OLD


def test_it_is_left_alone_where_that_is_said(told, writing):
    arguments, target = writing
    code, _, err = told(*arguments, "--skip-existing")
    assert code == 0
    assert "left out" in err
    assert written(target) == OLD


def test_programs_are_told_what_was_left_alone(answer, picture, folder):
    (folder / "out.png").write_bytes(OLD)
    said = answer("process", "photo.png", "out.png", "--skip-existing")
    assert said == {"ok": True, "source": "photo.png", "target": "out.png", "left_out": True}
    said = answer("batch", "photo.png", "--out", ".", "--to", "webp", "--skip-existing")
    assert len(said["made"]) == 1
    said = answer("batch", "photo.png", "--out", ".", "--to", "webp", "--skip-existing")
    assert (said["made"], said["left_out"]) == ([], ["photo.png"])


def test_both_options_at_once_are_refused(refused, picture):
    said = refused("process", "photo.png", "out.png", "-y", "--skip-existing")
    assert "exclude each other" in said


def test_a_batch_says_how_many_are_there_and_makes_none(refused, folder, picture):
    for name in ("a", "b", "c"):
        media.save(picture, folder / f"{name}.png")
    (folder / "made").mkdir()
    (folder / "made" / "b.png").write_bytes(OLD)
    said = refused("batch", "a.png", "b.png", "c.png", "--out", "made", code=1)
    assert "1 of 3 files are there already, such as made/b.png: --overwrite (-y) replaces" in said
    assert [item.name for item in (folder / "made").iterdir()] == ["b.png"]


@pytest.mark.slow
def test_a_gallery_and_a_demo_are_not_replaced_unasked(told, refused, folder):
    (folder / "page").mkdir()
    (folder / "page" / "index.html").write_bytes(OLD)
    assert "page/index.html is there already" in refused("gallery", "page", code=1)
    assert told("gallery", "page", "--skip-existing")[0] == 0
    assert written("page/index.html") == OLD
    (folder / "shown").mkdir()
    (folder / "shown" / "out.mp4").write_bytes(OLD)
    assert "shown/out.mp4" in refused("demo", "shown", code=1)
    code, out, _ = told("demo", "shown", "--skip-existing")
    assert code == 0
    assert "[5.0, 7.0, 9.0]" in out
    assert written("shown/out.mp4") == OLD
    assert told("demo", "shown", "-y")[0] == 0
    assert written("shown/out.mp4") != OLD


# -- over itself -----------------------------------------------------------------------------------


def test_a_picture_takes_its_own_place_only_where_that_is_said(told, refused, picture):
    before = written("photo.png")
    assert "photo.png is there already" in refused(
        "process", "photo.png", "photo.png", "-f", "invert", code=1
    )
    assert written("photo.png") == before
    assert told("process", "photo.png", "photo.png", "-f", "invert", "-y")[0] == 0
    np.testing.assert_array_equal(media.load("photo.png"), 255 - picture)


def test_a_picture_that_fails_on_its_way_into_its_own_place_stays(told, picture, monkeypatch):
    before = written("photo.png")

    def full(*_: object, **folders: object) -> None:
        raise OSError(28, "No space left on device")

    for filters in (["-f", "invert"], ["-f", "text:hi"]):
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", full)
            assert told("process", "photo.png", "photo.png", *filters, "-y")[0] == 1
        assert written("photo.png") == before
        assert [item.name for item in Path().iterdir() if item.name.startswith(".")] == []


def test_a_picture_with_text_takes_its_own_place_too(told, picture):
    assert told("process", "photo.png", "photo.png", "-f", "text:hi", "-y")[0] == 0
    assert not np.array_equal(media.load("photo.png"), picture)
    assert [item.name for item in Path().iterdir() if item.name.startswith(".")] == []


def test_a_batch_writes_pictures_over_themselves_only_where_that_is_said(told, refused, picture):
    said = refused("batch", ".", "--out", ".", "-f", "invert")
    assert (
        "written over itself: give another folder with --out, another format with --to, or -"
        in said
    )
    assert told("batch", ".", "--out", ".", "-f", "invert", "-y")[0] == 0
    np.testing.assert_array_equal(media.load("photo.png"), 255 - picture)


def test_a_video_is_never_written_over_itself(refused, clip):
    before = clip.read_bytes()
    said = refused("process", "clip.mp4", "clip.mp4", "-y")
    assert "clip.mp4 is the source itself: write to another name" in said
    assert clip.read_bytes() == before


@pytest.mark.parametrize("name", ["a.gif", "a.png", "folder"])
def test_no_call_destroys_its_own_source(folder, name):
    (folder / "folder").mkdir()
    image = Image.fromarray(np.full((8, 8, 3), 90, np.uint8))
    path = folder / ("folder/a.png" if name == "folder" else name)
    image.save(path)
    before = path.read_bytes()
    with pytest.raises(errors.ArgumentError, match="is the source itself"):
        media.transcode(folder / name, path, ["invert"])
    with (
        media.compose([folder / name, folder / name]) as both,
        pytest.raises(errors.ArgumentError, match="is the source itself"),
    ):
        media.transcode(both, path)
    assert path.read_bytes() == before


def test_what_is_no_file_is_written_into(told, picture):
    assert told("process", "photo.png", "out.webp", "-q")[0] == 0
    if Path("/dev/null").exists():
        Path("out.png").symlink_to("/dev/null")
        assert told("process", "photo.png", "out.png", "-q") == (0, "", "")


# -- asked on a terminal ---------------------------------------------------------------------------


def typed(folder: Path, arguments: list[str], answer: str) -> tuple[int, str]:
    """The exit code and what a terminal shows, once the question was answered."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "dala", *arguments],
        cwd=folder,
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "TERM": "dumb"},
    )
    shown, is_answered, ends_s = b"", False, time.monotonic() + 60
    # Our copy of their end stays open, so that nothing is lost that is on its way when they end.
    while time.monotonic() < ends_s:
        has_ended = running.poll() is not None
        if select.select([ours], [], [], 0.5 if has_ended else 0.1)[0]:
            shown += os.read(ours, 4096)
        elif has_ended:
            break
        if shown.endswith(b"] ") and not is_answered:
            is_answered = True
            if answer == CTRL_C:
                running.send_signal(signal.SIGINT)
            else:
                os.write(ours, answer.encode())
    os.close(ours)
    os.close(theirs)
    return running.wait(timeout=60), shown.decode()


@pytest.mark.parametrize(
    ("answer", "code", "is_replaced"),
    [("y\n", 0, True), ("yes\n", 0, True), ("\n", 1, False), ("n\n", 1, False)],
)
def test_who_sits_at_a_terminal_is_asked(folder, picture, answer, code, is_replaced):
    (folder / "out.png").write_bytes(OLD)
    ended, shown = typed(folder, ["process", "photo.png", "out.png"], answer)
    assert "out.png is there already: overwrite? [y/N] " in shown
    assert ended == code, shown
    assert (written("out.png") != OLD) is is_replaced
    if not is_replaced:
        assert "dala: out.png is there already, and nothing was written." in shown


def test_ctrl_c_at_the_question_ends_with_130(folder, picture):
    (folder / "out.png").write_bytes(OLD)
    ended, shown = typed(folder, ["process", "photo.png", "out.png"], CTRL_C)
    assert ended == 130, shown
    assert written("out.png") == OLD
    assert shown.splitlines()[1:] == ["dala: interrupted."]


@pytest.mark.parametrize(("answer", "made"), [("o\n", ["a", "b"]), ("s\n", ["a"]), ("n\n", [])])
def test_a_batch_asks_once(folder, picture, answer, made):
    (folder / "out").mkdir()
    for name in ("a", "b"):
        media.save(picture, folder / f"{name}.png")
    (folder / "out" / "b.png").write_bytes(OLD)
    ended, shown = typed(folder, ["batch", "a.png", "b.png", "--out", "out"], answer)
    assert "1 of 2 files are there already, such as out/b.png: overwrite or skip? [o/s/N] " in shown
    assert ended == (0 if made else 1)
    found = [path.stem for path in (folder / "out").iterdir() if path.read_bytes() != OLD]
    assert sorted(found) == made


def test_a_program_that_reads_json_is_not_asked(folder, picture):
    (folder / "out.png").write_bytes(OLD)
    ended, shown = typed(folder, ["process", "photo.png", "out.png", "--json"], "y\n")
    assert ended == 1
    assert "--overwrite (-y) replaces it" in shown
    assert written("out.png") == OLD


def test_python_replaces_what_it_is_told_to_write(tmp_path):
    (tmp_path / "a.png").write_bytes(OLD)
    files.save(np.zeros((4, 4), np.uint8), tmp_path / "a.png")
    assert media.load(tmp_path / "a.png").shape == (4, 4)
