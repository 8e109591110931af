"""A picture as if it were of a toy: sharp in one band, the more blurred the farther from it.

The integral image of a picture holds, at each pixel, the sum of all pixels above and to the left.
With it the mean of any box takes four reads, however large the box is.

python examples/integral_image.py [picture] --save tilted.png
"""

import argparse

import dala
from dala import media
from dala.gpu import compute
from dala.media.showcase import sample


@dala.kernel(border="zero")
def add_shifted(x, down: int, right: int):
    """Adds to each element the one that lies so far above it or to its left."""
    i, j, channel = dala.position(3)
    return dala.u32(x) + x[i - down, j - right, channel]


def integral(image):
    """Returns the integral image of one (height, width, channels), as u32.

    Each pass adds what lies twice as far away as in the one before, so that after the first each
    element is a sum of two, then of four, of eight: a scan in log₂(height) + log₂(width) passes.
    """
    height, width, _ = image.shape
    sums, distance = image, 1
    while distance < height:
        sums, distance = add_shifted(sums, down=distance, right=0), 2 * distance
    distance = 1
    while distance < width:
        sums, distance = add_shifted(sums, down=0, right=distance), 2 * distance
    return sums


@dala.kernel(border="zero")
def box_means(sums, focus: float, sharp: float, strength: float) -> dala.u8:
    """Means of boxes that grow with the distance of a row from the rows in focus."""
    i, j, channel = dala.position(3)
    height, width, _ = dala.shape(3)
    away = abs(i / height - focus) - sharp
    radius = int(strength * height * max(away, 0.0))
    top, bottom = max(i - radius, 0) - 1, min(i + radius, height - 1)
    left, right = max(j - radius, 0) - 1, min(j + radius, width - 1)
    # Rows and columns of number -1 are outside, where all sums are zero.
    box = sums[bottom, right, channel] - sums[top, right, channel]
    box += sums[top, left, channel] - sums[bottom, left, channel]
    return box / dala.f32((bottom - top) * (right - left))


def tilt_shift(image, focus=0.55, sharp=0.08, strength=0.06):
    # The mean of means weighs near pixels more than far ones: a softer blur than that of one box.
    for _ in range(2):
        image = box_means(integral(image), focus, sharp, strength)
    return image


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("picture", nargs="?", help="a picture; one is painted if none is given")
    options.add_argument("--focus", type=float, default=0.55, help="0 is the top, 1 the bottom")
    options.add_argument("--strength", type=float, default=0.06)
    options.add_argument("--save", default="tilted.png", help="the file to write")
    given = options.parse_args()

    picture = media.load(given.picture) if given.picture else sample.picture()
    image = compute.from_numpy(picture[..., :3])
    tilted = tilt_shift(image, focus=given.focus, strength=given.strength)
    media.save(compute.read(tilted), given.save)


if __name__ == "__main__":
    main()
