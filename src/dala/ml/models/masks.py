"""Kernels that need a mask, with a model before them that makes it of the image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from dala.devices import current_device
from dala.errors import ModelError
from dala.ir.types import F32, S32
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper
from dala.kernels.image.images import require_image
from dala.kernels.image.preprocess import preprocess
from dala.ml.catalog.entries import MODELS
from dala.ml.catalog.reading import Reading
from dala.ml.models.model import Model, tensor_shape
from dala.ml.models.recognition import preparation
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import CompositeKernel, HostCallKernel, Stage

_known: WeakValueDictionary[tuple[Any, ...], CompositeKernel] = WeakValueDictionary()
"""Recipes that somebody holds: a chain of filters is planned once for each."""


def masked(kernel: Kernel, model: Model) -> CompositeKernel:
    """The kernel without the last of its inputs, a mask, which the model makes of the first."""
    key = (kernel.name, id(kernel), id(model))
    known = _known.get(key)
    if known is None:
        making = mask_kernel(kernel.name, model)
        expand = partial(_expand, kernel, making, mask_shape(kernel.name, model))
        known = CompositeKernel(kernel.name, kernel.doc, kernel.inputs[:-1], kernel.params, expand)
        _known[key] = known
    return known


def _expand(
    kernel: Kernel,
    making: CompositeKernel,
    shape: tuple[int, int],
    inputs: Sequence[Buffer],
    output: Buffer,
    params: dict[str, Any],
) -> Iterator[Stage]:
    image = inputs[0]
    if 0 in image.shape:
        mask = scratch(image.shape[:2], F32)
    else:
        mask = scratch(shape, F32)
        yield from making.stages([image], mask)
    yield Stage(kernel, [*inputs, mask], output, params)


def mask_shape(what: str, model: Model) -> tuple[int, int]:
    """The height and width of the masks that a model makes; a ModelError where it makes none."""
    entry = _entry(what, model)
    made = model.gives[0]
    axes = [axis for axis in made.fixed or () if axis != 1]
    if (
        len(model.gives) == 1
        and len(axes) == 2
        and (entry.decoding == "argmax" or made.dtype == "f32")
    ):
        return axes[0], axes[1]
    given = ", ".join(f"{item.name}: {item}" for item in model.gives)
    raise ModelError(
        f"{what}: {model.name} is to make masks as {entry.name} does, one output of (1, height, "
        f"width), but it gives {given}."
    )


def mask_kernel(what: str, model: Model) -> CompositeKernel:
    """A kernel that makes an image into a mask, f32 of the model's size: 1 where somebody is."""
    entry = _entry(what, model)
    is_of_classes = entry.decoding == "argmax"
    people = entry.names.index("person") if is_of_classes else 0

    def write_people(tensor: np.ndarray, out: np.ndarray) -> None:
        """1 where the likeliest class is that of people, else 0"""
        (classes,) = model.outputs([tensor]).values()
        np.equal(classes.reshape(out.shape), people, out=out, casting="unsafe")

    on_host = HostCallKernel(model.name, model.inputs, write_people)

    def expand(inputs: Sequence[Buffer], output: Buffer, _: dict[str, Any]) -> Iterator[Stage]:
        (image,) = inputs
        require_image(what, "the image", image)
        tensor = scratch(tensor_shape(entry), entry.dtype)
        yield from preprocess.stages([image], tensor, preparation(entry))
        shape = model.gives[0].fixed or ()
        if not is_of_classes:
            yield Stage(model, [tensor], reshaped(output, shape))
        elif model.runs_on(current_device()):
            classes = scratch(output.shape, S32)
            yield Stage(model, [tensor], reshaped(classes, shape))
            yield Stage(_is_class, [classes], output, {"index": people})
        else:
            yield Stage(on_host, [tensor], output)

    return CompositeKernel("mask", f"The mask of an image by {model.name}", ("image",), (), expand)


@helper
def _is_class(classes: Any, index: dala.s32) -> Any:
    return 1.0 if classes == index else 0.0


def _entry(what: str, model: Model) -> Reading:
    entry = model.entry
    if entry is not None and entry.task == "segmentation" and entry.fit == "stretch":
        return entry
    able = [item.name for item in MODELS.values() if item.task == "segmentation"]
    given = "was loaded without like=" if entry is None else f"is for {entry.task}"
    raise ModelError(
        f"{what} needs a model that makes masks, like {' or '.join(able)}, but {model.name} "
        f"{given}."
    )
