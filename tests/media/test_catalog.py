"""The list of filters: complete, true, and the same on the page as in the code."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from dala.cli.filter_syntax import checked
from dala.errors import ArgumentError
from dala.gpu import compute
from dala.kernels.base.limits import LIMITS, Limit
from dala.media import gpu
from dala.media.filters import listing
from dala.media.filters.catalog import FILTERS, range_of

PAGE = Path(__file__).parent.parent.parent / "docs" / "filters.md"
OTHER_KERNELS = {"preprocess"}
"""Kernels that take an image and make something else of it."""
MODELLED = {"detect"}
"""Filters that always run a model: tests/media/test_models_in_video.py has them."""
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
                "number", "whole", "choice", "flag", "color", "matrix", "table", "size",
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


LIMITED = [(name, param) for name, limits in LIMITS.items() for param in limits]


def beyond(limit: Limit) -> list[float]:
    """The nearest numbers of one decimal, or whole ones, that are not within a limit."""
    step = 1 if limit.whole else 0.1
    ends = [limit.least if limit.above else limit.least - step]
    return ends + ([limit.most + step] if limit.most < np.inf else [])


def test_limits_are_those_of_filters_and_reach_as_far_as_their_sliders():
    for name, param in LIMITED:
        limit, slider = LIMITS[name][param], FILTERS[name].params[param]
        assert limit.whole == (slider.kind == "whole"), (name, param)
        assert limit.least <= slider.least < slider.most <= limit.most, (name, param)


@pytest.mark.parametrize(("name", "param"), LIMITED)
def test_what_is_beyond_a_limit_is_refused_with_both_numbers(name, param):
    limit = LIMITS[name][param]
    for given in beyond(limit):
        for refused in (
            lambda given=given: checked(name, {param: given}, {}),
            lambda given=given: _run(name, {param: given}),
        ):
            with pytest.raises(ArgumentError) as refusal:
                refused()
            said = str(refusal.value)
            assert said.startswith(f"{name}: {param} is "), said
            numbers = [float(item) for item in re.findall(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", said)]
            assert set(limit.describe().values()) <= set(numbers), said
            assert given in numbers, said


OF_KERNELS = [
    (name, param) for name, param in LIMITED if name not in MODELLED and param not in OF_MODELS
]


@pytest.mark.parametrize(("name", "param"), OF_KERNELS)
def test_what_is_beyond_a_limit_is_refused_by_kernels_and_pipelines(device, name, param):
    image = compute.from_numpy(np.full((6, 7, 4), 90, np.uint8))
    mask = compute.from_numpy(np.full((6, 7), 90, np.uint8))
    inputs = [mask if item == "mask" else image for item in compute.Kernel.lookup(name).inputs]
    for given in beyond(LIMITS[name][param]):
        params = {**NEEDED.get(name, {}), param: given}
        out, pipeline = compute.buffer_zeros(image.shape, "u8"), compute.pipeline()
        with pytest.raises(ArgumentError, match=f"{name}: {param} is "):
            compute.run_kernel(name, inputs, out, params)
        with pytest.raises(ArgumentError, match=f"{name}: {param} is "):
            pipeline.add(kernel=name, inputs=inputs, output=out, params=params)
        assert not compute.read(out).any()


SLIDERS = [
    (name, param)
    for name, item in FILTERS.items()
    for param, about in item.params.items()
    if about.least is not None and param not in LIMITS.get(name, {})
    if name not in ("crop", "convert", *MODELLED)
]


@pytest.mark.parametrize(("name", "param"), SLIDERS)
def test_what_is_beyond_a_slider_without_a_limit_is_taken_and_said_to_be_usual(name, param):
    about = gpu.filters()[name]["params"][param]
    assert range_of(about) == f"usually {about['least']:g} to {about['most']:g}"
    _run(name, {param: 3 * about["most"]})


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
    "detect": {"model": "blazeface"},
}


def _run(name: str, params: dict) -> None:
    image = np.full((6, 7, 4), 90, np.uint8)
    others = {"layer": image, "background": image, "mask": image[..., 0]}
    if name in MODELLED or OF_MODELS & set(params):
        others = {"background": image}  # a model makes the mask
    with compute.device("cpu"):
        wanted = gpu.filters()[name]["inputs"][1:]
        inputs = {item: others[item] for item in wanted if item in others}
        got = gpu.apply_filter(image, name, **inputs, **NEEDED.get(name, {}) | params)
    assert got.dtype == np.uint8


def test_the_page_lists_what_there_is():
    text = PAGE.read_text(encoding="utf-8")
    shown = text.partition("<!-- filters -->")[2].partition("<!-- end of filters -->")[0]
    assert shown.strip() == listing.markdown().strip()
