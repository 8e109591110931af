"""The list of filters: complete, true, and the same on the page as in the code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dala.gpu import compute
from dala.media import gpu, listing
from dala.media.catalogue import FILTERS

PAGE = Path(__file__).parent.parent.parent / "docs" / "filters.md"
OTHER_KERNELS = {"preprocess"}
"""Kernels that take an image and make something else of it."""
MODELLED = {"detect"}
"""Filters that run a model, whatever they are given: tests/media/test_modelled.py has them."""
OF_MODELS = {"model", "every"}
"""Parameters of filters that run a model where they are given no mask."""


def test_every_filter_is_listed_with_every_parameter():
    takes_an_image = {
        name for name, item in compute.kernels().items() if item["inputs"][:1] == ["image"]
    }
    assert set(FILTERS) - MODELLED == takes_an_image - OTHER_KERNELS
    for name, item in FILTERS.items():
        assert set(item.params) == set(gpu.filters()[name]["params"]), name
        if name not in MODELLED:
            assert set(item.params) - OF_MODELS == set(compute.kernels()[name]["params"]), name


def test_each_filter_says_what_it_is():
    for name, item in gpu.filters().items():
        assert item["doc"], name
        assert item["inputs"][0] == "image"
        for param in item["params"].values():
            assert param["kind"] in {
                "number", "whole", "choice", "flag", "colour", "matrix", "table", "size",
                "shape", "model",
            }  # fmt: skip
            if "choices" in param and param.get("default") is not None:
                assert param["default"] in param["choices"]
            if "least" in param and param.get("default") is not None:
                assert param["least"] <= param["default"] <= param["most"]


RANGED = [
    (name, param, end)
    for name, item in FILTERS.items()
    for param, about in item.params.items()
    if about.least is not None and param not in OF_MODELS
    if name not in ("crop", "convert", *MODELLED)
    for end in ("least", "most")
]


@pytest.mark.parametrize(("name", "param", "end"), RANGED)
def test_both_ends_of_a_range_are_taken(name, param, end):
    _run(name, {param: getattr(FILTERS[name].params[param], end)})


CHOSEN = [
    (name, param, value)
    for name, item in FILTERS.items()
    for param, about in item.params.items()
    if about.choices and name not in ("convert", *MODELLED)
    for value in about.choices
]


@pytest.mark.parametrize(("name", "param", "value"), CHOSEN)
def test_every_choice_is_taken(name, param, value):
    _run(name, {param: value})


NEEDED = {
    "brightness": {"value": 0.1},
    "contrast": {"value": 0.1},
    "saturation": {"value": 0.1},
    "hue": {"degrees": 10},
    "gamma": {"value": 1.5},
    "exposure": {"stops": 0.5},
    "color_matrix": {"matrix": np.eye(3)},
    "lut": {"table": np.zeros((2, 2, 2, 3))},
    "chroma_key": {"color": (0, 1, 0)},
    "rotate": {"degrees": 10},
    "warp_affine": {"matrix": np.eye(2, 3)},
}


def _run(name: str, params: dict) -> None:
    image = np.full((6, 7, 4), 90, np.uint8)
    others = {"layer": image, "background": image, "mask": image[..., 0]}
    with compute.device("cpu"):
        inputs = {item: others[item] for item in gpu.filters()[name]["inputs"][1:]}
        got = gpu.apply_filter(image, name, **inputs, **NEEDED.get(name, {}) | params)
    assert got.dtype == np.uint8


def test_the_page_lists_what_there_is():
    text = PAGE.read_text(encoding="utf-8")
    shown = text.partition("<!-- filters -->")[2].partition("<!-- end of filters -->")[0]
    assert shown.strip() == listing.markdown().strip()
