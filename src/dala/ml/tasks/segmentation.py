"""What each pixel shows: a class, or how likely it is part of something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dala.errors import ModelError
from dala.kernels.tensor.ranking import argmax
from dala.kernels.vision import masks
from dala.ml.catalog.reading import Reading
from dala.ml.results.placement import Placement
from dala.ml.results.results import Segmentation
from dala.ml.tasks.options import chosen
from dala.ml.tasks.outputs import Outputs, computed, require_output
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped


def decode_classes(
    outputs: Outputs, placement: Placement, entry: Reading, options: Mapping[str, Any]
) -> Segmentation:
    """The class of each pixel of the image, as u8: that of the nearest element of the output."""
    chosen(entry, options)
    names = entry.names
    count = len(names)
    shapes = ((1, None, None), (1, None, None, 1), (1, None, None, count), (1, count, None, None))
    found = require_output(outputs, entry, "classes", *shapes)
    indices = _largest(found, count)
    height, width = indices.shape
    area = placement.area((height, width))
    made = computed(masks.class_mask, [indices], placement.image, "u8", {"area": area})
    mask = np.asarray(made)
    highest = int(mask.max(initial=0))
    if highest >= count:
        raise ModelError(
            f"{entry.name}: the model says that there is a class {highest}, but there are labels "
            f"for 0 to {count - 1}: it was made for other classes."
        )
    return Segmentation(mask, names)


def _largest(found: Buffer, count: int) -> Buffer:
    """The class of each element, (height, width): as it is said, or that of the largest logit."""
    shape = found.shape
    if len(shape) == 3 or shape[3] == 1:
        return reshaped(found, shape[1:3])
    if shape[3] == count:
        return reshaped(computed(argmax, [found], shape[:3], "s32", {"axis": 3}), shape[1:3])
    planes = computed(argmax, [found], (1, *shape[2:]), "s32", {"axis": 1})
    return reshaped(planes, shape[2:])


def decode_probability(
    outputs: Outputs, placement: Placement, entry: Reading, options: Mapping[str, Any]
) -> Segmentation:
    """Returns how likely each pixel is of the last class, as f32 in 0..1, interpolated."""
    chosen(entry, options)
    made = soft_mask(outputs, placement, entry)
    return Segmentation(np.asarray(made), entry.names)


def soft_mask(outputs: Outputs, placement: Placement, entry: Reading) -> Buffer:
    """Returns the same mask on the device, for kernels that go on with it."""
    shapes = ((1, None, None, 1), (1, 1, None, None), (1, None, None))
    found = require_output(outputs, entry, "mask", *shapes)
    shape = found.shape
    size = shape[1:3] if len(shape) == 3 or shape[3] == 1 else shape[2:]
    height, width = size
    area = placement.area((height, width))
    return computed(
        masks.soft_mask, [reshaped(found, size)], placement.image, "f32", {"area": area}
    )
