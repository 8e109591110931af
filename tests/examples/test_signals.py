"""The examples of signals, motion and light, each beside SciPy, OpenCV or NumPy in f64."""

import cv2
import fft_convolution
import lucas_kanade
import numpy as np
import pytest
import ray_marching
import scipy.signal
import spectrogram
from skimage import data

from dala.gpu import compute
from dala.media.showcase import clip

RNG = np.random.default_rng(6)


@pytest.mark.parametrize("shape", [(8, 16), (1, 32), (64, 1)])
def test_the_transform_is_that_of_fourier(shape, device):
    numbers = RNG.normal(size=(*shape, 2)).astype(np.float32)
    given = compute.from_numpy(numbers)
    there = compute.read(fft_convolution.transform(given, -1.0))
    expected = np.fft.fft2(numbers[..., 0] + 1j * numbers[..., 1])
    np.testing.assert_allclose(there[..., 0] + 1j * there[..., 1], expected, atol=1e-4)


@pytest.mark.parametrize("shapes", [((37, 53), (9, 7)), ((5, 70), (40, 3)), ((1, 1), (6, 4))])
def test_a_convolution_by_fourier_is_that_of_scipy(shapes, device):
    x, y = (RNG.random(shape, np.float32) for shape in shapes)
    expected = scipy.signal.fftconvolve(x.astype(np.float64), y)
    np.testing.assert_allclose(fft_convolution.convolve(x, y), expected, atol=1e-4)


def test_a_resonating_string_is_a_biquad(device):
    sound, rate = clip.tune(0.2), clip.SAMPLES_PER_S
    pitches = np.array([330.0, 987.8, 4000.0], np.float32)
    found = spectrogram.resonate(pitches, sound, rate, sharpness=20.0, shape=(3, len(sound)))
    for pitch, answer in zip(pitches, found, strict=True):
        # The band-pass filter of the "Audio EQ Cookbook", whose peak is 1.
        turn = 2 * np.pi * pitch / rate
        width = np.sin(turn) / 40
        b, a = [width, 0, -width], [1 + width, -2 * np.cos(turn), 1 - width]
        expected = scipy.signal.lfilter(b, a, sound.astype(np.float64))
        np.testing.assert_allclose(answer, expected, atol=1e-3 * np.abs(expected).max())


def test_the_short_time_transform_is_that_of_scipy(device):
    sound = clip.tune(0.05)
    window, hop = 256, spectrogram.HOP
    hops = (len(sound) - window) // hop + 1
    found = spectrogram.stft(sound, window=window, shape=(window // 2 + 1, hops))
    settings = {"window": "hann", "nperseg": window, "noverlap": 0, "boundary": None}
    for k in range(hops):
        part = sound[k * hop : k * hop + window].astype(np.float64)
        _, _, expected = scipy.signal.stft(part, **settings)
        np.testing.assert_allclose(found[:, k], np.abs(expected[:, 0]), atol=1e-5)
    assert found.max() > 0.01


def test_flow_is_that_of_opencv(device):
    right, down = -5.6, 3.3
    picture = np.ascontiguousarray(data.gravel()[90:190, 170:290])
    to = np.array([[1, 0, right], [0, 1, down]])
    moved = cv2.warpAffine(picture, to, (120, 100), borderMode=cv2.BORDER_REFLECT)
    y, x = (part.ravel() for part in np.mgrid[25:75:5, 25:95:5])
    points = np.stack([x, y], 1).astype(np.float32)
    size = 2 * lucas_kanade.RADIUS + 1
    settings = {"winSize": (size, size), "maxLevel": lucas_kanade.LEVELS - 1}
    end, is_found, _ = cv2.calcOpticalFlowPyrLK(picture, moved, points, None, **settings)
    first, second = (image.astype(np.float32) / 255 for image in (picture, moved))
    flow = lucas_kanade.optical_flow(first, second)[y, x]
    assert is_found.all()
    assert np.abs(flow - (end - points)).max() < 0.05
    assert np.abs(flow - (right, down)).max() < 0.15


def distance(p):
    """The distance of points, (…, 3), from the scene."""
    x, y, z = np.moveaxis(p, -1, 0)
    ring = np.hypot(np.hypot(x, y - 1.15) - 1.0, z) - 0.1
    pearls = np.full(x.shape, ray_marching.FAR)
    for place, radius in ray_marching.PEARLS:
        pearl = (
            np.sqrt((x - place) ** 2 + (y - radius) ** 2 + (z - 0.6 * place + 0.2) ** 2) - radius
        )
        melt = np.maximum(0.2 - np.abs(pearls - pearl), 0)
        pearls = np.minimum(pearls, pearl) - 1.25 * melt * melt
    return np.minimum(np.minimum(ring, pearls), y)


def test_rays_end_where_the_scene_begins(device):
    height, width = 24, 40
    camera = np.array(ray_marching.EYE)
    target = (0.0, 0.85, 0.0)
    found = ray_marching.depth(ray_marching.looking_at(target, camera), shape=(height, width))

    ahead = (target - camera) / np.linalg.norm(target - camera)
    right = np.array([ahead[2], 0.0, -ahead[0]]) / np.hypot(ahead[0], ahead[2])
    i, j = np.mgrid[:height, :width] + 0.5
    across, down = ((2 * j - width) / height)[..., None], ((2 * i - height) / height)[..., None]
    rays = 2.4 * ahead + across * right - down * np.cross(ahead, right)
    rays /= np.linalg.norm(rays, axis=2, keepdims=True)
    way = np.zeros((height, width))
    for _ in range(2000):
        way += np.where(way < ray_marching.FAR, distance(camera + way[..., None] * rays), 0)
    arrived = way < ray_marching.FAR
    assert 0.3 < arrived.mean() < 0.9
    assert (found[~arrived] > 0.98 * ray_marching.FAR).all()
    # A ray ends a little before the surface: as far from it as its end looks large.
    left = distance(camera + found[..., None] * rays)[arrived]
    assert (np.abs(left) < 0.0006 * found[arrived]).all()
    assert (found <= way + 0.001)[arrived].all()
    assert (found >= 0.95 * way)[arrived].all()
