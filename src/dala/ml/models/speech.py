"""Speech in sound: from when to when somebody talks."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.base.record import value
from dala.errors import ArgumentError, ShapeError
from dala.kernels.base.shapes import number_within
from dala.ml.models.loading import load_model
from dala.ml.models.model import Model

RATE = 16000
STEP, BEFORE = 512, 64
"""Samples that are looked at together, and those before them that the model sees, too."""
DROP = 0.15
"""So much less sure the model may be while speech goes on."""
LEAST_SPEECH_S, LEAST_SILENCE_S, PAD_S = 0.25, 0.1, 0.03
"""What is shorter is no speech, or no pause; what is found is so much longer at both ends."""


@value
class Speech:
    """Somebody talks: from when to when, in seconds, and how sure the model is in the mean."""

    start_s: float
    end_s: float
    score: float

    def to_dict(self) -> dict[str, Any]:
        """Returns the same as plain numbers."""
        return dict(vars(self))


def find_speech(
    samples: Any, rate: int = RATE, *, threshold: float = 0.5, model: Model | None = None
) -> list[Speech]:
    """From when to when somebody talks, in samples of −1 to 1, one channel.

    `rate` is 16000 or a multiple of it. `threshold` is how sure the model has to be that speech
    begins. `model` is one like speech_activity, which is loaded, and fetched when it is first used,
    unless given.
    """
    sure = number_within("find_speech", "threshold", threshold, 0, 1)
    sound = _checked(samples, rate)
    if not sound.size:
        return []
    shares = speech_shares(sound, load_model("speech_activity") if model is None else model)
    length_s = len(sound) / RATE
    found = []
    for start, end in _spans(shares, sure):
        score = float(shares[start:end].mean())
        start_s, end_s = start * STEP / RATE - PAD_S, end * STEP / RATE + PAD_S
        found.append(Speech(max(start_s, 0.0), min(end_s, length_s), score))
    return found


def speech_shares(sound: np.ndarray, model: Model) -> np.ndarray:
    """How likely each 512 samples of sound at 16 kHz are speech, one after another."""
    count = -(-len(sound) // STEP)
    padded = np.zeros(BEFORE + count * STEP, np.float32)
    padded[BEFORE : BEFORE + len(sound)] = sound
    state = np.zeros((2, 1, 128), np.float32)
    rate = np.array(RATE, np.int64)
    shares = np.empty(count, np.float32)
    for step in range(count):
        part = padded[None, step * STEP : (step + 1) * STEP + BEFORE]
        made = model.outputs([np.ascontiguousarray(part), state, rate])
        share, state = made.values()
        shares[step] = share.reshape(-1)[0]
    return shares


def _spans(shares: np.ndarray, sure: float) -> list[tuple[int, int]]:
    """The steps from which to which there is speech."""
    silence, speech = (round(least * RATE / STEP) for least in (LEAST_SILENCE_S, LEAST_SPEECH_S))
    spans: list[tuple[int, int]] = []
    start, quiet = None, 0
    for step, share in enumerate(shares.tolist()):
        if start is None:
            start, quiet = (step, 0) if share >= sure else (None, 0)
        elif share >= sure - DROP:
            quiet = 0
        else:
            quiet += 1
            if quiet > silence:
                spans.append((start, step - quiet + 1))
                start = None
    if start is not None:
        spans.append((start, len(shares) - quiet))
    return [(start, end) for start, end in spans if end - start >= speech]


def _checked(samples: Any, rate: int) -> np.ndarray:
    sound = np.asarray(samples)
    if sound.ndim != 1 or sound.dtype.kind != "f":
        raise ShapeError(
            f"find_speech: samples are floats of −1 to 1 along one axis, but {sound.dtype} "
            f"{sound.shape} was given: take one channel, or the mean of them."
        )
    if isinstance(rate, bool) or not isinstance(rate, int) or rate < RATE or rate % RATE:
        raise ArgumentError(
            f"find_speech: rate is {RATE} or a multiple of it, not {rate!r}: resample it first."
        )
    every = rate // RATE
    count = len(sound) // every
    return np.asarray(sound[: count * every].reshape(count, every).mean(1, dtype=np.float32))
