"""Two ways to see a tune: strings that resonate, one for each key of a piano, and Fourier's.

Above, each string is a biquad filter, which a kernel runs sample by sample, all strings at once.
Below is a short-time Fourier transform (STFT), on the same scale of pitches.

python examples/spectrogram.py [sound.wav] --save tune.png
"""

import argparse
import math
import wave

import numpy as np

import dala
from dala import media
from dala.media.showcase import clip

WINDOW, HOP = 4096, 300
LOWEST_HZ, KEYS = 220.0, 48
KEY_PIXELS = 6


@dala.kernel
def resonate(pitches, sound, rate: float, sharpness: float, out: dala.Out):
    """The sound as each string answers it: a band-pass biquad around its pitch."""
    (string,) = dala.position(1)
    turn = 2.0 * math.pi * pitches / rate
    width = dala.sin(turn) / (2.0 * sharpness)
    gain = width / (1.0 + width)
    a1, a2 = -2.0 * dala.cos(turn) / (1.0 + width), (1.0 - width) / (1.0 + width)
    # Two numbers are all that a filter of second order remembers.
    s1, s2 = 0.0, 0.0
    for n in range(len(sound)):
        y = gain * sound[n] + s1
        s1, s2 = s2 - a1 * y, -gain * sound[n] - a2 * y
        out[string, n] = y


@dala.kernel
def loudness(answers):
    """The root mean square of each hop."""
    string, hop = dala.position(2)
    return dala.sqrt(sum(answers[string, HOP * hop + n] ** 2 for n in range(HOP)) / HOP)


@dala.kernel
def stft(sound, window: dala.const = WINDOW):
    """The magnitude of each frequency, (frequencies, hops), in windows that overlap."""
    frequency, hop = dala.position(2)
    real, imaginary, total = 0.0, 0.0, 0.0
    for n in range(window):
        hann = 0.5 - 0.5 * dala.cos(2.0 * math.pi * n / window)
        # Whole turns are left out while they are integers, and the angle stays exact.
        angle = 2.0 * math.pi * ((frequency * n) % window) / window
        value = hann * sound[HOP * hop + n]
        real += value * dala.cos(angle)
        imaginary -= value * dala.sin(angle)
        total += hann
    return dala.hypot(real, imaginary) / total


@dala.kernel
def paint(strings, spectrum, rate: float):
    """Both on one scale, from dark to bright by decibels."""
    row, x = dala.position(2)
    height, _ = dala.shape(2)
    above = row < height // 2
    key = KEYS - 0.5 - dala.f32(row % (height // 2)) / KEY_PIXELS
    bin = LOWEST_HZ * dala.exp2(key / 12.0) * WINDOW / rate
    loud = strings[int(key), x] if above else spectrum.sample(bin, x)
    level = dala.clamp(1.3 + dala.log10(loud + 1.0e-6) / 2.4, 0.0, 1.0)
    dark, warm = dala.vec3(0.03, 0.02, 0.09), dala.vec3(0.72, 0.15, 0.4)
    color = dala.mix(dark, warm, dala.smoothstep(0.0, 0.6, level))
    color = dala.mix(color, dala.vec3(1.0, 0.85, 0.45), dala.smoothstep(0.5, 1.0, level))
    gap = above and row % KEY_PIXELS == 0
    return dala.rgba(color * (0.7 if gap else 1.0))


def read_wave(path):
    """Returns the first channel of a WAV file of 16 bits, and its rate."""
    with wave.open(path) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        return samples[:: file.getnchannels()].astype(np.float32) / 32768, file.getframerate()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("sound", nargs="?", help="a WAV file of 16 bits; else a tune is played")
    options.add_argument("--seconds", type=float, default=6.0, help="how much of it is seen")
    options.add_argument("--save", default="tune.png", help="the file to write")
    given = options.parse_args()

    sound, rate = clip.tune(given.seconds), clip.SAMPLES_PER_S
    if given.sound:
        sound, rate = read_wave(given.sound)
    sound = sound[: round(given.seconds * rate)]
    hops = (len(sound) - WINDOW) // HOP
    pitches = (LOWEST_HZ * 2 ** (np.arange(KEYS) / 12)).astype(np.float32)
    answers = resonate(pitches, sound, rate, sharpness=50.0, shape=(KEYS, len(sound)))
    strings = loudness(answers, shape=(KEYS, hops))
    spectrum = stft(sound, shape=(WINDOW // 6, hops))
    size = (2 * KEYS * KEY_PIXELS, hops, 3)
    media.save(paint(strings, spectrum, rate, shape=size, dtype="u8"), given.save)


if __name__ == "__main__":
    main()
