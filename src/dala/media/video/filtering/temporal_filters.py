"""Temporal filters, which use earlier frames: denoising, motion blur and mixing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dala.devices import using
from dala.errors import ArgumentError, DtypeError, ShapeError
from dala.images.frames import new_buffer
from dala.kernels.base.shapes import integer_of, number_within, positive_number
from dala.kernels.image.images import require_image
from dala.kernels.image.temporal import MOST_SHARE, mean_stages, mix_frames, settle, store
from dala.runtime.buffers.buffer import Buffer, from_numpy
from dala.runtime.profiling.profile import copy

MOST_FRAMES = 32
"""The most frames that `motion_blur` averages: 265 MB of 1080p RGBA."""


class _Remembering:
    """Keeps the last frames, the oldest first, on the device of the next one."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._frames: list[Buffer] = []
        # Uploaded once the device is known.
        self._restored: list[np.ndarray] = []

    def state(self) -> dict[str, np.ndarray]:
        """Returns the state that a resumed run needs."""
        kept = self._frames or self._restored
        return {str(number): np.array(frame) for number, frame in enumerate(kept)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Continues from a saved state."""
        names = [str(number) for number in range(len(state))]
        if set(state) != set(names) or len(names) > self._most:
            raise ArgumentError(
                f"{self._name}: {sorted(state)} is no state that it gave: of frames it keeps "
                f"{self._most} at most, named from 0 on."
            )
        self._frames = []
        self._restored = [np.array(state[name]) for name in names]

    def _past(self, image: Buffer, dtype: str) -> list[Buffer]:
        """Returns the earlier frames on the image's device; raises if shape or dtype changed."""
        require_image(self._name, "the frame", image)
        device = image.memory.device
        if self._restored:
            self._frames, self._restored = [from_numpy(item) for item in self._restored], []
        self._frames = [frame.to(device) for frame in self._frames]
        for frame in self._frames:
            _require_alike(self._name, image.shape, dtype, frame)
        return self._frames

    def _keep(self, frame: Buffer) -> None:
        """Keeps a frame that nobody else holds, and drops the oldest beyond the limit."""
        self._frames = [*self._frames, frame][-self._most :]

    def _keep_copy(self, image: Buffer) -> None:
        """Keeps a copy of the frame."""
        if self._most:
            kept = new_buffer(image.shape, image.dtype)
            copy(image.memory.device, image.memory, kept.memory)
            self._keep(kept)


class TemporalDenoise(_Remembering):
    """Noise averaged away over time, where nothing moves.

    y = x + w · (y' - x), with x the frame, y' what came out for the frame before, d the largest
    difference of a channel between both, and w = 0.9 · strength · (1 - (d / threshold)²)² where
    d < threshold, else 0: what differs more has moved, and leaves no trace. Values are in 0..1, and
    y is kept as f32, so that rounding does not freeze it. The first frame stays as it is, and with
    a strength of 0 every frame does.
    """

    def __init__(self, strength: float = 0.5, threshold: float = 0.1) -> None:
        super().__init__("temporal_denoise", 1)
        self._share = MOST_SHARE * number_within(self._name, "strength", strength, 0, 1)
        # u8 levels are 0.004 apart: smaller thresholds only match equal values.
        self._inverse = 1 / max(positive_number(self._name, "threshold", threshold), 1e-6)

    def apply(self, image: Buffer) -> Buffer:
        """Returns the filtered frame, on the image's device; the image is only read."""
        with using(image.memory.device):
            past = self._past(image, "f32")
            settled = new_buffer(image.shape, "f32")
            if past:
                given = {"share": self._share, "inverse": self._inverse}
                settle.run([image, *past], settled, given)
            else:
                store.run([image], settled)
            self._keep(settled)
            made = new_buffer(image.shape, image.dtype)
            store.run([settled], made)
        return made


class MotionBlur(_Remembering):
    """The mean of the last `frames` frames, or of as many as there are at the start.

    Of u8 it is exact, and ties go up.
    """

    def __init__(self, frames: int = 4) -> None:
        count = integer_of("motion_blur", "frames", frames)
        if not 1 <= count <= MOST_FRAMES:
            raise ArgumentError(f"motion_blur: frames is 1 to {MOST_FRAMES}, not {count}.")
        super().__init__("motion_blur", count - 1)

    def apply(self, image: Buffer) -> Buffer:
        """Returns the filtered frame, on the image's device; the image is only read."""
        with using(image.memory.device):
            past = self._past(image, image.dtype)
            made = new_buffer(image.shape, image.dtype)
            for stage in mean_stages([*past, image], made):
                stage.kernel.run(stage.inputs, stage.output, stage.params)
            self._keep_copy(image)
        return made


class FrameMix(_Remembering):
    """Each frame mixed with the one before: x + amount · (x' - x), x' being that frame as it came.

    The first frame stays as it is.
    """

    def __init__(self, amount: float = 0.5) -> None:
        super().__init__("frame_mix", 1)
        self._amount = number_within(self._name, "amount", amount, 0, 1)

    def apply(self, image: Buffer) -> Buffer:
        """Returns the filtered frame, on the image's device; the image is only read."""
        with using(image.memory.device):
            past = self._past(image, image.dtype) or [image]
            made = new_buffer(image.shape, image.dtype)
            mix_frames.run([image, *past], made, {"amount": self._amount})
            self._keep_copy(image)
        return made


def _require_alike(name: str, shape: tuple[int, ...], dtype: str, kept: Buffer) -> None:
    begin = "begin anew, with a filter of its own"
    if shape != kept.shape:
        raise ShapeError(
            f"{name}: the frame is {shape}, but those before were {kept.shape}: {begin}."
        )
    if dtype != kept.dtype:
        raise DtypeError(
            f"{name}: the frame is {dtype}, but those before were {kept.dtype}: {begin}."
        )
