"""Decoded frames, as read from videos and cameras."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.base.deprecation import renamed_attribute
from dala.base.record import record
from dala.media.video.reading.frame_conversion import image_from_frame


@record
class VideoFrame:
    """A decoded frame and its presentation time."""

    decoded: Any
    """PyAV's frame, in the pixel format of the file."""
    index: int
    """The number of frames read before it."""
    time_s: float
    coded = renamed_attribute("VideoFrame", "coded", "decoded")

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.decoded.width, self.decoded.height

    def image(self) -> np.ndarray:
        """Returns RGB, or RGBA if there is transparency: u8, or u16 for more than 8 bits."""
        return image_from_frame(self.decoded)
