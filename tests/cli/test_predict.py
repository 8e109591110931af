"""What a model sees in pictures, and models in filters, as they are typed."""

from __future__ import annotations

import numpy as np
import pytest
from media import clips
from media.small_models import write_bright_class, write_bright_mask

from dala import media
from dala.cli.filter_syntax import completions, read_filter
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
