"""Conversion of Pillow images of any mode and color profile to gray, RGB or RGBA in sRGB."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image, ImageCms

_SRGB_GAMMA = 0.45455
# Nearer than this to sRGB's own is how encoders write sRGB itself.
_GAMMA_TOLERANCE = 0.01
_GRAY_MODES = ("1", "L", "LA", "La")


def as_srgb(image: Any) -> tuple[Any, str | None]:
    """Returns the image in mode L, RGB or RGBA, in sRGB; raises ValueError for unknown modes.

    Also returns the name of the color profile that was applied, if any.
    """
    if image.mode.startswith("I;16"):
        image = _halved(image)
    elif image.mode in ("I", "F", "LAB", "HSV"):
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


def _halved(image: Any) -> Any:
    """Returns a 16-bit gray image rounded to 8 bits, with its transparent value as alpha."""
    values = np.asarray(image).astype(np.uint32)
    gray = Image.fromarray(((values * 255 + 32767) // 65535).astype(np.uint8))
    clear = image.info.get("transparency")
    if isinstance(clear, int):
        gray.putalpha(Image.fromarray(np.where(values == clear, 0, 255).astype(np.uint8)))
    gray.info.update({key: value for key, value in image.info.items() if key != "transparency"})
    return gray


def _converted(base: Any, info: dict[Any, Any]) -> tuple[Any, str | None]:
    """Returns the image (L, RGB or CMYK) converted from its ICC profile or gamma, if it has one."""
    profile = info.get("icc_profile")
    if profile:
        try:
            return _from_profile(base, profile)
        except (ImageCms.PyCMSError, OSError, TypeError, ValueError):
            # As browsers do: the pixels are intact, and most likely sRGB.
            return base, "(damaged)"
    gamma = info.get("gamma")
    if "srgb" in info or not isinstance(gamma, float) or base.mode == "CMYK" or gamma <= 0:
        return base, None
    if abs(gamma - _SRGB_GAMMA) < _GAMMA_TOLERANCE:
        return base, None
    linear = (np.arange(256) / 255) ** (1 / gamma)
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    table = np.rint(encoded * 255).astype(np.uint8)
    return Image.fromarray(table[np.asarray(base)]), None


def _from_profile(base: Any, profile: bytes) -> tuple[Any, str | None]:
    parsed = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    transform = ImageCms.buildTransform(
        parsed,
        ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")),
        base.mode,
        "RGB",
        renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )
    if base.mode != "CMYK":
        probe = _probe(base.mode)
        moved = np.asarray(ImageCms.applyTransform(probe, transform)).astype(int)
        if np.abs(moved - np.asarray(probe.convert("RGB"))).max() <= 1:
            return base, None
    result: Any = ImageCms.applyTransform(base, transform)
    name = ImageCms.getProfileDescription(parsed).strip() or "without a name"
    return result.getchannel("G") if base.mode == "L" else result, name


def _probe(mode: str) -> Any:
    """Returns an image with colors from the whole gamut, or every gray."""
    if mode == "L":
        return Image.fromarray(np.arange(256, dtype=np.uint8)[None])
    steps = np.linspace(0, 255, 17).astype(np.uint8)
    cube = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1)
    return Image.fromarray(np.ascontiguousarray(cube.reshape(17, -1, 3)))
