"""Sound as models take it: how strong each band of frequencies is, frame by frame.

The definition is that of librosa, which Whisper uses, too. Frame t is the n_fft samples around
sample t · hop_length, where the sound is mirrored at its ends, times a periodic Hann window. The
power of its Fourier transform is summed by triangles, one for each band, whose corners lie evenly
on Slaney's mel scale (linear up to 1000 Hz, logarithmic above) and which all have the same area.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import Any

import numpy as np

from dala.devices import Device, using
from dala.errors import ArgumentError, DtypeError, LimitError, ShapeError
from dala.images.frames import new_buffer
from dala.ir.types import F32
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper
from dala.kernels.base.shapes import integer_of, number_within, positive_number
from dala.kernels.tensor.fourier import fft
from dala.kernels.tensor.matmul import matmul
from dala.runtime.buffers.buffer import Buffer, from_numpy
from dala.runtime.buffers.host_data import values
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel

LINEAR_HZ, LINEAR_MELS = 1000.0, 15.0
"""Up to where the mel scale is linear, and how far that is on it."""
MELS_A_FACTOR = 27 / math.log(6.4)
"""How many mels further a frequency e times as high lies, above that."""
FAINTEST = 1e-10
"""What is taken for the power of less than that, where its logarithm is wanted."""
MOST_COUNTED = 1 << 20
MOST_WEIGHTS = 1 << 25
"""Elements of a table of bands."""
MOST_TABLES = 16


def mel_spectrogram(
    samples: Any,
    n_fft: int = 400,
    hop_length: int = 160,
    n_mels: int = 80,
    sample_rate: float = 16000,
    *,
    f_min: float = 0.0,
    f_max: float | None = None,
    log: bool = False,
) -> Buffer:
    """Returns the power of a sound in bands of frequencies, f32 (n_mels, frames), on its device.

    Samples are f32: an array, a Buffer or a list of numbers, or a batch of sounds (n, samples),
    whose result is (n, n_mels, frames). There are 1 + samples // hop_length frames for an even
    `n_fft`; Whisper leaves the last one out. The bands reach from `f_min` to `f_max`, half the
    sample rate unless given. `log=True` gives the decimal logarithm, of 1e-10 where it is less.

    >>> from dala import ml
    >>> ml.mel_spectrogram([0.0] * 16000)
    <Buffer f32 (80, 101) cpu>
    """
    sounds = _sounds(samples)
    n_fft = _count("n_fft", n_fft, 2)
    hop_length = _count("hop_length", hop_length, 1)
    n_mels = _count("n_mels", n_mels, 1)
    rate, low, high = _range(sample_rate, f_min, f_max)
    count, length = sounds.shape if len(sounds.shape) == 2 else (1, sounds.shape[0])
    around = n_fft // 2
    frames = 1 + (length + 2 * around - n_fft) // hop_length
    shape = (count, n_mels, frames)
    with using(sounds.memory.device) as device:
        bank = _bank(n_fft, n_mels, rate, low, high, device)
        output = new_buffer(shape if len(sounds.shape) == 2 else shape[1:], "f32")
        if count:
            framed = new_buffer((count, frames, n_fft), "f32")
            _frames_kernel(length > around).run(
                [reshaped(sounds, (count, length)), _window(n_fft, device)],
                framed,
                {"step": hop_length, "around": around},
            )
            spectrum = new_buffer((count * frames, n_fft, 2), "f32")
            fft.run([reshaped(framed, spectrum.shape[:2])], spectrum)
            power = new_buffer((count * frames, bank.shape[0]), "f32")
            _power.run([spectrum], power)
            bands = new_buffer((count * frames, n_mels), "f32")
            matmul.run([power, bank], bands)
            ordered = [reshaped(bands, (count, frames, n_mels))]
            (_log_order if log else _order).run(ordered, reshaped(output, shape))
    return output


# -- what is given ---------------------------------------------------------------------------------


def _sounds(samples: Any) -> Buffer:
    """Returns the samples on a device; an error where they are no sound, or no batch of them."""
    if not isinstance(samples, Buffer | np.ndarray):
        listed = values(samples, F32)
        samples = listed.astype(np.float32)
    shape = tuple(samples.shape)
    dtype = samples.dtype if isinstance(samples, Buffer) else samples.dtype.name
    if dtype not in ("f32", "float32"):
        raise DtypeError(
            f"mel_spectrogram: the samples are {dtype}, but they have to be f32, in -1..1 as a "
            f"rule: convert them first; integers of 16 bits are divided by 32768."
        )
    if len(shape) not in (1, 2) or shape[-1] == 0:
        raise ShapeError(
            f"mel_spectrogram: the samples are {shape}, but a sound is (samples,), at least one, "
            f"and a batch of sounds (n, samples)."
        )
    return samples if isinstance(samples, Buffer) else from_numpy(samples)


def _count(name: str, value: Any, least: int) -> int:
    number = integer_of("mel_spectrogram", name, value)
    if least <= number <= MOST_COUNTED:
        return number
    raise ArgumentError(
        f"mel_spectrogram: {name} = {number}, but it is from {least} to {MOST_COUNTED}."
    )


def _range(sample_rate: Any, f_min: Any, f_max: Any) -> tuple[float, float, float]:
    """Returns the sample rate and the frequencies that the bands lie between, all in Hz."""
    rate = positive_number("mel_spectrogram", "sample_rate", sample_rate)
    high = rate / 2 if f_max is None else f_max
    high = number_within("mel_spectrogram", "f_max", high, 0, rate / 2)
    low = number_within("mel_spectrogram", "f_min", f_min, 0, high)
    if low == high:
        raise ArgumentError(f"mel_spectrogram: between f_min = {low:g} and f_max is no band.")
    return rate, low, high


# -- tables ----------------------------------------------------------------------------------------


@lru_cache(MOST_TABLES)
def _window(n_fft: int, device: Device) -> Buffer:
    """Returns a periodic Hann window."""
    turns = np.arange(n_fft) * (2 * np.pi / n_fft)
    with using(device):
        return from_numpy((0.5 - 0.5 * np.cos(turns)).astype(np.float32))


@lru_cache(MOST_TABLES)
def _bank(n_fft: int, n_mels: int, rate: float, low: float, high: float, device: Device) -> Buffer:
    """Returns the weight of each frequency in each band, (n_fft // 2 + 1, n_mels)."""
    if (n_fft // 2 + 1) * n_mels > MOST_WEIGHTS:
        raise LimitError(
            f"mel_spectrogram: {n_mels} bands of n_fft = {n_fft} take more than {MOST_WEIGHTS} "
            f"weights: give fewer bands or a smaller n_fft."
        )
    corners = _to_hz(np.linspace(_to_mels(low), _to_mels(high), n_mels + 2))
    frequencies = np.arange(n_fft // 2 + 1) * (rate / n_fft)
    widths = np.diff(corners)
    rising = (frequencies[:, None] - corners[:-2]) / widths[:-1]
    falling = (corners[2:] - frequencies[:, None]) / widths[1:]
    triangles = np.minimum(rising, falling).clip(0)
    empty = int((triangles.max(0) == 0).sum())
    if empty:
        raise ArgumentError(
            f"mel_spectrogram: n_mels = {n_mels} are too many bands for n_fft = {n_fft}: its "
            f"frequencies are {rate / n_fft:g} Hz apart, and {empty} of the bands lie between two "
            f"of them. Give fewer bands or a larger n_fft."
        )
    with using(device):
        return from_numpy((triangles * (2 / (corners[2:] - corners[:-2]))).astype(np.float32))


def _to_mels(hz: float) -> float:
    if hz < LINEAR_HZ:
        return hz * (LINEAR_MELS / LINEAR_HZ)
    return LINEAR_MELS + math.log(hz / LINEAR_HZ) * MELS_A_FACTOR


def _to_hz(mels: np.ndarray) -> np.ndarray:
    above = np.exp((mels - LINEAR_MELS) / MELS_A_FACTOR) * LINEAR_HZ
    hz: np.ndarray = np.where(mels < LINEAR_MELS, mels * (LINEAR_HZ / LINEAR_MELS), above)
    return hz


# -- kernels ---------------------------------------------------------------------------------------


@cache
def _frames_kernel(long: bool) -> Kernel:
    """Frames of sounds in a window; a sound shorter than half a frame is mirrored repeatedly."""

    def window_frames(sounds: Any, window: Any, step: dala.s32, around: dala.s32) -> Any:
        n, t, k = dala.position(3)
        place = t * step + k - around
        if long:
            # The border rule does the same, by a division for each sample.
            last = sounds.shape[1] - 1
            place = last - abs(last - abs(place))
        return sounds[n, place] * window[k]

    return helper(window_frames, "clamp" if long else "mirror")


@helper
def _power(spectrum: Any) -> Any:
    t, f = dala.position(2)
    real, imaginary = spectrum[t, f, 0], spectrum[t, f, 1]
    return real * real + imaginary * imaginary


@helper
def _order(bands: Any) -> Any:
    n, band, t = dala.position(3)
    return bands[n, t, band]


@helper
def _log_order(bands: Any) -> Any:
    n, band, t = dala.position(3)
    return dala.log10(dala.max(bands[n, t, band], FAINTEST))
