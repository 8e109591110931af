"""Declarations of parameters that several filters have."""

from __future__ import annotations

from typing import Any

from dala.ir.nodes import BORDERS
from dala.kernels.base.limits import ABOVE_0, RADIUS
from dala.kernels.base.parameters import Ends, Param, choice, flag, integer, number, other

GRAY = 114 / 255
"""The gray that object detectors are trained to see around an image."""


def border_param(default: str = "clamp") -> Param:
    """The border rule."""
    return choice("what is read outside of the image", *BORDERS, default=default)


PREMULTIPLY = flag(
    "weigh the colors of an RGBA image by its alpha, so that hidden ones do not show"
)
AROUND = {"border": border_param(), "premultiply": PREMULTIPLY}
"""Parameters of filters that read the pixels around each."""


def radius_param(default: int, usual: Ends = (0, 100), **limits: Any) -> Param:
    """The radius of a square of pixels around each."""
    return integer(
        "how far the pixels around each are taken into account",
        default,
        unit="pixels",
        usual=usual,
        **{"limit": RADIUS, **limits},
    )


def spread_params(effective: int) -> dict[str, Param]:
    """The radius and the sigma of a Gaussian, each of which follows from the other."""
    return {
        "radius": integer(
            "how far the blur reaches",
            None,
            unit="pixels",
            usual=(0, 100),
            limit=RADIUS,
            effective=effective,
            rule="3 · sigma, rounded up, where only sigma is given",
        ),
        "sigma": number(
            "the standard deviation of the Gaussian",
            None,
            unit="pixels",
            usual=(0.1, 50),
            limit=ABOVE_0,
            effective=effective / 2,
            rule="radius / 2, at least 0.5, where only the radius is given",
        ),
    }


def size_param(what: str, *, relative: bool = False) -> Param:
    """A width and a height."""
    return other("size", f"(width, height) of {what}", None, relative=relative)


def shape_param(what: str) -> Param:
    """A height and a width, as arrays have them."""
    return other("shape", f"(height, width) of {what}, in place of size", None)
