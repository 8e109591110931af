"""Filters as they are typed."""

from __future__ import annotations

import numpy as np
import pytest

from dala.cli.filter_syntax import completions, given_filter, read_filter
from dala.errors import ArgumentError, FileError, LimitError
from dala.media.video.filtering.video_filters import TIMED


@pytest.mark.parametrize(
    ("text", "name", "params"),
    [
        ("grayscale", "grayscale", {}),
        ("grayscale:", "grayscale", {}),
        ("blur:radius=3,sigma=1.5", "blur", {"radius": 3, "sigma": 1.5}),
        ("blur: radius = 3 , sigma=1.5", "blur", {"radius": 3, "sigma": 1.5}),
        ("blur:5", "blur", {"radius": 5}),
        ("blur:5,sigma=2", "blur", {"radius": 5, "sigma": 2.0}),
        ("blur:radius=auto,sigma=2", "blur", {"radius": None, "sigma": 2.0}),
        ("brightness:-0.2", "brightness", {"value": -0.2}),
        ("rotate:degrees=10,expand=yes", "rotate", {"degrees": 10.0, "expand": True}),
        ("rotate:degrees=10,expand=off", "rotate", {"degrees": 10.0, "expand": False}),
        ("flip:vertical", "flip", {"direction": "vertical"}),
        ("resize:1280x720", "resize", {"size": (1280, 720)}),
        ("resize:fit:64x36", "resize", {"size": "fit:64x36"}),
        ("resize:size=50%,method=area", "resize", {"size": "50%", "method": "area"}),
        ("chroma_key:#ff0000", "chroma_key", {"color": (1.0, 0.0, 0.0)}),
        ("chroma_key:color=0/0.5/1", "chroma_key", {"color": (0.0, 0.5, 1.0)}),
        ("letterbox:size=8x9,color=0.5", "letterbox", {"size": (8, 9), "color": (0.5,) * 3}),
        ("warp_affine:1:0:10/0:1:20", "warp_affine", {"matrix": [[1, 0, 10], [0, 1, 20]]}),
        ("warp_affine:matrix=1;0;10/0;1;20", "warp_affine", {"matrix": [[1, 0, 10], [0, 1, 20]]}),
        ("crop:width=10,height=auto", "crop", {"width": 10, "height": None}),
        ("background_blur:mask=auto,radius=3", "background_blur", {"mask": None, "radius": 3}),
        ("detect:yolo_v5,every=3", "detect", {"model": "yolo_v5", "every": 3}),
        ("lut:table=a,b.cube", "lut", {"table": "a,b.cube"}),
        (r"lut:table=a\,interpolation=b.cube", "lut", {"table": "a,interpolation=b.cube"}),
        ("convert:from=rgb,to=gray", "convert", {"from": "rgb", "to": "gray"}),
    ],
)
def test_a_text_is_read_by_the_kinds_of_its_parameters(text, name, params):
    assert read_filter(text) == (name, params)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no filter is named ''"),
        ("blurr", "no filter is named 'blurr'. Did you mean 'blur'?"),
        ("blur:radus=3", "Did you mean 'radius'?"),
        ("blur:radius=", "'' is not an integer, 0 to 1048576, usually 0 to 100"),
        (
            "blur:radius=1.5",
            "blur: radius: '1.5' is not an integer, 0 to 1048576, u",
        ),
        ("blur:sigma=wide", "blur: sigma: 'wide' is not a number, above 0, usually 0.1 to 50"),
        ("blur:radius=3,radius=4", "blur: radius is given twice"),
        ("blur:border=mirrored", "Did you mean 'mirror'?"),
        ("blur:premultiply=perhaps", "'perhaps' is not yes or no"),
        ("invert:3", "invert takes no parameters, but '3' was given"),
        ("invert:x=3", "invert takes no parameters, but 'x' was given"),
        ("rotate", "rotate needs degrees (a number, usually -180 to 180): -f rotate:degrees=…"),
        ("brightness:5", "brightness: value is a finite number from -1 to 1, not 5"),
        ("threshold:value=7", "threshold: value is a finite number from 0 to 1, not 7"),
        ("median:radius=3", "radius is 1 to 2, not 3: a larger one can be had by filtering again."),
        ("gamma:0", "gamma: value is a finite number above 0, not 0"),
        ("resize:1280", "'1280' is not a size such as 1280x720, 640x, x360, 50%"),
        ("letterbox:50%", "letterbox: size: '50%' is not a size such as 1280x720."),
        ("resize:0x8", "'0x8' is not a size such as"),
        ("chroma_key:color=255/0/0", "0/0.69/0.25 with parts of 0 to 1"),
        ("chroma_key:color=gren", "color: 'gren' is no color: give a name such as green, a code"),
        ("text:a,color=yelow", "0/0.69/0.25 with parts of 0 to 1. Did you mean 'yellow'?"),
        ("warp_affine:matrix=1:a", "rows of numbers, such as 1:0:10/0:1:20"),
        ("background_replace", "needs background (a picture's file): -f"),
        ("lut", "lut needs table (a .cube file)"),
    ],
)
def test_what_is_wrong_is_refused_with_what_is_allowed(text, said):
    with pytest.raises(ArgumentError) as refusal:
        read_filter(text)
    assert said in str(refusal.value)


def test_an_image_beside_the_frame_is_loaded(picture):
    name, params = read_filter("overlay:photo.png,x=10")
    assert name == "overlay"
    assert params["x"] == 10
    assert np.array_equal(params["layer"], picture)


def test_the_picture_of_a_layer_is_loaded(picture):
    name, params = read_filter("image:photo.png,scale=2,opacity=0.5")
    assert (name, params["scale"], params["opacity"]) == ("image", 2.0, 0.5)
    assert np.array_equal(params["source"], picture)


def test_a_picture_beside_the_frame_is_held_to_the_pixels_that_are_allowed(picture):
    assert read_filter("overlay:photo.png", largest_pixels=1200)[1]["layer"].shape == (30, 40, 3)
    with pytest.raises(LimitError, match=r"^overlay: layer: photo.png is 40 × 30, .* 1,199"):
        read_filter("overlay:photo.png", largest_pixels=1199)


def test_an_image_that_is_not_there_names_the_filter(folder):
    with pytest.raises(FileError, match=r"^overlay: layer: nothing.png cannot be read"):
        read_filter("overlay:nothing.png")


def test_a_document_leaves_a_mask_to_the_model_as_a_text_does(folder):
    given = {"mask": "auto", "model": "mine.onnx"}
    made = {"mask": None, "model": str(folder / "mine.onnx")}
    assert given_filter("background_blur", given, (), folder) == ("background_blur", made)


def test_filters_of_time_are_read_by_what_they_are_called_with(monkeypatch):
    def stamp(text: str, x: int = 0, opacity: float = 1.0, start=None):
        """A stamp."""

    monkeypatch.setitem(TIMED, "stamp", stamp)
    typed = "stamp:text=12, or so,x=3,opacity=1,start=1.5"
    assert read_filter(typed) == (
        "stamp",
        {"text": "12, or so", "x": 3, "opacity": 1.0, "start": 1.5},
    )
    with pytest.raises(ArgumentError, match="stamp needs text"):
        read_filter("stamp")


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ("text:12", {"text": "12"}),
        ("text:Hello, world,position=10/20", {"text": "Hello, world", "position": (10, 20)}),
        (
            "text:a,position=top-left,color=#ff0000",
            {"color": (1.0, 0.0, 0.0), "position": "top-left"},
        ),
        ("text:a,size=auto,end=2,margin=3", {"size": None, "end": 2.0, "margin": 3}),
        ("motion_blur:3", {"frames": 3}),
        ("temporal_denoise:strength=0.7", {"strength": 0.7}),
        ("frame_mix:0.5", {"amount": 0.5}),
    ],
)
def test_what_filters_of_time_take_is_read_by_its_name_and_type(text, params):
    assert params.items() <= read_filter(text)[1].items()


def test_names_parameters_and_choices_are_offered():
    assert [name for name, _ in completions("bl")] == ["blur", "blend"]
    assert [name for name, _ in completions("blur:radius=3,s")] == ["blur:radius=3,sigma="]
    assert [name for name, _ in completions("flip:direction=v")] == ["flip:direction=vertical"]
    assert [name for name, _ in completions("chroma_key:color=rebecca")] == [
        "chroma_key:color=rebeccapurple"
    ]
    assert list(completions("nothing:x")) == []
