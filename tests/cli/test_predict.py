"""What a model sees in pictures, and models in filters, as they are typed."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from media import clips
from media.small_models import write_bright_class, write_bright_mask
from ml.yolo_models import columns, metadata, yolo_model

from dala import media
from dala.cli.filter_syntax import completions, read_filter
from dala.cli.predict_formats import _runs_by_column
from dala.media import gpu
from dala.ml.catalog.labels import labels
from dala.ml.models.loading import load_model

DARK, BRIGHT = labels("imagenet")[:2]


@pytest.fixture
def classes(folder):
    return write_bright_class(folder / "classes.onnx")


@pytest.fixture
def bright(folder):
    return write_bright_mask(folder / "bright.onnx")


@pytest.fixture
def pictures(folder):
    """dark.png and bright.png, as large as the labels that are drawn on them."""
    for name, level in (("dark", 10), ("bright", 250)):
        media.save(np.full((90, 160, 3), level, np.uint8), folder / f"{name}.png")
    return "dark.png", "bright.png"


def test_each_picture_is_told_with_how_sure_the_model_is(told, classes, pictures):
    code, out, err = told(
        "predict", "classes.onnx", *pictures, "--like", "mobilenet_v2", "--top", 1
    )
    assert (code, err) == (0, "")
    assert out == f"dark.png: {DARK}  100.0%\nbright.png: {BRIGHT}  100.0%\n"


def test_the_same_as_json(answer, classes, pictures):
    said = answer("predict", "classes.onnx", "bright.png", "--like", "mobilenet_v2", "--top", 2)
    assert said["ok"]
    assert said["model"] == "classes"
    assert said["engine"].startswith("onnxruntime")
    (picture,) = said["pictures"]
    assert (picture["picture"], picture["width"], picture["height"]) == ("bright.png", 160, 90)
    assert picture["drawn"] is None
    assert len(picture["results"]) == 2
    assert picture["results"][0] == {"index": 1, "label": BRIGHT, "score": 1.0}


def test_a_mask_is_told_by_the_shares_of_its_labels(told, bright, pictures):
    code, out, _ = told("predict", bright, "bright.png", "--like", "selfie_segmentation")
    assert (code, out) == (0, "bright.png: person  100.0%  of the picture\n")


def test_the_picture_with_the_results_is_written(told, folder, classes, pictures):
    like = ("--like", "mobilenet_v2")
    code, _, err = told("predict", classes, "bright.png", *like, "-o", "found.png")
    assert (code, err) == (0, "bright.png is drawn in found.png\n")
    image = media.load("bright.png")
    want = load_model(classes, like="mobilenet_v2")(image).draw(image)
    np.testing.assert_array_equal(media.load("found.png"), want)
    assert (want != image).any()


def test_several_pictures_are_written_into_a_folder(told, folder, classes, pictures):
    like = ("--like", "mobilenet_v2")
    assert told("predict", classes, *pictures, *like, "-o", "found", "-q")[::2] == (0, "")
    assert sorted(item.name for item in (folder / "found").iterdir()) == sorted(pictures)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("bright.png", "dark.png", "-o", "one.png"), "is one picture, but there are 2"),
        (
            ("bright.png", "-o", "bright.png"),
            "would be written over itself: choose",
        ),
        (("bright.png", "bright.png", "-o", "found"), "two pictures would become"),
        (("bright.png", "--top", "0"), "--top"),
        (("bright.png", "--threshold", "2"), "--threshold"),
        (("bright.png", "--threshold", "0.5"), "has no option --threshold; it takes --top."),
        (("bright.png", "--like", "mobilenet"), "no model is named 'mobilenet'"),
    ],
)
def test_what_is_typed_wrongly_is_refused(refused, classes, pictures, arguments, said):
    like = () if "--like" in arguments else ("--like", "mobilenet_v2")
    assert said in refused("predict", classes, *arguments, *like)


def test_an_unknown_model_is_refused_with_one_that_may_have_been_meant(refused, pictures):
    assert "Did you mean 'blazeface'?" in refused("predict", "blazefac", "dark.png")


def test_a_model_of_which_nothing_is_known_says_what_to_do(refused, classes, pictures):
    assert "was loaded without --like, " in refused("predict", classes, "dark.png")


def test_a_picture_that_is_not_there_is_said_to_be_missing(refused, classes):
    like = ("--like", "mobilenet_v2")
    assert "none.png" in refused("predict", classes, "none.png", *like, code=1)


# -- folders, videos, and what is written ----------------------------------------------------------


@pytest.fixture
def detector(folder):
    """A detector of version 8: one thing, the lighter the surer, where it always is."""
    made = columns([((32.0, 32.0, 20.0, 16.0), 1, 0.9), ((9.0, 40.0, 8.0, 8.0), 0, 0.3)], 2)
    path = folder / "yolo.onnx"
    path.write_bytes(yolo_model({"a": made}, metadata("detect", ("ant", "bee"))))
    return path


def test_what_cannot_be_read_is_said_and_the_rest_is_looked_at(told, folder, detector, pictures):
    (folder / "broken.png").write_bytes(b"no picture")
    code, out, err = told("predict", detector, "none.png", "broken.png", "dark.png", "-c", "bee")
    assert code == 1
    assert out == "dark.png: bee  90.0%  from 55, 25 to 105, 65\n"
    assert [line.startswith("dala: ") for line in err.splitlines()] == [True, True]
    assert "none.png" in err
    assert "broken.png" in err


def test_what_cannot_be_read_is_in_the_json_as_well(answer, folder, detector, pictures):
    said = answer("predict", detector, "none.png", "dark.png", code=1)
    assert not said["ok"]
    assert [item["source"] for item in said["failed"]] == ["none.png"]
    assert [item["picture"] for item in said["pictures"]] == ["dark.png"]


def test_json_lines_of_a_folder_have_one_line_for_each_picture(told, folder, detector, pictures):
    (folder / "notes.txt").write_text("not a picture", encoding="utf-8")
    (folder / "album").mkdir()
    for name in pictures:
        (folder / name).rename(folder / "album" / name)
    code, out, _ = told("predict", detector, "album", "--format", "jsonl", "--threshold", 0.5)
    assert code == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert [Path(line["source"]).name for line in lines] == ["bright.png", "dark.png"]
    assert (lines[0]["width"], lines[0]["results"][0]["label"]) == (160, "bee")


def test_csv_of_a_video_has_a_row_for_each_thing_of_each_frame(told, folder, detector, clip):
    code, _, err = told(
        "predict", detector, clip, "--track", "--frames", 3, "-o", "found.csv", "--top", 1
    )
    assert (code, err) == (0, "3 results are in found.csv\n")
    with (folder / "found.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["frame"], row["label"], row["track"]) for row in rows] == [
        ("0", "bee", "1"),
        ("1", "bee", "1"),
        ("2", "bee", "1"),
    ]
    assert float(rows[2]["time_s"]) == pytest.approx(0.2)


def test_coco_has_images_categories_and_boxes_with_their_sizes(told, folder, detector, pictures):
    assert told("predict", detector, "dark.png", "-o", "found.json", "-q")[0] == 0
    made = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    assert made["images"] == [{"id": 1, "file_name": "dark.png", "width": 160, "height": 90}]
    assert made["categories"] == [{"id": 1, "name": "ant"}, {"id": 2, "name": "bee"}]
    first = made["annotations"][0]
    assert (first["image_id"], first["category_id"]) == (1, 2)
    assert first["bbox"] == pytest.approx([55, 25, 50, 40])


def test_masks_are_in_coco_as_runs_along_columns():
    pixels = np.zeros((3, 2), bool)
    pixels[1:, 0] = pixels[0, 1] = True
    assert _runs_by_column(pixels) == [1, 3, 2]
    assert _runs_by_column(~pixels) == [0, 1, 3, 2]


def test_a_video_is_drawn_on_frame_by_frame(told, folder, detector, clip):
    code, _, err = told("predict", detector, clip, "-o", "found.mp4", "--frames", 4)
    assert (code, err) == (0, f"{clip} is drawn in found.mp4\n")
    drawn = clips.images(folder / "found.mp4")
    assert len(drawn) == 4
    assert np.ptp(drawn[0].astype(int), (0, 1)).max() > 50  # it was of one gray


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--format", "xml"), "--format xml is not one of jsonl, csv, coco"),
        (("--format", "csv", "-o", "a.png"), "--format csv is text, but --out a.png is a picture"),
        (("-o", "a.mp4"), "--out a.mp4 is a video, but dark.png is none"),
        (("-c", "wasp"), "'wasp', but classes are named by their labels"),
        (("--labels", "none.txt"), "none.txt cannot be read"),
    ],
)
def test_what_does_not_go_together_is_refused(refused, detector, pictures, arguments, said):
    code = 1 if "--labels" in arguments else 2
    assert said in refused("predict", detector, "dark.png", *arguments, code=code)


def test_a_classifier_has_no_boxes_for_coco_and_tracks_nothing(refused, classes, pictures):
    like = ("--like", "mobilenet_v2")
    assert "is for boxes" in refused("predict", classes, "dark.png", *like, "--format", "coco")
    assert "can track" in refused("predict", classes, "dark.png", *like, "--track")


# -- filters that run models -----------------------------------------------------------------------


def test_a_picture_is_filtered_by_the_models_mask(told, folder, bright, picture):
    chain = "background_blur:radius=3,model=bright.onnx"
    assert told("process", "photo.png", "out.png", "-f", chain, "-q")[0] == 0
    want = gpu.background_blur(picture, radius=3, model=bright)
    np.testing.assert_array_equal(media.load("out.png"), want)


def test_a_background_is_a_file_and_needs_no_mask(told, folder, bright, picture):
    media.save(picture[::-1], "beach.png")
    chain = "background_replace:background=beach.png,model=bright.onnx"
    assert told("process", "photo.png", "out.png", "-f", chain, "-q")[0] == 0
    want = gpu.background_replace(picture, picture[::-1].copy(), model=bright)
    np.testing.assert_array_equal(media.load("out.png"), want)


def test_every_is_taken_for_pictures_and_for_video(told, folder, classes, picture):
    clips.write_clip(folder / "clip.mp4", 6)
    chain = "detect:model=classes.onnx,like=mobilenet_v2,every=4"
    assert told("process", "photo.png", "out.png", "-f", chain, "-q")[0] == 0
    want = gpu.detect(picture, classes, like="mobilenet_v2")
    np.testing.assert_array_equal(media.load("out.png"), want)
    assert told("process", "clip.mp4", "out.mp4", "-f", chain, "-q")[0] == 0
    assert len(clips.images(folder / "out.mp4")) == 6


def test_a_model_beside_a_list_of_filters_is_found(told, folder, bright, picture):
    (folder / "look").mkdir()
    bright.rename(folder / "look" / "mask.onnx")
    text = '[[filters]]\nname = "background_blur"\nradius = 3\nmodel = "mask.onnx"\n'
    (folder / "look" / "look.toml").write_text(text, encoding="utf-8")
    assert told("run", "look/look.toml", "photo.png", "out.png", "-q")[0] == 0


def test_names_of_models_are_read_and_offered():
    text = "detect:model=yolo_v5,threshold=0.4,every=2"
    assert read_filter(text) == ("detect", {"model": "yolo_v5", "threshold": 0.4, "every": 2})
    assert [item for item, _ in completions("detect:model=b")] == ["detect:model=blazeface"]
    assert [item for item, _ in completions("detect:thr")] == ["detect:threshold="]


def test_dala_filters_tells_about_filters_that_run_models(told):
    _, out, _ = told("filters", "detect")
    assert "drawn over it" in out
    assert "a model's name, or an ONNX file; needed" in out
    assert "-f detect:model=blazeface" in out
