"""Sound as models take it, against librosa's definition in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from dala import errors, ml
from dala.gpu import compute


def to_mels(hz):
    return np.where(
        hz < 1000, hz * 3 / 200, 15 + np.log(np.maximum(hz, 1) / 1000) * 27 / np.log(6.4)
    )


def to_hz(mels):
    return np.where(mels < 15, mels * 200 / 3, 1000 * np.exp((mels - 15) * np.log(6.4) / 27))


def bank(n_fft, n_mels, rate, low, high):
    """Triangles of the same area, one for each band, (n_mels, n_fft // 2 + 1)."""
    corners = to_hz(np.linspace(to_mels(low), to_mels(high), n_mels + 2))
    found = np.zeros((n_mels, n_fft // 2 + 1))
    for band in range(n_mels):
        left, middle, right = corners[band : band + 3]
        for i, f in enumerate(np.fft.rfftfreq(n_fft, 1 / rate)):
            slope = (f - left) / (middle - left) if f < middle else (right - f) / (right - middle)
            found[band, i] = max(0, slope) * 2 / (right - left)
    return found


def reference(samples, n_fft=400, hop=160, n_mels=80, rate=16000, low=0.0, high=None):
    padded = np.pad(samples.astype(np.float64), n_fft // 2, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n_fft) / n_fft)
    frames = np.lib.stride_tricks.sliding_window_view(padded, n_fft)[::hop] * window
    power = np.abs(np.fft.rfft(frames)) ** 2
    return bank(n_fft, n_mels, rate, low, rate / 2 if high is None else high) @ power.T


def noise(length, seed=5):
    return np.random.default_rng(seed).normal(0, 0.1, length).astype(np.float32)


def tone(length, hz=440.0, rate=16000):
    return np.sin(2 * np.pi * hz / rate * np.arange(length)).astype(np.float32)


def assert_close(got, want):
    """Within 1e-4 of each value, or of what f32 can tell from nothing beside the strongest."""
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-10 * np.abs(want).max())


@pytest.mark.parametrize(
    "samples",
    [noise(16000), tone(8000), tone(8000, 3000.0) * 1e-3, noise(4001) + tone(4001)],
    ids=["noise", "tone", "soft tone", "both"],
)
def test_bands_are_those_of_the_definition(device, samples):
    got = ml.mel_spectrogram(samples)
    want = reference(samples)
    assert got.shape == want.shape == (80, 1 + len(samples) // 160)
    assert_close(compute.read(got), want)


def test_silence_has_no_power(device):
    assert not compute.read(ml.mel_spectrogram(np.zeros(2000, np.float32))).any()


@pytest.mark.parametrize(
    ("n_fft", "hop", "n_mels", "rate", "low", "high"),
    [
        (512, 128, 64, 22050, 0.0, None),
        (401, 100, 40, 16000, 0.0, None),
        (400, 160, 128, 16000, 0.0, None),
        (256, 300, 10, 8000, 300.0, 3400.0),
        (1024, 1, 1, 44100.5, 20.0, 20000.0),
    ],
)
def test_every_number_of_the_definition_can_be_chosen(device, n_fft, hop, n_mels, rate, low, high):
    samples = noise(3000)
    got = ml.mel_spectrogram(samples, n_fft, hop, n_mels, rate, f_min=low, f_max=high)
    assert_close(compute.read(got), reference(samples, n_fft, hop, n_mels, rate, low, high))


@pytest.mark.parametrize("length", [1, 2, 37, 199, 200, 201, 400])
def test_sounds_shorter_than_a_frame_are_mirrored_until_they_fill_it(device, length):
    samples = noise(length)
    assert_close(compute.read(ml.mel_spectrogram(samples)), reference(samples))


def test_a_batch_has_the_bands_of_each_sound(device):
    sounds = np.stack([noise(1000, 1), tone(1000), noise(1000, 2)])
    got = compute.read(ml.mel_spectrogram(sounds))
    assert got.shape == (3, 80, 7)
    for one, sound in zip(got, sounds, strict=True):
        assert_close(one, reference(sound))


def test_a_batch_of_none_is_empty(device):
    assert ml.mel_spectrogram(np.zeros((0, 1000), np.float32)).shape == (0, 80, 7)


def test_buffers_and_lists_are_sounds_too(device):
    samples = noise(600)
    want = compute.read(ml.mel_spectrogram(samples))
    for given in (compute.from_numpy(samples), samples.tolist(), samples[::-1][::-1]):
        np.testing.assert_array_equal(compute.read(ml.mel_spectrogram(given)), want)


def test_the_logarithm_is_of_what_can_be_heard_at_least(device):
    samples = np.concatenate([noise(2000), np.zeros(2000, np.float32)])
    got = compute.read(ml.mel_spectrogram(samples, log=True))
    np.testing.assert_allclose(got, np.log10(np.maximum(reference(samples), 1e-10)), atol=1e-4)
    assert got[0, -1] == -10


def test_what_is_not_a_number_stays_in_the_frames_that_it_is_in(device):
    samples = noise(3200)
    want = reference(samples)
    samples[1600] = np.nan
    got = compute.read(ml.mel_spectrogram(samples))
    touched = np.abs(np.arange(want.shape[1]) * 160 - 1600) <= 200
    assert np.isnan(got[:, touched]).all()
    assert_close(got[:, ~touched], want[:, ~touched])


@pytest.mark.parametrize(
    ("samples", "params", "error", "words"),
    [
        (np.zeros(100), {}, errors.DtypeError, "float64"),
        (np.zeros(100, np.int16), {}, errors.DtypeError, "divided by 32768"),
        (np.zeros(0, np.float32), {}, errors.ShapeError, "at least one"),
        ([], {}, errors.ShapeError, "at least one"),
        (np.zeros((1, 2, 3), np.float32), {}, errors.ShapeError, "(1, 2, 3)"),
        ("sound.wav", {}, errors.ArgumentError, "real numbers"),
        (None, {"n_fft": 1}, errors.ArgumentError, "n_fft = 1, but it is from 2"),
        (None, {"n_fft": 400.0}, errors.ArgumentError, "n_fft is an integer"),
        (None, {"hop_length": 0}, errors.ArgumentError, "hop_length = 0"),
        (None, {"n_mels": 0}, errors.ArgumentError, "n_mels = 0"),
        (None, {"n_mels": 300}, errors.ArgumentError, "too many bands for n_fft = 400"),
        (None, {"n_fft": 1 << 20, "n_mels": 1 << 20}, errors.LimitError, "fewer bands"),
        (None, {"sample_rate": 0}, errors.ArgumentError, "above 0"),
        (None, {"f_min": -1}, errors.ArgumentError, "f_min is a finite number from 0 to 8000"),
        (None, {"f_max": 8001}, errors.ArgumentError, "f_max is a finite number from 0 to 8000"),
        (None, {"f_min": 4000, "f_max": 4000}, errors.ArgumentError, "is no band"),
    ],
)
def test_mistakes_are_refused(samples, params, error, words):
    with pytest.raises(error) as caught:
        ml.mel_spectrogram(noise(800) if samples is None else samples, **params)
    assert words in str(caught.value)
