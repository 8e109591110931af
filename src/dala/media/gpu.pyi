# Made by tools/generate from what kernels declare: change those, and run it again.

import os
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt
from PIL.Image import Image as PillowImage

from dala.media.filters.calls import apply_filter as apply_filter
from dala.media.filters.calls import filter_chain as filter_chain
from dala.media.filters.calls import process_frame as process_frame
from dala.media.filters.calls import process_frame_async as process_frame_async
from dala.media.filters.calls import start_pipeline as start_pipeline
from dala.media.filters.calls import stop_pipeline as stop_pipeline
from dala.media.filters.catalog import filters as filters
from dala.media.filters.context import Context as Context
from dala.ml.models.model import Model
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.commands.result_command import ResultCommand as ResultCommand

Picture = TypeVar("Picture", bound=npt.NDArray[Any] | Buffer | PillowImage)
Image: TypeAlias = npt.NDArray[Any] | Buffer | PillowImage
Number: TypeAlias = float | np.floating[Any] | np.integer[Any]
Integer: TypeAlias = int | np.integer[Any]
Color: TypeAlias = str | Number | Sequence[Number] | npt.NDArray[Any]
Size: TypeAlias = str | Integer | Sequence[Integer]
Shape: TypeAlias = Integer | Sequence[Integer]

@overload
def brightness(
    image: Picture,
    value: Number,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """x + value.

    value: how much is added to each channel, where white is 1.
    """
@overload
def brightness(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    value: Number,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def color_matrix(
    image: Picture,
    matrix: npt.ArrayLike,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """A matrix applied to (r, g, b, a, 1), with a row for each channel that it makes.

    matrix: the factors: 3 × 3, 3 × 4 or 4 × 5, a row for each channel made.
    """
@overload
def color_matrix(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    matrix: npt.ArrayLike,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def contrast(
    image: Picture,
    value: Number,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """(1 + value) · (x - 0.5) + 0.5.

    value: how much farther from middle gray; -1 leaves nothing but gray.
    """
@overload
def contrast(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    value: Number,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def exposure(
    image: Picture,
    stops: Number,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """x · 2^stops.

    stops (stops): how many times the light doubles.
    """
@overload
def exposure(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    stops: Number,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def gamma(
    image: Picture,
    value: Number,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """x^(1/value), and 0 where x is negative.

    value: the gamma; above 1 lightens midtones.
    """
@overload
def gamma(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    value: Number,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def grayscale(
    image: Picture,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """The luma of each pixel in every color channel, or in the one of a gray output."""
@overload
def grayscale(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def hdr(
    image: Picture,
    exposure: Number = 1.0,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """Highlights tamed: (1 - exp(-exposure · x)) / (1 - exp(-exposure)).

    exposure: how strongly highlights are compressed.
    """
@overload
def hdr(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    exposure: Number = 1.0,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def hue(
    image: Picture,
    degrees: Number,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """Colors turned by an angle, in degrees, as CSS hue-rotate does.

    degrees (degrees): how far around the color wheel.
    """
@overload
def hue(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    degrees: Number,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def invert(
    image: Picture,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """1 - x."""
@overload
def invert(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def lut(
    image: Picture,
    table: str | os.PathLike[str] | npt.ArrayLike,
    interpolation: Literal["tetrahedral", "trilinear"] = "tetrahedral",
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """The color that a table has for each color; alpha stays as it was.

    table: the colors: a .cube file, or an array of (n, n, n, 3) or (n, 3).
    interpolation: how colors between the entries of a cube are found.
    """
@overload
def lut(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    table: str | os.PathLike[str] | npt.ArrayLike,
    interpolation: Literal["tetrahedral", "trilinear"] = "tetrahedral",
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def saturation(
    image: Picture,
    value: Number,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """luma + (1 + value) · (x - luma): -1 leaves no color.

    value: how much farther from gray; -1 leaves no color.
    """
@overload
def saturation(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    value: Number,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def sepia(
    image: Picture,
    intensity: Number = 0.8,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """The brown of old photographs as CSS sepia makes it, with an intensity of 0 to 1.

    intensity: the share of brown; 0 leaves the image as it was.
    """
@overload
def sepia(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    intensity: Number = 0.8,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def threshold(
    image: Picture,
    value: Number = 0.5,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """White where luma > value, else black.

    value: the luma above which a pixel is white.
    """
@overload
def threshold(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    value: Number = 0.5,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def vignette(
    image: Picture,
    intensity: Number = 0.5,
    radius: Number = 0.75,
    softness: Number = 0.45,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """Darkened towards the corners: x · (1 - intensity · smoothstep(radius - softness, radius, d)).

    intensity: how dark the corners become.
    radius: how far from the center it is darkest, in shares of the height and the width.
    softness: how wide the way from bright to dark is, in the same shares.
    """
@overload
def vignette(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    intensity: Number = 0.5,
    radius: Number = 0.75,
    softness: Number = 0.45,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def white_balance(
    image: Picture,
    temperature: Number = 6500,
    tint: Number = 0,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """Colors as if the light, of a temperature in kelvin and a tint, had been white.

    temperature (kelvin): the temperature of the light that is taken for white; higher makes the image warmer.
    tint: how far the light is off towards green; higher makes the image more magenta.
    """
@overload
def white_balance(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    temperature: Number = 6500,
    tint: Number = 0,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def beauty(
    image: Picture,
    strength: Number = 0.3,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """Skin smoothed and lifted a little, with a strength of 0 to 1; all else stays as it was.

    strength: how much skin is smoothed; 0 leaves it as it was.
    """
@overload
def beauty(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    strength: Number = 0.3,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def bilateral(
    image: Picture,
    radius: Integer = 2,
    sigma_color: Number = 0.1,
    sigma_space: Number = 2.0,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """The mean of the pixels around each, those of other colors counting less.

    radius (pixels): how far the pixels around each are taken into account.
    sigma_color: the distance of colors at which a pixel counts for less.
    sigma_space (pixels): the distance at which a pixel counts for less.
    border: what is read outside of the image.
    premultiply: weigh the colors of an RGBA image by its alpha, so that hidden ones do not show.
    """
@overload
def bilateral(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    radius: Integer = 2,
    sigma_color: Number = 0.1,
    sigma_space: Number = 2.0,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def blur(
    image: Picture,
    radius: Integer | None = None,
    sigma: Number | None = None,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """A Gaussian blur of 2 · radius + 1 taps along each axis.

    radius (pixels): how far the blur reaches.
    sigma (pixels): the standard deviation of the Gaussian.
    border: what is read outside of the image.
    premultiply: weigh the colors of an RGBA image by its alpha, so that hidden ones do not show.
    """
@overload
def blur(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    radius: Integer | None = None,
    sigma: Number | None = None,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def box_blur(
    image: Picture,
    radius: Integer = 1,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """The mean of the (2 · radius + 1)² pixels around each.

    radius (pixels): how far the pixels around each are taken into account.
    border: what is read outside of the image.
    premultiply: weigh the colors of an RGBA image by its alpha, so that hidden ones do not show.
    """
@overload
def box_blur(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    radius: Integer = 1,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def denoise(
    image: Picture,
    strength: Number = 0.5,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """Noise smoothed away, edges kept, with a strength of 0 to 1.

    strength: how much is smoothed; 0 leaves the image as it was.
    border: what is read outside of the image.
    premultiply: weigh the colors of an RGBA image by its alpha, so that hidden ones do not show.
    """
@overload
def denoise(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    strength: Number = 0.5,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def median(
    image: Picture,
    radius: Integer = 1,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """The median of the (2 · radius + 1)² pixels around each, by channel; radius is 1 or 2.

    radius (pixels): how far the pixels around each are taken into account.
    border: what is read outside of the image.
    premultiply: weigh the colors of an RGBA image by its alpha, so that hidden ones do not show.
    """
@overload
def median(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    radius: Integer = 1,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def dilate(
    image: Picture,
    radius: Integer = 1,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """The largest of the (2 · radius + 1)² pixels around each, by channel.

    radius (pixels): how far the pixels around each are taken into account.
    border: what is read outside of the image.
    premultiply: weigh the colors of an RGBA image by its alpha, so that hidden ones do not show.
    """
@overload
def dilate(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    radius: Integer = 1,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def edge_detect(
    image: Picture,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """How steep the luma is, by Sobel: √(across² + down²), in every color channel.

    border: what is read outside of the image.
    """
@overload
def edge_detect(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def erode(
    image: Picture,
    radius: Integer = 1,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """The least of the (2 · radius + 1)² pixels around each, by channel.

    radius (pixels): how far the pixels around each are taken into account.
    border: what is read outside of the image.
    premultiply: weigh the colors of an RGBA image by its alpha, so that hidden ones do not show.
    """
@overload
def erode(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    radius: Integer = 1,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def sharpen(
    image: Picture,
    amount: Number = 0.5,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """x + amount · (4x - up - down - left - right).

    amount: how much of the detail is added.
    border: what is read outside of the image.
    premultiply: weigh the colors of an RGBA image by its alpha, so that hidden ones do not show.
    """
@overload
def sharpen(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    amount: Number = 0.5,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def unsharp(
    image: Picture,
    radius: Integer = 2,
    sigma: Number = 1.0,
    amount: Number = 1.0,
    threshold: Number = 0,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """x + amount · (x - blur x) where x and blur x differ by more than threshold, else x.

    radius (pixels): how far the pixels around each are taken into account.
    sigma (pixels): the standard deviation of the Gaussian.
    amount: how much of the detail is added.
    threshold: the difference up to which a channel stays as it was.
    border: what is read outside of the image.
    premultiply: weigh the colors of an RGBA image by its alpha, so that hidden ones do not show.
    """
@overload
def unsharp(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    radius: Integer = 2,
    sigma: Number = 1.0,
    amount: Number = 1.0,
    threshold: Number = 0,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def background_blur(
    image: Picture,
    mask: Image | None = None,
    radius: Integer | None = None,
    sigma: Number | None = None,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    model: str | os.PathLike[str] | Model[Any] = "selfie_segmentation",
    every: Integer = 1,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """The image with a Gaussian blur where the mask is 0, and as it was where it is 1.

    radius (pixels): how far the blur reaches.
    sigma (pixels): the standard deviation of the Gaussian.
    border: what is read outside of the image.
    model: what makes the mask where none is given.
    every (frames): after how many frames of a video the model is run again.
    """
@overload
def background_blur(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    mask: Image | None = None,
    radius: Integer | None = None,
    sigma: Number | None = None,
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "clamp",
    model: str | os.PathLike[str] | Model[Any] = "selfie_segmentation",
    every: Integer = 1,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def background_replace(
    image: Picture,
    background: Image,
    mask: Image | None = None,
    model: str | os.PathLike[str] | Model[Any] = "selfie_segmentation",
    every: Integer = 1,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """The image where the mask is 1, and the background, of the same size, where it is 0.

    model: what makes the mask where none is given.
    every (frames): after how many frames of a video the model is run again.
    """
@overload
def background_replace(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    background: Image,
    mask: Image | None = None,
    model: str | os.PathLike[str] | Model[Any] = "selfie_segmentation",
    every: Integer = 1,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def blend(
    image: Picture,
    layer: Image,
    mode: Literal["normal", "multiply", "screen", "overlay", "darken", "lighten", "color-dodge", "color_dodge", "color-burn", "color_burn", "hard-light", "hard_light", "soft-light", "soft_light", "difference", "exclusion", "subtract", "divide", "hue", "saturation", "color", "luminosity", "add", "dissolve"] = "normal",
    alpha: Number = 0.5,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """The layer blended with an image of its size, as the W3C compositing formulas say.

    mode: the formula that mixes both colors.
    alpha: how opaque the layer is.
    """
@overload
def blend(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    layer: Image,
    mode: Literal["normal", "multiply", "screen", "overlay", "darken", "lighten", "color-dodge", "color_dodge", "color-burn", "color_burn", "hard-light", "hard_light", "soft-light", "soft_light", "difference", "exclusion", "subtract", "divide", "hue", "saturation", "color", "luminosity", "add", "dissolve"] = "normal",
    alpha: Number = 0.5,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def chroma_key(
    image: Picture,
    color: Color,
    similarity: Number = 0.1,
    blend: Number = 0.05,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """Transparent where the chroma is near that of a color, into an RGBA image.

    color: the color that becomes transparent.
    similarity: the distance of chroma up to which nothing is left.
    blend: how much further away all is kept; between, alpha rises.
    """
@overload
def chroma_key(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    color: Color,
    similarity: Number = 0.1,
    blend: Number = 0.05,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def overlay(
    image: Picture,
    layer: Image,
    x: Integer = 0,
    y: Integer = 0,
    alpha: Number = 1.0,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """The layer over the image, its upper left corner at (x, y), by source-over.

    x (pixels): where the left of the layer lies; it may be outside.
    y (pixels): where the top of the layer lies; it may be outside.
    alpha: how opaque the layer is.
    """
@overload
def overlay(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    layer: Image,
    x: Integer = 0,
    y: Integer = 0,
    alpha: Number = 1.0,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def convert(
    image: Picture,
    from_: Literal["rgb", "rgba", "bgr", "bgra", "gray", "yuv420p", "nv12"],
    /,
    to: Literal["rgb", "rgba", "bgr", "bgra", "gray", "yuv420p", "nv12"],
    matrix: Literal["bt601", "bt709", "bt2020"] = "bt601",
    range: Literal["limited", "full"] = "limited",
    width: Integer | None = None,
    height: Integer | None = None,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """An image in another format, out of rgb, rgba, bgr, bgra, gray, yuv420p and nv12.

    from: the format that the image has.
    to: the format that it is converted to.
    matrix: the standard of the YUV side.
    range: whether luma is 16 to 235 or 0 to 255.
    width (pixels): the width of a YUV image in one axis.
    height (pixels): the height of a YUV image in one axis.
    """
@overload
def convert(
    image: bytes | bytearray | memoryview,
    image_width: Integer,
    image_height: Integer,
    from_: Literal["rgb", "rgba", "bgr", "bgra", "gray", "yuv420p", "nv12"],
    /,
    to: Literal["rgb", "rgba", "bgr", "bgra", "gray", "yuv420p", "nv12"],
    matrix: Literal["bt601", "bt709", "bt2020"] = "bt601",
    range: Literal["limited", "full"] = "limited",
    width: Integer | None = None,
    height: Integer | None = None,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def crop(
    image: Picture,
    x: Integer = 0,
    y: Integer = 0,
    width: Integer | None = None,
    height: Integer | None = None,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """The rectangle of an image whose upper left pixel is (x, y).

    x (pixels): the first column.
    y (pixels): the first row.
    width: how many columns; all that follow unless given.
    height: how many rows; all that follow unless given.
    """
@overload
def crop(
    image: bytes | bytearray | memoryview,
    image_width: Integer,
    image_height: Integer,
    /,
    x: Integer = 0,
    y: Integer = 0,
    width: Integer | None = None,
    height: Integer | None = None,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def flip(
    image: Picture,
    direction: Literal["horizontal", "vertical", "both"] = "horizontal",
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """The image turned over: left and right swapped, or top and bottom, or both.

    direction: horizontal swaps left and right, vertical top and bottom.
    """
@overload
def flip(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    direction: Literal["horizontal", "vertical", "both"] = "horizontal",
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def letterbox(
    image: Picture,
    size: Size | None = None,
    color: Color = 0.4470588235294118,
    method: Literal["nearest", "bilinear", "bicubic", "lanczos", "area"] = "bilinear",
    premultiply: bool = False,
    shape: Shape | None = None,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """The image scaled to fit into a frame, centered, the rest filled with a color.

    size: (width, height) of the frame, the output's own unless given.
    color: what the rest of the frame is filled with.
    method: how a new pixel is made of old ones.
    premultiply: weigh the colors of an RGBA image by its alpha, so that hidden ones do not show.
    shape: (height, width) of the frame, in place of size.
    """
@overload
def letterbox(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    size: Size | None = None,
    color: Color = 0.4470588235294118,
    method: Literal["nearest", "bilinear", "bicubic", "lanczos", "area"] = "bilinear",
    premultiply: bool = False,
    shape: Shape | None = None,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def resize(
    image: Picture,
    size: Size | None = None,
    method: Literal["nearest", "bilinear", "bicubic", "lanczos", "area"] = "bilinear",
    premultiply: bool = False,
    shape: Shape | None = None,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """The image in another size, antialiased when it shrinks.

    size: (width, height) of the output, its own unless given.
    method: how a new pixel is made of old ones.
    premultiply: weigh the colors of an RGBA image by its alpha, so that hidden ones do not show.
    shape: (height, width) of the output, in place of size.
    """
@overload
def resize(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    size: Size | None = None,
    method: Literal["nearest", "bilinear", "bicubic", "lanczos", "area"] = "bilinear",
    premultiply: bool = False,
    shape: Shape | None = None,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def rotate(
    image: Picture,
    degrees: Number,
    expand: bool = False,
    method: Literal["nearest", "bilinear", "bicubic"] = "bilinear",
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "zero",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """The image rotated about its center, counter-clockwise.

    degrees (degrees): the angle, counter-clockwise.
    expand: make the output as large as the whole rotated image needs.
    method: how a pixel between others is found.
    border: what is read outside of the image.
    premultiply: weigh the colors of an RGBA image by its alpha, so that hidden ones do not show.
    """
@overload
def rotate(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    degrees: Number,
    expand: bool = False,
    method: Literal["nearest", "bilinear", "bicubic"] = "bilinear",
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "zero",
    premultiply: bool = False,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def warp_affine(
    image: Picture,
    matrix: npt.ArrayLike,
    inverse: bool = False,
    size: Size | None = None,
    method: Literal["nearest", "bilinear", "bicubic"] = "bilinear",
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "zero",
    premultiply: bool = False,
    shape: Shape | None = None,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """The image moved by a 2 × 3 matrix, which maps (x, y, 1) of the image to (x, y) of the output.

    matrix: 2 × 3 numbers that map (x, y, 1) of the image to (x, y) of the output.
    inverse: take the matrix as the map from the output to the image.
    size: (width, height) of the output, the image's own unless given.
    method: how a pixel between others is found.
    border: what is read outside of the image.
    premultiply: weigh the colors of an RGBA image by its alpha, so that hidden ones do not show.
    shape: (height, width) of the output, in place of size.
    """
@overload
def warp_affine(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    matrix: npt.ArrayLike,
    inverse: bool = False,
    size: Size | None = None,
    method: Literal["nearest", "bilinear", "bicubic"] = "bilinear",
    border: Literal["clamp", "mirror", "reflect", "wrap", "zero"] = "zero",
    premultiply: bool = False,
    shape: Shape | None = None,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
@overload
def detect(
    image: Picture,
    model: str | os.PathLike[str] | Model[Any],
    threshold: Number | None = None,
    like: Literal["mobilenet_v2", "yolo_v5", "blazeface", "posenet", "deeplab", "selfie_segmentation", "text_detection", "text_recognition", "document_layout", "speech_activity"] | None = None,
    every: Integer = 1,
    *,
    out: npt.NDArray[Any] | None = None,
) -> Picture:
    """What a model finds in the image, drawn over it: boxes, key points, masks or its label.

    model: what finds things: a name of the catalog, an ONNX file, or a model.
    threshold: how sure it has to be; the model's own unless given.
    like: the model that an ONNX file is fed and read like.
    every (frames): after how many frames of a video the model is run again.
    """
@overload
def detect(
    image: bytes | bytearray | memoryview,
    width: Integer,
    height: Integer,
    model: str | os.PathLike[str] | Model[Any],
    threshold: Number | None = None,
    like: Literal["mobilenet_v2", "yolo_v5", "blazeface", "posenet", "deeplab", "selfie_segmentation", "text_detection", "text_recognition", "document_layout", "speech_activity"] | None = None,
    every: Integer = 1,
    *,
    out: npt.NDArray[Any] | None = None,
) -> bytes: ...
