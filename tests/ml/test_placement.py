"""From a tensor back to the image."""

from __future__ import annotations

import numpy as np
import pytest

from dala import errors
from dala.kernels.image.fitting import FITS
from dala.ml.results.placement import placed

SIZES = [
    ((300, 451), (224, 224)),
    ((451, 300), (128, 256)),
    ((64, 64), (640, 640)),
    ((1, 7), (9, 9)),
]


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(("image", "tensor"), SIZES)
def test_points_of_the_image_come_back_to_where_they_were(image, tensor, fit):
    placement = placed(image, tensor, fit)
    area = placement.fit
    xy = np.random.default_rng(1).random((20, 2)) * image[::-1]
    in_tensor = [area.left, area.top] + xy * [area.width, area.height] / np.array(image[::-1])
    np.testing.assert_allclose(placement.points(in_tensor), xy, atol=1e-9)


def test_a_stretched_image_covers_the_tensor():
    placement = placed((100, 50), (10, 10), "stretch")
    assert placement.box((0, 0, 10, 10)) == (0.0, 0.0, 50.0, 100.0)
    assert placement.box((1, 2, 3, 4)) == (5.0, 20.0, 15.0, 40.0)


def test_boxes_end_where_the_image_does():
    placement = placed((100, 200), (64, 64), "letterbox")
    assert placement.box((-5, 0, 70, 64)) == (0.0, 0.0, 200.0, 100.0)
    outside = placement.box((0, 0, 64, 10))
    assert outside[1] == outside[3] == 0.0
    assert all(isinstance(item, float) for item in outside)


def test_the_area_of_a_mask_is_in_the_mask_s_own_elements():
    placement = placed((100, 200), (64, 64), "letterbox")
    assert placement.area((64, 64)) == (16, 0, 32, 64)
    assert placement.area((16, 8)) == (4, 0, 8, 8)


def test_the_middle_of_a_resized_image_is_where_torchvision_crops_it():
    # 512 × 640 becomes 256 × 320, of which rows 16 to 240 and columns 48 to 272 are seen.
    placement = placed((512, 640), (224, 224), "crop", resize=256)
    assert placement.points([(0, 0), (224, 224)]).tolist() == [[96.0, 32.0], [544.0, 480.0]]
    with pytest.raises(errors.ArgumentError, match="resize = 200"):
        placed((512, 640), (224, 224), "crop", resize=200)


def test_a_fit_that_nobody_knows_is_refused():
    with pytest.raises(errors.ArgumentError, match="letterbox"):
        placed((1, 1), (1, 1), "cover")
