"""Filters that run a model by themselves: its mask tells people from what lies behind them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from dala.errors import ArgumentError, either
from dala.kernels.base.limits import Limit
from dala.kernels.base.parameters import declare, integer, other
from dala.lang.signature import Parameter
from dala.ml.catalog.entries import MODELS
from dala.ml.models.annotation import DETECT
from dala.ml.models.choice import chosen_model
from dala.ml.models.model import Model
from dala.runtime.kernels.kernel import KERNELS, Kernel

SEGMENTING = "selfie_segmentation"
"""The model that makes masks, unless another is given."""
MASKED = ("background_blur", "background_replace")
"""Filters whose last image is a mask, which a model makes where none is given."""
MASK = "mask"
MOST_FRAMES = 1000
_EVERY = integer(
    "after how many frames of a video the model is run again",
    1,
    unit="frames",
    usual=(1, 100),
    limit=Limit(1, MOST_FRAMES),
)
_MASKING = declare(
    model=other("model", "what makes the mask where none is given", SEGMENTING), every=_EVERY
)
_DETECTING = declare(every=_EVERY)


def filter_kernel(name: str | Kernel) -> Kernel:
    """Returns the kernel that a filter is; raises UnknownKernelError that suggests others."""
    if isinstance(name, Kernel):
        return name
    return DETECT if name == DETECT.name and name not in KERNELS else Kernel.lookup(name)


def filter_params(name: str | Kernel) -> tuple[Parameter, ...]:
    """What a filter takes beside images: what its kernel does, and what is said of its model."""
    kernel = filter_kernel(name)
    if name in MASKED:
        return (*kernel.params, *_MASKING)
    return (*kernel.params, *_DETECTING) if kernel is DETECT else kernel.params


def optional_images(name: str) -> tuple[str, ...]:
    """Returns the images that a filter can do without."""
    return (MASK,) if name in MASKED else ()


def takes_model(name: str | Kernel, params: Mapping[str, Any]) -> bool:
    """Returns whether the filter, so used, runs a model."""
    return filter_kernel(name) is DETECT or (name in MASKED and params.get(MASK) is None)


def model_of(name: str, params: Mapping[str, Any]) -> Model:
    """Returns the model that makes the masks of a filter."""
    given = params.get("model", SEGMENTING)
    is_file = isinstance(given, str | os.PathLike) and given not in MODELS
    return chosen_model(name, given, SEGMENTING if is_file else None)


def every_of(name: str, params: Mapping[str, Any]) -> int:
    """After how many frames the model is run again; an ArgumentError where it is no such number."""
    return int(_EVERY.hold(name, "every", params.get("every", 1)))


def step_kernel(name: str | Kernel, given: Mapping[str, Any]) -> tuple[Kernel, dict[str, Any]]:
    """Returns the kernel of a filter for one image, and the parameters that are left for it."""
    kernel, params = filter_kernel(name), dict(given)
    if isinstance(name, Kernel) or (name not in MASKED and kernel is not DETECT):
        return kernel, params
    if not takes_model(name, params):
        for item in _MASKING:
            if item.name in params:
                raise ArgumentError(
                    f"{name}: {item.name} is for the model that makes the mask, but mask is given "
                    f"too: leave one or the other out."
                )
        return kernel, params
    if every_of(name, params) != 1:
        raise ArgumentError(
            f"{name}: every = {params['every']} is for video, whose frames follow each other: "
            f"leave it out{either(', or give the filter to media.transcode()', '')}."
        )
    params.pop("every", None)
    if kernel is DETECT:
        return kernel, _loaded(params)
    from dala.ml.models.masks import masked  # with all that decodes what models give

    made = masked(kernel, model_of(name, params))
    return made, {key: item for key, item in params.items() if key not in (MASK, "model")}


def _loaded(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of `detect` with the model itself, so that no frame looks for it again."""
    if "model" not in params:
        return params
    model = chosen_model(DETECT.name, params["model"], params.pop("like", None))
    return {**params, "model": model}
