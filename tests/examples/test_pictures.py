"""The examples on pictures, each beside the library that defines what it computes."""

import canny
import clahe
import cv2
import distance_transform
import integral_image
import k_means
import numpy as np
import pytest
import scipy.ndimage
from skimage import data

from dala.gpu import compute


@pytest.fixture(scope="module")
def coins():
    """Gray levels in a size that nothing divides."""
    return np.ascontiguousarray(data.coins()[20:181, 10:207])


@pytest.mark.parametrize(("low", "high"), [(50, 120), (20, 400)])
def test_canny_finds_the_edges_of_opencv(coins, low, high, device):
    edges = canny.canny(coins, low, high)
    expected = cv2.Canny(coins, low, high)
    assert (expected > 0).sum() > 100
    np.testing.assert_array_equal(edges, expected)


@pytest.mark.parametrize("shape", [(160, 192), (161, 192), (151, 197)])
def test_clahe_is_that_of_opencv(coins, shape, device):
    levels = np.ascontiguousarray(coins[: shape[0], : shape[1]])
    equalized = clahe.clahe(levels, clip=2.5)
    expected = cv2.createCLAHE(clipLimit=2.5, tileGridSize=(8, 8)).apply(levels)
    assert np.abs(equalized.astype(int) - expected).max() <= 1
    assert np.abs(expected.astype(int) - levels).mean() > 5


def lloyd(pixels, inks, steps):
    inks = inks.astype(np.float64)
    for _ in range(steps):
        nearest = ((pixels[:, None] - inks) ** 2).sum(axis=2).argmin(axis=1)
        for k in set(nearest):
            inks[k] = pixels[nearest == k].mean(axis=0)
    return inks


@pytest.mark.parametrize("steps", [1, 5])
def test_k_means_goes_the_way_of_lloyd(steps, device):
    image = np.ascontiguousarray(data.astronaut()[:60, 180:250])
    start = np.random.default_rng(2).random((5, 3), np.float32)
    # The first is nearest to no pixel, and stays where it is.
    start[0] = 9.0
    inks = k_means.k_means(image, start, limit=steps)
    np.testing.assert_allclose(inks, lloyd(image.reshape(-1, 3) / 255, start, steps), atol=1e-4)
    assert np.abs(inks[1:] - start[1:]).max() > 0.05


def test_k_means_ends_where_inks_rest(device):
    image = np.ascontiguousarray(data.astronaut()[:60, 180:250])
    pixels = image.reshape(-1, 3) / 255.0
    inks = k_means.k_means(image, np.eye(3, dtype=np.float32))
    assert np.abs(inks - lloyd(pixels, inks, 1)).max() < 0.001


def test_an_integral_image_is_that_of_opencv(device):
    image = np.ascontiguousarray(data.astronaut()[100:237, 30:253])
    sums = integral_image.integral(compute.from_numpy(image))
    expected = np.cumsum(np.cumsum(image, axis=0, dtype=np.uint32), axis=1, dtype=np.uint32)
    np.testing.assert_array_equal(compute.read(sums), expected)
    np.testing.assert_array_equal(expected, cv2.integral(image)[1:, 1:])


def test_means_of_boxes_are_those_of_opencv(device):
    image = np.ascontiguousarray(data.astronaut()[100:237, 30:253])
    sums = integral_image.integral(compute.from_numpy(image))
    # So far below the picture is the focus that all rows have about one radius, of 9 pixels.
    means = integral_image.box_means(sums, focus=1000.0, sharp=0.0, strength=9.5 / 137 / 1000)
    inside = np.s_[9:-9, 9:-9]
    expected = cv2.blur(image, (19, 19))[inside]
    assert np.abs(compute.read(means)[inside].astype(int) - expected).max() <= 1


@pytest.mark.parametrize("shape", [(70, 90), (1, 40), (40, 1)])
def test_distances_are_exact(shape, device):
    inside = (np.random.default_rng(4).random(shape) < 0.97).astype(np.uint8)
    inside[0, 0] = 0
    found = distance_transform.distances(inside)
    np.testing.assert_allclose(found, scipy.ndimage.distance_transform_edt(inside), rtol=1e-6)


def test_one_element_is_found_from_everywhere(device):
    inside = np.ones((50, 64), np.uint8)
    inside[47, 3] = 0
    found = distance_transform.distances(inside)
    np.testing.assert_allclose(found, scipy.ndimage.distance_transform_edt(inside), rtol=1e-6)
