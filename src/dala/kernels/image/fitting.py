"""Where an image lies in a tensor of another shape."""

from __future__ import annotations

from dala.base.record import value
from dala.errors import ArgumentError

FITS = ("stretch", "crop", "letterbox")


@value
class Fit:
    """The area of a tensor that an image, scaled as a whole, covers.

    What lies at x of the image, 0 to its width, lies at left + x · width / (the image's width) of
    the tensor. Of an image that is cropped, the area is larger than the tensor, and its top or left
    negative.
    """

    top: int
    left: int
    height: int
    width: int


def fitted(
    image_shape: tuple[int, int], tensor_shape: tuple[int, int], fit: str, resize: int = 0
) -> Fit:
    """Where an image of (height, width) lies in a tensor of that size, in whole pixels.

    "stretch" covers the tensor exactly; "crop" covers it with the middle of the image, whose shape
    stays; "letterbox" puts all of the image into its middle, whose shape stays. With `resize` an
    image that is cropped has its shorter side made so long, as torchvision does it.

    >>> fitted((300, 451), (224, 224), "letterbox")
    Fit(top=37, left=0, height=149, width=224)
    >>> fitted((300, 451), (224, 224), "crop")
    Fit(top=0, left=-57, height=224, width=337)
    """
    (height, width), (tall, wide) = image_shape, tensor_shape
    if fit not in FITS:
        raise ArgumentError(f"fit {fit!r} is not known: give {', '.join(map(repr, FITS))}.")
    if fit == "stretch":
        return Fit(0, 0, tall, wide)
    if fit == "crop" and resize:
        return _middle(image_shape, tensor_shape, resize)
    is_tall = height * wide >= width * tall
    if is_tall == (fit == "letterbox"):
        covered_height, covered_width = tall, max(1, round(width * tall / height))
    else:
        covered_height, covered_width = max(1, round(height * wide / width)), wide
    top, left = (tall - covered_height) // 2, (wide - covered_width) // 2
    return Fit(top, left, covered_height, covered_width)


def _middle(image_shape: tuple[int, int], tensor_shape: tuple[int, int], resize: int) -> Fit:
    (height, width), (tall, wide) = image_shape, tensor_shape
    if resize < max(tall, wide):
        raise ArgumentError(
            f"resize = {resize}: the shorter side has to be as long as the tensor, {tall} × {wide}."
        )
    short = min(height, width)
    covered_height, covered_width = resize * height // short, resize * width // short
    top, left = round((covered_height - tall) / 2), round((covered_width - wide) / 2)
    return Fit(-top, -left, covered_height, covered_width)
