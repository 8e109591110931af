"""Decoded frames, as videos and cameras give them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.base.deprecation import renamed_attribute
from dala.base.record import record
from dala.media.video.reading.frame_conversion import image_from_frame


@record
class VideoFrame:
    """A decoded frame, and when it is shown."""

    decoded: Any
    """PyAV's frame, in the pixel format of the file."""
    index: int
    """How many frames were read before it."""
    time_s: float
    coded = renamed_attribute("VideoFrame", "coded", "decoded")

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.decoded.width, self.decoded.height

    def image(self) -> np.ndarray:
        """The pixels as RGB, or RGBA where there is transparency: u8, or f32 for deeper ones."""
        return image_from_frame(self.decoded)
