"""Pixels of 16 bits from PNG and TIFF files.

Pillow reads 16 bits of gray, but keeps only the upper byte of colors. Which byte it keeps is the
raw mode's choice, so a picture in colors is decoded twice: for the upper and for the lower bytes.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from dala.media.pictures.footprint import array_of
from dala.media.pictures.tiff_tags import gray_planes

_BITS, _PHOTOMETRIC, _PLANES, _EXTRA = 258, 262, 284, 338
_WHITE_IS_ZERO, _APART, _MULTIPLIED = 0, 2, (1,)
_PNG_GRAY_ALPHA = 4
_WHITE = 65_535
_RAW_MODES = {"RGB": "RGB", "RGBX": "RGBX", "RGBA": "RGBA", "RGBa": "RGBA"}
"""The raw modes that are decoded byte by byte, without the suffix that chooses the byte."""
_OTHER = {"L": "B", "B": "L"}

Open = Callable[[io.BytesIO], Any]
Load = Callable[[Any], Any]
"""Decodes Pillow's opened image, and returns it upright."""


def deep_pixels(
    image: Any, format: str, data: bytes, opened: Open, load: Load
) -> np.ndarray | None:
    """Returns the upright pixels as u16: gray, RGB or RGBA, or None if these are not known here.

    `image` is Pillow's, opened from `data` by `opened` and not decoded yet; it is decoded unless
    the result is None. A color that the file declares transparent becomes alpha.
    """
    if format == "PNG":
        pixels = _png(image, data, opened, load)
    elif format == "TIFF":
        pixels = _tiff(image, data, opened, load)
    else:
        return None
    return None if pixels is None else _with_clear_color(pixels, image.info.get("transparency"))


def _png(image: Any, data: bytes, opened: Open, load: Load) -> np.ndarray | None:
    if data[24] != 16:
        return None
    if image.mode.startswith("I;16"):
        return _gray(load(image))
    if data[25] == _PNG_GRAY_ALPHA:  # its four bytes are as many as those of RGBA
        image.tile = [_with_raw_mode(tile, "RGBA") for tile in image.tile]
        found = array_of(load(image)).astype(np.uint16)
        gray, alpha = (found[..., at] << 8 | found[..., at + 1] for at in (0, 2))
        return np.stack([gray, gray, gray, alpha], -1)
    return _colors(image, data, opened, load)


def _tiff(image: Any, data: bytes, opened: Open, load: Load) -> np.ndarray | None:
    tags = image.tag_v2
    bits = _bits(tags)
    if image.mode.startswith("I;16"):
        gray = _scaled(_gray(load(image)), bits[0])
        return _WHITE - gray if tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO else gray
    if set(bits) != {16} or image.mode not in ("RGB", "RGBA"):
        return None
    if tags.get(_PLANES) != _APART:
        return _colors(image, data, opened, load)
    planes = [_gray(load(opened(io.BytesIO(plane)))) for plane in gray_planes(data, tags)]
    pixels = np.stack(planes[: len(image.getbands())], -1)
    return _straight(pixels) if tags.get(_EXTRA) == _MULTIPLIED else pixels


def _bits(tags: Any) -> tuple[int, ...]:
    found = tags.get(_BITS, (8,))
    return tuple(found) if isinstance(found, tuple | list) else (int(found),)


def _gray(image: Any) -> np.ndarray:
    return np.asarray(image).astype(np.uint16)


def _scaled(gray: np.ndarray, bits: int) -> np.ndarray:
    """Returns levels of fewer bits stretched to 16."""
    if bits == 16:
        return gray
    white = (1 << bits) - 1
    return ((gray.astype(np.uint32) * _WHITE + white // 2) // white).astype(np.uint16)


def _colors(image: Any, data: bytes, opened: Open, load: Load) -> np.ndarray | None:
    """Returns colors from their upper and lower bytes."""
    kind, _, order = _raw_mode(image.tile[0]).partition(";16")
    if kind not in _RAW_MODES or not order:
        return None
    upper = {"N": "L" if sys.byteorder == "little" else "B"}.get(order, order)
    parts = []
    for each, byte in ((image, upper), (opened(io.BytesIO(data)), _OTHER[upper])):
        name = f"{_RAW_MODES[kind]};16{byte}"
        each.tile = [_with_raw_mode(tile, name) for tile in each.tile]
        parts.append(array_of(load(each)))
    pixels: np.ndarray = parts[0].astype(np.uint16)
    pixels <<= 8
    pixels |= parts[1]
    return _straight(pixels) if kind == "RGBa" else pixels


def _raw_mode(tile: Any) -> str:
    args = tile.args
    return args if isinstance(args, str) else str(args[0])


def _with_raw_mode(tile: Any, name: str) -> Any:
    args = tile.args
    return tile._replace(args=name if isinstance(args, str) else (name, *args[1:]))


def _straight(pixels: np.ndarray) -> np.ndarray:
    """Returns colors that were multiplied by their alpha as they were before."""
    alpha = pixels[..., 3:].astype(np.uint32)
    colors = (pixels[..., :3].astype(np.uint32) * _WHITE + alpha // 2) // np.maximum(alpha, 1)
    pixels[..., :3] = colors.clip(0, _WHITE)
    return pixels


def _with_clear_color(pixels: np.ndarray, clear: Any) -> np.ndarray:
    """Returns the pixels with alpha 0 where they have the color that a PNG declares transparent."""
    if isinstance(clear, int) and pixels.ndim == 2:
        alpha = np.where(pixels == clear, 0, _WHITE)
        return np.stack([pixels, pixels, pixels, alpha.astype(np.uint16)], -1)
    if isinstance(clear, tuple) and pixels.shape[2:] == (3,):
        alpha = np.where((pixels == np.array(clear)).all(-1), 0, _WHITE)
        return np.concatenate([pixels, alpha[..., None].astype(np.uint16)], -1)
    return pixels
