"""ICC profiles made of curves and a matrix, applied to 16 bits.

Little CMS, as Pillow has it, converts 8 bits only. Cameras, screens and editors describe RGB and
gray by a curve for each channel and the colors of the primaries (ICC.1, 10.6 and 10.18), which
takes no more than a table and a matrix product.
"""

from __future__ import annotations

import struct

import numpy as np

from dala.base.record import record

LEVELS = 65_536
_WHITE = LEVELS - 1
_BAND_PIXELS = 1 << 20
_HEADER_BYTES = 128
_PARAMETERS = {0: 1, 1: 3, 2: 4, 3: 5, 4: 7}
"""How many numbers each type of parametric curve has."""
_TABLES = ("A2B0", "A2B1", "A2B2")
"""Tables of colors, which come before curves and matrix."""
_LIGHTEST_BLACK = 0.184
"""The lightest black that is compensated for, as in Little CMS: half of white to the eye."""


@record
class MatrixProfile:
    """Linear light for every level of each channel, and the primaries' XYZ as columns."""

    curves: tuple[np.ndarray, ...]
    primaries: np.ndarray | None
    """None for gray."""


def matrix_profile(icc: bytes) -> MatrixProfile | None:
    """Returns the profile's curves and matrix, or None if it is made of tables or damaged."""
    try:
        return _parsed(icc)
    except (struct.error, KeyError, ValueError, IndexError):
        return None


def _parsed(icc: bytes) -> MatrixProfile | None:
    (count,) = struct.unpack_from(">I", icc, _HEADER_BYTES)
    parts = {}
    for number in range(min(count, 1000)):
        name, at, size = struct.unpack_from(">4sII", icc, _HEADER_BYTES + 4 + 12 * number)
        parts[name.decode("latin-1")] = icc[at : at + size]
    if icc[20:24] != b"XYZ " or any(name in parts for name in _TABLES):
        return None
    if icc[16:20] == b"GRAY":
        return MatrixProfile((_curve(parts["kTRC"]),), None)
    if icc[16:20] != b"RGB ":
        return None
    columns = [struct.unpack_from(">3i", parts[f"{name}XYZ"], 8) for name in "rgb"]
    curves = tuple(_curve(parts[f"{name}TRC"]) for name in "rgb")
    return MatrixProfile(curves, np.array(columns).T / 65_536)


def _curve(part: bytes) -> np.ndarray:
    """Returns the light of each level from 0 to 65535."""
    x = np.linspace(0.0, 1.0, LEVELS)
    if part[:4] == b"para":
        (kind,) = struct.unpack_from(">H", part, 8)
        numbers = struct.unpack_from(f">{_PARAMETERS[kind]}i", part, 12)
        return _parametric(x, kind, *(number / 65_536 for number in numbers)).clip(0, 1)
    if part[:4] != b"curv":
        raise ValueError(part[:4])
    (count,) = struct.unpack_from(">I", part, 8)
    if count == 0:
        return x
    points = struct.unpack_from(f">{count}H", part, 12)
    if count == 1:
        return np.asarray(x ** (points[0] / 256))
    return np.interp(x, np.linspace(0.0, 1.0, count), np.array(points) / _WHITE)


def _parametric(
    x: np.ndarray,
    kind: int,
    g: float,
    a: float = 1.0,
    b: float = 0.0,
    c: float = 0.0,
    d: float = 0.0,
    e: float = 0.0,
    f: float = 0.0,
) -> np.ndarray:
    """Returns the curve of ICC.1, table 68; `kind` says which numbers it has."""
    power = np.maximum(a * x + b, 0.0) ** g
    if kind < 3:
        below = -b / a if kind else 0.0
        return np.where(x >= below, power + c, c)
    return np.where(x >= d, power + e, c * x + f)


def to_srgb(pixels: np.ndarray, source: MatrixProfile, target: MatrixProfile) -> np.ndarray:
    """Returns u16 gray or RGB in sRGB, whose own profile is `target`: rounded, and clamped."""
    made = np.empty_like(pixels)
    matrix, black = None, _black(source)
    if source.primaries is not None:
        assert target.primaries is not None
        matrix = np.linalg.inv(target.primaries) @ source.primaries
    rows = max(1, _BAND_PIXELS // max(1, pixels.shape[1]))
    for top in range(0, len(pixels), rows):
        band = pixels[top : top + rows]
        if matrix is None:
            light = source.curves[0][band]
        else:
            light = np.stack([curve[band[..., i]] for i, curve in enumerate(source.curves)], -1)
            light = light @ matrix.T
        light = ((light - black) / (1 - black)).clip(0, 1)
        made[top : top + rows] = np.rint(encoded(light) * _WHITE)
    return made


def _black(profile: MatrixProfile) -> float:
    """Returns how light the profile's black is, which becomes that of sRGB: 0."""
    darkest = [curve[0] for curve in profile.curves]
    light = darkest[0] if profile.primaries is None else profile.primaries[1] @ darkest
    return min(float(light), _LIGHTEST_BLACK)


def encoded(light: np.ndarray) -> np.ndarray:
    """Returns linear light of 0 to 1 as sRGB."""
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
