"""Filters as users of OpenCV write them, into destinations that are there already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from benchmarks.contest import Call, Peer, made
from dala.gpu import compute

Images = Sequence[np.ndarray]
CONSTANTS = ("BORDER_", "COLOR_", "INTER_", "ROTATE_", "THRESH_", "WARP_")


@cache
def opencv_module() -> Any:
    import cv2

    cv2.setNumThreads(compute.device_info()["threads"])
    return cv2


def opencv(function: str, *given: Any, name: str = "OpenCV", **named: Any) -> Peer:
    """A function that takes the images, these arguments and a destination.

    Names of OpenCV's constants stand for them, so that a table of rows needs no OpenCV. It is not
    asked for its result, so what is not written to the destination does not count.
    """

    def make(images: Images, out: np.ndarray) -> Call:
        cv2 = opencv_module()
        call, values = getattr(cv2, function), [value_of(cv2, item) for item in made(given)]
        keys = {key: value_of(cv2, item) for key, item in named.items()}

        def run() -> None:
            call(*images, *values, dst=out, **keys)

        return run

    return Peer(name, make)


def opencv_steps(
    steps: Callable[[Any, Images, np.ndarray], Call], name: str = "OpenCV, several calls"
) -> Peer:
    """Several functions, one after another; what is between them is made once."""
    return Peer(name, lambda images, out: steps(opencv_module(), images, out))


def value_of(cv2: Any, given: Any) -> Any:
    """What a name of one of OpenCV's constants stands for, or of several joined by `+`."""
    if not isinstance(given, str) or not given.startswith(CONSTANTS):
        return given
    total = 0
    for part in given.split("+"):
        total |= getattr(cv2, part)
    return total
