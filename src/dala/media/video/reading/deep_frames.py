"""Frames of more than 8 bits as images of u16 and back, by kernels on the current device."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.images.frames import Frame, new_buffer
from dala.kernels.image.deep_planes import colors_kernel, plane_kernel
from dala.media.video.reading.deep_formats import PACKED, DeepFormat, deep_format
from dala.media.video.reading.pyav import pyav
from dala.media.video.reading.video_info import ColorTags
from dala.runtime.buffers.buffer import Buffer, from_numpy

_COLORS = ("r", "g", "b")
_PLANES = ("x", "y", "z")


def converts(pixel_format: str) -> bool:
    """Returns whether frames of that format are converted here."""
    return pixel_format in PACKED or deep_format(pixel_format) is not None


def deep_image(frame: Any, colors: ColorTags) -> Buffer:
    """Returns a decoded frame as a u16 image on the current device: RGB, or RGBA with alpha.

    A level of chroma is that of all its pixels, as for 8 bits.
    """
    name, width, height = frame.format.name, frame.width, frame.height
    if name in PACKED:
        return from_numpy(_plane(frame, 0, width * PACKED[name]).reshape(height, width, -1))
    format = deep_format(name)
    assert format is not None
    matrix, range_ = colors.matrix_for(height), colors.range_for(name)
    weights = format.colors_of_planes(matrix, range_)
    params: dict[str, float] = {
        f"{color}{plane}": weights[i, k]
        for i, color in enumerate(_COLORS)
        for k, plane in enumerate((*_PLANES, ""))
    }
    planes = _planes(frame, format)
    output = new_buffer((height, width, 4 if format.has_alpha else 3), "u16")
    given = {
        **params,
        "opacity": 1 / format.white,
        "down": format.down,
        "across": format.across,
        "apart": 2 if format.is_paired else 1,
        "second": 1 if format.is_paired else 0,
    }
    colors_kernel(format.has_alpha).run(planes, output, given)
    return output


def _planes(frame: Any, format: DeepFormat) -> list[Buffer]:
    """Returns the three planes that colors are made of, and that of alpha; some may be the same."""
    width, across = frame.width, -(-frame.width // format.across)
    luma = from_numpy(_plane(frame, 0, width))
    if format.kind == "gray":
        return [luma] * 4
    if format.is_paired:
        chroma = from_numpy(_plane(frame, 1, 2 * across))
        return [luma, chroma, chroma, luma]
    chromas = [from_numpy(_plane(frame, number, across)) for number in (1, 2)]
    alpha = from_numpy(_plane(frame, 3, width)) if format.has_alpha else luma
    return [luma, *chromas, alpha]


def _plane(frame: Any, number: int, columns: int) -> np.ndarray:
    """Returns a plane's levels as a view."""
    plane = frame.planes[number]
    rows: np.ndarray = np.frombuffer(plane, "<u2").reshape(-1, plane.line_size // 2)
    return rows[: plane.height, :columns]


def deep_frame(image: np.ndarray | Buffer, pixel_format: str, colors: ColorTags) -> Any:
    """Returns an image as a frame in the given format, without alpha.

    Chroma is the mean over the pixels that share it; where the size is odd the edge counts twice.
    """
    height, width = image.shape[:2]
    frame = pyav().VideoFrame(width, height, pixel_format)
    format = deep_format(pixel_format)
    assert format is not None
    assert not format.has_alpha
    matrix, range_ = colors.matrix_for(height), colors.range_for(pixel_format)
    weights = format.planes_of_colors(matrix, range_)
    given = image if isinstance(image, Buffer) else Frame(image, _identity).buffer()
    shares = [(1, 1), (format.down, format.across), (format.down, format.across)]
    made = []
    for row, (down, across) in zip(weights, shares, strict=True):
        output = new_buffer((-(-height // down), -(-width // across)), "u16")
        names = ("red", "green", "blue", "base")
        plane_kernel(down, across).run([given], output, dict(zip(names, row, strict=True)))
        made.append(np.asarray(output))
    if format.is_paired:
        made[1:] = [np.stack(made[1:], -1).reshape(len(made[1]), -1)]
    for number, levels in enumerate(made[: len(frame.planes)]):
        _plane(frame, number, levels.shape[1])[:] = levels * format.unit
    return frame


def _identity(buffer: Buffer) -> Buffer:
    return buffer
