"""Images, as callers hold them, made into the tensors that models take."""

from __future__ import annotations

from typing import Any

from dala.devices import current_device, using
from dala.errors import ArgumentError, argument
from dala.images.frames import frame_of, new_buffer
from dala.ir.types import dtype_of
from dala.kernels.image.canvas import rows_and_columns
from dala.kernels.image.preprocess import preprocess as kernel
from dala.runtime.buffers.buffer import Buffer


def preprocess(
    image: Any,
    size: Any = None,
    *,
    normalize: str | bool | None = None,
    mean: Any = None,
    std: Any = None,
    layout: str = "nchw",
    fit: str = "stretch",
    order: str = "rgb",
    fill: float = 0.0,
    resize: int = 0,
    shape: Any = None,
    dtype: Any = "f32",
    out: Buffer | None = None,
) -> Buffer:
    """The image as a tensor (1, 3, h, w), or (1, h, w, 3) with layout "nhwc", on its device.

    The image is an array, a Pillow image or a Buffer; `size` is one number or (width, height), or
    `shape` is (height, width) in its place. Everything else is as the kernel `preprocess` has it:
    `fit` is "stretch", "crop" or "letterbox", with `fill` around it; `resize` is what the shorter
    side is made before the middle is cropped, as torchvision does it, 256 for 224; `normalize` is
    True, which it is unless `mean` or `std` are given instead, for ImageNet's mean and deviation
    ("imagenet" says the same), False or "unit" for 0..1, "signed" or "levels"; `order` is "rgb" or
    "bgr". With `out` the tensor is written there, and has its dtype.

    >>> import numpy as np
    >>> from dala import ml
    >>> ml.preprocess(np.zeros((300, 451, 3), np.uint8), 224)
    <Buffer f32 (1, 3, 224, 224) cpu>
    """
    frame = frame_of("preprocess", image)
    found = rows_and_columns("preprocess", {"size": size, "shape": shape}, 1)
    if found is None:
        raise ArgumentError(
            f"preprocess: give {argument('size', '(width, height)')}, such as "
            f"{argument('size', '(224, 224)', '224x224')}."
        )
    made = (1, *found, 3) if layout == "nhwc" else (1, 3, *found)
    is_plain = normalize is None and mean is None and std is None
    given: dict[str, Any] = {
        "size": size,
        "shape": shape,
        "layout": layout,
        "fit": fit,
        "order": order,
        "fill": fill,
        "resize": resize,
        "normalize": True if is_plain else normalize,
        "mean": mean,
        "std": std,
    }
    if out is not None and not isinstance(out, Buffer):
        raise ArgumentError(
            f"preprocess: out is a Buffer that holds the tensor, not {type(out).__name__}: make "
            f"one with buffer_zeros({made}, 'f32')."
        )
    pixels = frame.pixels
    with using(pixels.memory.device if isinstance(pixels, Buffer) else current_device()):
        tensor = new_buffer(made, dtype_of(dtype).name) if out is None else out
        kernel.run([frame.buffer()], tensor, given)
    return tensor
