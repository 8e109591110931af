"""Conversion between PyAV's frames and image arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.media.video.reading.video_info import ColorTags

KERNEL_FORMATS = {"yuv420p": "yuv420p", "yuvj420p": "yuv420p", "nv12": "nv12"}
"""Pixel formats that kernels convert, with the kernels' names for them."""
DEEPEST_LEVEL = 65_535
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
    """Returns RGB, or RGBA if there is transparency: u8, or f32 in 0..1 for more than 8 bits."""
    alpha = has_alpha(frame.format.name)
    if bits_per_channel(frame) > 8:
        levels = frame.to_ndarray(format="rgba64le" if alpha else "rgb48le")
        return np.asarray(np.divide(levels, DEEPEST_LEVEL, dtype=np.float32))
    return np.ascontiguousarray(frame.to_ndarray(format="rgba" if alpha else "rgb24"))


def frame_from_image(image: np.ndarray, pixel_format: str, colors: ColorTags) -> Any:
    """Returns a frame in the given pixel format, from an RGB, RGBA or gray image."""
    from dala.media.video.reading.pyav import pyav

    if image.dtype == np.float32:
        # NaN becomes 0, as in kernels.
        levels = np.nan_to_num(image * DEEPEST_LEVEL, nan=0.0)
        image = np.rint(levels).clip(0, DEEPEST_LEVEL).astype(np.uint16)
    if image.ndim == 2:
        image = np.repeat(image[..., None], 3, -1)
    names = {(1, 3): "rgb24", (1, 4): "rgba", (2, 3): "rgb48le", (2, 4): "rgba64le"}
    name = names[image.itemsize, image.shape[2]]
    frame = pyav().VideoFrame.from_ndarray(np.ascontiguousarray(image), format=name)
    matrix, full = colors.matrix_for(image.shape[0]), colors.range_for(pixel_format) == "full"
    return frame.reformat(
        format=pixel_format,
        dst_colorspace="ITU709" if matrix == "bt709" else "ITU601",
        dst_color_range="JPEG" if full else "MPEG",
    )
