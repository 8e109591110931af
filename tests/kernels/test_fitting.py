"""Where images lie in tensors."""

from __future__ import annotations

import numpy as np
import pytest

from dala import errors
from dala.kernels.image.fitting import Fit, fitted


@pytest.mark.parametrize(
    ("image", "tensor", "fit", "want"),
    [
        ((300, 451), (224, 224), "stretch", Fit(0, 0, 224, 224)),
        ((300, 451), (224, 224), "crop", Fit(0, -57, 224, 337)),
        ((451, 300), (224, 224), "crop", Fit(-57, 0, 337, 224)),
        ((300, 451), (224, 224), "letterbox", Fit(37, 0, 149, 224)),
        ((451, 300), (224, 224), "letterbox", Fit(0, 37, 224, 149)),
        ((10, 20), (30, 60), "crop", Fit(0, 0, 30, 60)),
        ((10, 20), (30, 60), "letterbox", Fit(0, 0, 30, 60)),
        ((1, 5000), (8, 8), "letterbox", Fit(3, 0, 1, 8)),
    ],
)
def test_an_image_lies_where_its_fit_says(image, tensor, fit, want):
    assert fitted(image, tensor, fit) == want


@pytest.mark.parametrize("fit", ["crop", "letterbox"])
def test_sizes_of_all_kinds_keep_their_shape_and_cover_or_fit_the_tensor(fit):
    random = np.random.default_rng(4)
    for height, width, tall, wide in random.integers(1, 2000, (500, 4)).tolist():
        found = fitted((height, width), (tall, wide), fit)
        down, across = found.height / height, found.width / width
        assert abs(down - across) <= max(1 / height, 1 / width)
        if fit == "crop":
            assert min(found.height - tall, found.width - wide) >= 0
            assert max(found.top, found.left) <= 0
        else:
            assert max(found.height - tall, found.width - wide) <= 0
            assert min(found.top, found.left) >= 0
        assert found.height == tall or found.width == wide
        assert abs(2 * found.top + found.height - tall) <= 1
        assert abs(2 * found.left + found.width - wide) <= 1


def test_an_unknown_fit_is_refused():
    with pytest.raises(errors.ArgumentError, match="'stretch', 'crop', 'letterbox'"):
        fitted((2, 2), (2, 2), "zoom")
