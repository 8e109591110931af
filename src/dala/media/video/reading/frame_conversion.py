"""Conversion between PyAV's frames and image arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.images.frames import levels_of
from dala.media.video.reading.deep_formats import deep_format
from dala.media.video.reading.video_info import ColorTags

KERNEL_FORMATS = {"yuv420p": "yuv420p", "yuvj420p": "yuv420p", "nv12": "nv12"}
"""Pixel formats that kernels convert, with the kernels' names for them."""
_COLORSPACES = {"bt601": "ITU601", "bt709": "ITU709", "bt2020": "BT2020"}
"""PyAV's names of matrices."""
_WITH_ALPHA = ("rgba", "bgra", "argb", "abgr", "yuva", "pal8", "ya", "gbrap")


def kernels_convert(pixel_format: str, width: int, height: int) -> bool:
    """Returns whether kernels convert such frames; PyAV converts odd sizes."""
    return pixel_format in KERNEL_FORMATS and width % 2 == 0 and height % 2 == 0


def has_alpha(pixel_format: str) -> bool:
    return pixel_format.startswith(_WITH_ALPHA)


def bits_per_channel(frame: Any) -> int:
    """Returns the bits per channel of a frame."""
    return max(int(component.bits) for component in frame.format.components)


def image_from_frame(frame: Any) -> np.ndarray:
    """Returns RGB, or RGBA if there is transparency: u8, or u16 for more than 8 bits."""
    from dala.media.video.reading.deep_frames import converts, deep_image

    name = frame.format.name
    if converts(name):
        return np.array(deep_image(frame, ColorTags.of(frame)))
    alpha = has_alpha(name)
    if bits_per_channel(frame) > 8:
        return np.asarray(frame.to_ndarray(format="rgba64le" if alpha else "rgb48le"))
    return np.ascontiguousarray(frame.to_ndarray(format="rgba" if alpha else "rgb24"))


def frame_from_image(image: np.ndarray, pixel_format: str, colors: ColorTags) -> Any:
    """Returns a frame in the given pixel format, from an RGB, RGBA or gray image."""
    from dala.media.video.reading.deep_frames import deep_frame
    from dala.media.video.reading.pyav import pyav

    if deep_format(pixel_format) is not None:
        return deep_frame(image, pixel_format, colors)
    image = levels_of(image)
    if image.ndim == 2:
        image = np.repeat(image[..., None], 3, -1)
    name = "rgb24" if image.shape[2] == 3 else "rgba"
    frame = pyav().VideoFrame.from_ndarray(np.ascontiguousarray(image), format=name)
    matrix, full = colors.matrix_for(image.shape[0]), colors.range_for(pixel_format) == "full"
    return frame.reformat(
        format=pixel_format,
        dst_colorspace=_COLORSPACES[matrix],
        dst_color_range="JPEG" if full else "MPEG",
    )
