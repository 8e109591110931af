"""`dala batch`: many files, several at a time."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

from dala import media


@pytest.fixture
def many(folder, picture, clip):
    """A folder of pictures, one of them broken, with another folder inside, and a clip."""
    (folder / "in" / "deep").mkdir(parents=True)
    for name in ("a.png", "b.png", "deep/c.png"):
        shutil.copy(folder / "photo.png", folder / "in" / name)
    (folder / "in" / "broken.png").write_text("no picture", encoding="utf-8")
    (folder / "in" / "notes.txt").write_text("no picture", encoding="utf-8")
    (folder / "in" / ".hidden.png").write_text("no picture", encoding="utf-8")
    shutil.copy(clip, folder / "in" / "clip.mp4")
    return folder


def made(folder):
    return sorted(str(item.relative_to(folder)) for item in folder.rglob("*") if item.is_file())


def test_what_fails_is_listed_and_the_rest_is_made(told, many, picture):
    code, out, err = told("batch", "in", "--out", "out", "-f", "invert", "-r")
    assert (code, out) == (1, "")
    assert made(many / "out") == ["a.png", "b.png", "clip.mp4", "deep/c.png"]
    assert np.array_equal(media.load(many / "out" / "deep" / "c.png"), 255 - picture)
    lines = err.splitlines()
    assert sorted(line.split("] ")[0] for line in lines[:5]) == [f"[{i}/5" for i in range(1, 6)]
    assert lines[5].startswith("5 files: 4 made, 1 failed, in ")
    assert lines[6].startswith("dala: in/broken.png: is none of the pictures that are read")
    assert len(lines) == 7


def test_every_file_has_a_size_of_its_own(answer, folder):
    (folder / "in").mkdir()
    for name, shape in {"wide": (20, 60), "tall": (60, 20), "small": (5, 5)}.items():
        media.save(np.zeros((*shape, 3), np.uint8), folder / "in" / f"{name}.png")
    answer("batch", "in", "--out", "out", "--size", "fit:40x30")
    sizes = {path.stem: media.load(path).shape[1::-1] for path in (folder / "out").iterdir()}
    assert sizes == {"wide": (40, 13), "tall": (10, 30), "small": (30, 30)}


def test_all_is_well_ends_with_0(told, many):
    code, _, err = told("batch", "in/*.mp4", "in/a.png", "-o", "out", "--workers", "1")
    assert code == 0
    assert made(many / "out") == ["a.png", "clip.mp4"]
    assert "2 files: 2 made, in " in err


def test_quiet_prints_failures_only(told, many):
    code, out, err = told("batch", "in", "--out", "out", "-q")
    assert (code, out) == (1, "")
    assert err.startswith("dala: in/broken.png: ")
    assert err.count("\n") == 1


def test_json_is_the_summary(answer, many):
    found = answer("batch", "in", "--out", "out", "--to", "webp", "in/a.png", code=1)
    assert sorted(item["source"] for item in found["failed"]) == ["in/broken.png", "in/clip.mp4"]
    assert sorted(item["target"] for item in found["made"]) == ["out/a.webp", "out/b.webp"]


def test_resume_leaves_out_what_is_made_already(answer, many):
    (many / "in" / "broken.png").unlink()
    answer("batch", "in", "--out", "out")
    (many / "out" / "b.png").unlink()
    os.utime(many / "out" / "clip.mp4", (0, 0))
    found = answer("batch", "in", "--out", "out", "--resume")
    assert found["left_out"] == ["in/a.png"]
    assert sorted(item["source"] for item in found["made"]) == ["in/b.png", "in/clip.mp4"]


def test_a_file_that_is_not_there_does_not_stop_the_others(answer, many):
    found = answer("batch", "in/a.png", "in/nope.png", "--out", "out", code=1)
    assert len(found["made"]) == 1
    assert found["failed"][0]["error"].startswith("is not there.")


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["in/*.tiff", "--out", "out"], "no file matches 'in/*.tiff'", 1),
        (["in/a.png", "in/deep/../../photo.png", "--out", "photo.png"], "is a file: --out", 1),
        (["in/a.png", "--out", "in"], "in/a.png would be written over itself: give another", 2),
        (["in", "--out", "in"], "would be written over itself: give another folder with --out", 2),
        (["in/a.png", "copy/a.png", "--out", "out"], "would both become out/a.png", 2),
        (["in", "--out", "out", "--to", "psd"], "--to psd: give one of png", 2),
        (["in", "--out", "out", "-f", "blurr"], "Did you mean 'blur'?", 2),
        (["in", "--out", "out", "--workers", "0"], "'--workers'", 2),
        (["empty", "--out", "out"], "there is no picture and no video in empty", 1),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_made(refused, many, arguments, said, code):
    (many / "empty").mkdir()
    assert said in refused("batch", *arguments, code=code)
    assert not (many / "out").exists()


def test_another_format_goes_beside_its_source(answer, many):
    (many / "in" / "broken.png").unlink()
    (many / "in" / "clip.mp4").unlink()
    found = answer("batch", "in", "--out", "in", "--to", "bmp")
    assert sorted(item["target"] for item in found["made"]) == ["in/a.bmp", "in/b.bmp"]


def test_a_video_that_cannot_be_written_as_it_is_named_says_what_to_do(refused, many):
    (many / "in" / "clip.mp4").rename(many / "in" / "clip.mpg")
    said = refused("batch", "in/clip.mpg", "--out", "out")
    assert (
        "in/clip.mpg: nothing is written as '.mpg': give another format, such as --to mp4" in said
    )


def test_a_bar_is_shown_on_a_terminal(told, many, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    code, _, err = told("batch", "in/clip.mp4", "in/a.png", "--out", "out")
    assert code == 0
    assert "2 of 2 files" in err


def test_ctrl_c_leaves_nothing_half_made(told, many, monkeypatch):
    def interrupt(*given, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr("dala.cli.batch_run.wait", interrupt)
    code, out, err = told("batch", "in/clip.mp4", "in/clip.mp4", "--out", "out")
    assert (code, out) == (130, "")
    assert err == (
        "dala: interrupted; 0 of 1 files are made: the same command with --resume goes on.\n"
    )
    target = many / "out" / "clip.mp4"
    if target.exists():  # it was finished before anybody could stop it: then it is whole
        frames = [len(list(media.open(path))) for path in (target, many / "in" / "clip.mp4")]
        assert frames[0] == frames[1]
