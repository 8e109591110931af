"""Filters as users of Pillow write them. It has one thread, and makes its results itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.contest import Call, Peer, made

Images = Sequence[np.ndarray]
Work = Callable[..., Any]
"""Takes Pillow's module `Image`, the images, and what else is given."""


def pillow(work: Work, *given: Any, weighed: bool = True) -> Peer:
    """What Pillow makes of images, which are there before the clock starts.

    Unless weighed, four channels are left as they are: as RGBA Pillow multiplies colors by alpha
    when it resizes.
    """

    def make(images: Images, out: np.ndarray) -> Call:
        from PIL import Image

        shown, values = [_shown(Image, item, weighed) for item in images], made(given)
        return lambda: work(Image, *shown, *values)

    return Peer("Pillow", make)


def pillow_filter(kind: str, *given: Any) -> Peer:
    """A filter of Pillow's `ImageFilter`."""

    def make(images: Images, out: np.ndarray) -> Call:
        from PIL import ImageFilter

        chosen = getattr(ImageFilter, kind)(*made(given))
        return pillow(lambda _, shown: shown.filter(chosen)).make(images, out)

    return Peer("Pillow", make)


def pillow_planes(work: Work) -> Peer:
    """The same work on each channel, where Pillow has no pixels of that kind.

    Planes are taken apart before the clock starts, and put together when it has stopped.
    """

    def make(images: Images, out: np.ndarray) -> Call:
        from PIL import Image

        (image,) = images
        planes = [image] if image.ndim == 2 else list(np.moveaxis(image, -1, 0))
        shown = [Image.fromarray(np.ascontiguousarray(plane)) for plane in planes]
        return lambda: Planes([work(Image, plane) for plane in shown])

    return Peer("Pillow, by planes", make)


class Planes:
    """Channels that become one array when that is asked for."""

    def __init__(self, planes: list[Any]) -> None:
        self.planes = planes

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        arrays = [np.asarray(plane) for plane in self.planes]
        return arrays[0] if len(arrays) == 1 else np.stack(arrays, -1)


def _shown(image_module: Any, pixels: np.ndarray, weighed: bool) -> Any:
    if weighed or pixels.shape[2:] != (4,):
        return image_module.fromarray(pixels)
    size = pixels.shape[1::-1]
    return image_module.frombuffer("RGBX", size, pixels, "raw", "RGBX", 0, 1)
