"""Conversion of pictures of any mode and color profile to gray, RGB or RGBA in sRGB."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import numpy as np
from PIL import Image, ImageCms

from dala.images.frames import levels_of
from dala.media.pictures.footprint import array_of
from dala.media.pictures.matrix_profiles import MatrixProfile, encoded, matrix_profile, to_srgb

_SRGB_GAMMA = 0.45455
# Nearer than this to sRGB's own is how encoders write sRGB itself.
_GAMMA_TOLERANCE = 0.01
_GRAY_MODES = ("1", "L", "LA", "La")
_DAMAGED = "(damaged)"


def as_srgb(image: Any) -> tuple[Any, str | None]:
    """Returns the image in mode L, RGB or RGBA, in sRGB; raises ValueError for unknown modes.

    Also returns the name of the color profile that was applied, if any.
    """
    if image.mode in ("I", "F", "LAB", "HSV"):
        raise ValueError(f"pixels of mode {image.mode} have no range or color that is known here")
    if image.mode == "RGBA" and not {"icc_profile", "gamma"} & image.info.keys():
        return image, None
    alpha = None
    base = image
    if image.has_transparency_data:
        whole = image.convert("RGBA")
        alpha = whole.getchannel("A")
        base = whole.getchannel("R") if image.mode in _GRAY_MODES else whole.convert("RGB")
    elif image.mode not in ("L", "RGB", "CMYK"):
        base = image.convert("L" if image.mode in _GRAY_MODES else "RGB")
    base, profile = _converted(base, image.info)
    if base.mode == "CMYK":
        base = base.convert("RGB")
    if alpha is None:
        return base, profile
    base = base.convert("RGB")
    base.putalpha(alpha)
    return base, profile


def as_deep_srgb(pixels: np.ndarray, info: dict[Any, Any]) -> tuple[np.ndarray, str | None]:
    """Returns u16 pixels in sRGB, and the name of the color profile that was applied, if any.

    They are u8 if the profile is made of tables, which are applied to 8 bits only.
    """
    colors = pixels[..., :3] if pixels.ndim == 3 else pixels
    icc, table = info.get("icc_profile"), _gamma_table(info, 1 << 16)
    if icc and icc[16:20] == b"GRAY" and pixels.ndim == 3:  # gray with alpha is RGBA by now
        gray, name = as_deep_srgb(pixels[..., 0], info)
        alpha = pixels[..., 3] if gray.dtype == pixels.dtype else levels_of(pixels[..., 3])
        return np.stack([gray, gray, gray, alpha], -1), name
    if icc:
        found = _deep_profile(colors, icc)
        if found is None:
            return _through_eight_bits(pixels, icc)
        colors, name = found
    elif table is not None:
        colors, name = table[colors], None
    else:
        return pixels, None
    if pixels.shape == colors.shape:
        return colors, name
    return np.concatenate([colors, pixels[..., 3:]], -1), name


def _deep_profile(colors: np.ndarray, icc: bytes) -> tuple[np.ndarray, str | None] | None:
    """Returns the colors converted, or None if that takes tables."""
    try:
        parsed, transform = _transform(icc, "L" if colors.ndim == 2 else "RGB")
    except _REFUSED:
        return colors, _DAMAGED
    if _moves_nothing(transform, "L" if colors.ndim == 2 else "RGB"):
        return colors, None
    source = matrix_profile(icc)
    if source is None or (source.primaries is None) != (colors.ndim == 2):
        return None
    return to_srgb(colors, source, _srgb_profile()), _name(parsed)


@cache
def _srgb_profile() -> MatrixProfile:
    found = matrix_profile(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    assert found is not None
    return found


def _through_eight_bits(pixels: np.ndarray, icc: bytes) -> tuple[np.ndarray, str | None]:
    image = Image.fromarray(levels_of(pixels))
    image.info["icc_profile"] = icc
    made, name = as_srgb(image)
    return array_of(made), name


_REFUSED = (ImageCms.PyCMSError, OSError, TypeError, ValueError)
"""What Pillow raises for profiles that are broken, or of another color space."""


def _converted(base: Any, info: dict[Any, Any]) -> tuple[Any, str | None]:
    """Returns the image (L, RGB or CMYK) converted from its ICC profile or gamma, if it has one."""
    profile = info.get("icc_profile")
    if profile:
        try:
            return _from_profile(base, profile)
        except _REFUSED:
            # As browsers do: the pixels are intact, and most likely sRGB.
            return base, _DAMAGED
    table = None if base.mode == "CMYK" else _gamma_table(info, 256)
    return (base, None) if table is None else (Image.fromarray(table[np.asarray(base)]), None)


def _gamma_table(info: dict[Any, Any], count: int) -> np.ndarray | None:
    """Returns each of so many levels in sRGB, or None if a PNG's gamma is about that of sRGB."""
    gamma = info.get("gamma")
    if "srgb" in info or not isinstance(gamma, float) or gamma <= 0:
        return None
    if abs(gamma - _SRGB_GAMMA) < _GAMMA_TOLERANCE:
        return None
    linear = (np.arange(count) / (count - 1)) ** (1 / gamma)
    dtype = np.uint8 if count == 256 else np.uint16
    return np.asarray(np.rint(encoded(linear) * (count - 1)).astype(dtype))


def _transform(profile: bytes, mode: str) -> tuple[Any, Any]:
    """Returns the parsed profile, and the transform from it to sRGB."""
    parsed = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    return parsed, ImageCms.buildTransform(
        parsed,
        ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")),
        mode,
        "RGB",
        renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )


def _from_profile(base: Any, profile: bytes) -> tuple[Any, str | None]:
    parsed, transform = _transform(profile, base.mode)
    if base.mode != "CMYK" and _moves_nothing(transform, base.mode):
        return base, None
    result: Any = ImageCms.applyTransform(base, transform)
    return result.getchannel("G") if base.mode == "L" else result, _name(parsed)


def _name(parsed: Any) -> str:
    return ImageCms.getProfileDescription(parsed).strip() or "without a name"


def _moves_nothing(transform: Any, mode: str) -> bool:
    """Returns whether no color is moved by more than 1 of 255."""
    probe = _probe(mode)
    moved = np.asarray(ImageCms.applyTransform(probe, transform)).astype(int)
    return bool(np.abs(moved - np.asarray(probe.convert("RGB"))).max() <= 1)


def _probe(mode: str) -> Any:
    """Returns an image with colors from the whole gamut, or every gray."""
    if mode == "L":
        return Image.fromarray(np.arange(256, dtype=np.uint8)[None])
    steps = np.linspace(0, 255, 17).astype(np.uint8)
    cube = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1)
    return Image.fromarray(np.ascontiguousarray(cube.reshape(17, -1, 3)))
