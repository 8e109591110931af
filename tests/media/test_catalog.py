"""The list of filters: complete, and true."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dala.cli.filter_syntax import checked
from dala.errors import ArgumentError
from dala.gpu import compute
from dala.kernels.base import language
from dala.kernels.base.builtin import BuiltinKernel, DeclaredKernel, builtin
from dala.kernels.base.limits import ANY, SHARE
from dala.kernels.base.parameters import KINDS, DeclaredParameter, Param, number
from dala.media import gpu
from dala.media.filters.catalog import FILTERS, GROUPS, range_of
from dala.media.filters.model_filters import filter_params
from dala.runtime.kernels.kernel import KERNELS

OTHER_KERNELS = {"preprocess"}
"""Kernels that take an image and make something else of it."""
MODELLED = {"detect"}
"""Filters that always run a model: tests/media/test_models_in_video.py has them."""
OF_MODELS = {"model", "every"}
"""Parameters of filters that run a model where they are given no mask."""
Declaring = BuiltinKernel | DeclaredKernel
DECLARED: dict[str, dict[str, Param]] = {
    name: {item.name: item.about for item in filter_params(name)} for name in FILTERS
}


def test_every_filter_is_listed_with_every_parameter():
    takes_an_image = {
        name for name, item in compute.kernels().items() if item["inputs"][:1] == ["image"]
    }
    assert set(FILTERS) - MODELLED == takes_an_image - OTHER_KERNELS
    for name, params in DECLARED.items():
        assert set(params) == set(gpu.filters()[name]["params"]), name
        if name not in MODELLED:
            assert set(params) - OF_MODELS == set(compute.kernels()[name]["params"]), name
    assert [*dict.fromkeys(FILTERS.values())] == list(GROUPS)


def test_every_parameter_of_every_built_in_kernel_is_declared_in_one_line():
    built_in = [item for item in KERNELS.values() if isinstance(item, Declaring)]
    assert len(built_in) > 80
    for params in (*(item.params for item in built_in), *map(filter_params, FILTERS)):
        for item in params:
            assert isinstance(item, DeclaredParameter), item
            assert item.about.kind in KINDS
            assert item.about.doc
            if not item.required:
                item.about.hold(item.name, item.name, item.default)
            assert "\n" not in item.about.doc
            assert not item.about.doc.endswith("."), item.about.doc
            assert not item.about.doc[0].isupper() or item.about.doc[1].isupper(), item.about.doc


def test_a_declared_limit_holds_for_functions_of_the_language_too(device):
    @builtin(share=number("how much is kept", limit=SHARE))
    def keep_a_share(x, share: language.f32):
        return x * share

    try:
        x, out = compute.buffer([2.0], (1,), "f32"), compute.buffer_zeros((1,), "f32")
        with pytest.raises(ArgumentError, match="share is a finite number from 0 to 1"):
            compute.run_kernel("keep_a_share", [x], out, {"share": 1.5})
        compute.run_kernel("keep_a_share", [x], out, {"share": 0.5})
        assert compute.read_list(out) == [1.0]
        assert compute.kernels()["keep_a_share"]["params"]["share"]["doc"] == "how much is kept"
    finally:
        compute.Kernel.unregister("keep_a_share")


def test_a_word_that_is_not_known_is_refused_with_the_nearest():
    with pytest.raises(ArgumentError, match=r"mode 'multply' is not known.*you mean 'multiply'"):
        gpu.blend(np.zeros((2, 2), np.uint8), np.zeros((2, 2), np.uint8), mode="multply")


def test_each_filter_says_what_it_is():
    for name, item in gpu.filters().items():
        assert item["doc"], name
        assert item["inputs"][0] == "image"
        for param in item["params"].values():
            assert param["kind"] in {
                "number", "integer", "choice", "flag", "color", "matrix", "table", "size",
                "shape", "model",
            }  # fmt: skip
            if "choices" in param and param.get("default") is not None:
                assert param["default"] in param["choices"]
            if "least" in param and param.get("default") is not None:
                assert param["least"] <= param["default"] <= param["most"]


RANGED = [
    (name, param, end)
    for name, params in DECLARED.items()
    for param, about in params.items()
    if about.usual is not None and param not in OF_MODELS
    if name not in ("crop", "convert", *MODELLED)
    for end in (0, 1)
]


@pytest.mark.parametrize(("name", "param", "end"), RANGED)
def test_both_ends_of_a_range_are_taken(name, param, end):
    _run(name, {param: DECLARED[name][param].usual[end]})


LIMITED = [
    (name, param)
    for name, params in DECLARED.items()
    for param, about in params.items()
    if about.limit != ANY
]


def beyond(about: Param) -> list[float]:
    """The nearest numbers of one decimal, or whole ones, that are not within a limit."""
    limit, step = about.limit, 1 if about.kind == "integer" else 0.1
    ends = [limit.least if limit.above else limit.least - step]
    return ends + ([limit.most + step] if limit.most < np.inf else [])


def test_limits_reach_as_far_as_their_sliders():
    for name, param in LIMITED:
        limit, (least, most) = DECLARED[name][param].limit, DECLARED[name][param].usual
        assert limit.least <= least < most <= limit.most, (name, param)


@pytest.mark.parametrize(("name", "param"), LIMITED)
def test_what_is_beyond_a_limit_is_refused_with_both_numbers(name, param):
    for given in beyond(DECLARED[name][param]):
        for refused in (
            lambda given=given: checked(name, {param: given}, {}),
            lambda given=given: _run(name, {param: given}),
        ):
            with pytest.raises(ArgumentError) as refusal:
                refused()
            said = str(refusal.value)
            assert said.startswith(f"{name}: {param} is "), said
            numbers = [float(item) for item in re.findall(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", said)]
            assert set(DECLARED[name][param].limit.describe().values()) <= set(numbers), said
            assert given in numbers, said


OF_KERNELS = [
    (name, param) for name, param in LIMITED if name not in MODELLED and param not in OF_MODELS
]


@pytest.mark.parametrize(("name", "param"), OF_KERNELS)
def test_what_is_beyond_a_limit_is_refused_by_kernels_and_pipelines(device, name, param):
    image = compute.from_numpy(np.full((6, 7, 4), 90, np.uint8))
    mask = compute.from_numpy(np.full((6, 7), 90, np.uint8))
    inputs = [mask if item == "mask" else image for item in compute.Kernel.lookup(name).inputs]
    for given in beyond(DECLARED[name][param]):
        params = {**NEEDED.get(name, {}), param: given}
        out, pipeline = compute.buffer_zeros(image.shape, "u8"), compute.pipeline()
        with pytest.raises(ArgumentError, match=f"{name}: {param} is "):
            compute.run_kernel(name, inputs, out, params)
        with pytest.raises(ArgumentError, match=f"{name}: {param} is "):
            pipeline.add(kernel=name, inputs=inputs, output=out, params=params)
        assert not compute.read(out).any()


SLIDERS = [
    (name, param)
    for name, params in DECLARED.items()
    for param, about in params.items()
    if about.usual is not None and about.limit == ANY
    if name not in ("crop", "convert", *MODELLED)
]


@pytest.mark.parametrize(("name", "param"), SLIDERS)
def test_what_is_beyond_a_slider_without_a_limit_is_taken_and_said_to_be_usual(name, param):
    about = gpu.filters()[name]["params"][param]
    assert range_of(about) == f"usually {about['least']:g} to {about['most']:g}"
    _run(name, {param: 3 * about["most"]})


CHOSEN = [
    (name, param, value)
    for name, params in DECLARED.items()
    for param, about in params.items()
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
