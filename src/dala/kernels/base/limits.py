"""What parameters of filters can be: limits that hold however a filter is called.

A kernel that is declared by `recipe` or `choice` is held to them before it is planned: so is a
filter, a stage of a pipeline and a command line. Each is declared here and nowhere else; between
which values a slider would go is another thing, and is said in the catalogue of filters.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from dala.base.record import value
from dala.errors import ArgumentError
from dala.kernels.base.shapes import number_within, positive_number, whole_number

LARGEST_RADIUS = 1 << 20
MOST_BILATERAL = 256
MOST_FRAMES = 1000
LEAST_K, MOST_K = 2000, 40_000


@value
class Limit:
    """The least and the most that a number can be; `above` leaves out the least itself."""

    least: float
    most: float = math.inf
    above: bool = False
    whole: bool = False
    advice: str = ""
    """What to do about a number that is beyond."""

    def hold(self, kernel: str, name: str, given: Any) -> int | float:
        """The number; an ArgumentError, with what it can be, where it is none or is beyond."""
        if self.whole:
            number = whole_number(kernel, name, given)
            if self.least <= number <= self.most:
                return number
            raise ArgumentError(f"{kernel}: {name} is {self}, not {number}{self.advice}.")
        if self.above:
            return positive_number(kernel, name, given)
        return number_within(kernel, name, given, self.least, self.most)

    def __str__(self) -> str:
        if self.above:
            return f"above {self.least:g}"
        least, most = (f"{end:f}".rstrip("0").rstrip(".") for end in (self.least, self.most))
        return f"{least} to {most}" if math.isfinite(self.most) else f"{least} or more"

    def describe(self) -> dict[str, float]:
        """The ends by name, for programs."""
        ends = {"above" if self.above else "least": self.least}
        return ends | ({"most": self.most} if math.isfinite(self.most) else {})

    @staticmethod
    def described(ends: Mapping[str, float]) -> Limit:
        """The limit that `describe` has told."""
        above = "above" in ends
        return Limit(ends["above" if above else "least"], ends.get("most", math.inf), above)


_SHARE = Limit(0, 1)
_ABOVE_0 = Limit(0, above=True)
_RADIUS = Limit(0, LARGEST_RADIUS, whole=True)
_EVERY = Limit(1, MOST_FRAMES, whole=True)

LIMITS: dict[str, dict[str, Limit]] = {
    "brightness": {"value": Limit(-1, 1)},
    "gamma": {"value": _ABOVE_0},
    "white_balance": {"temperature": Limit(LEAST_K, MOST_K), "tint": Limit(-1, 1)},
    "sepia": {"intensity": _SHARE},
    "threshold": {"value": _SHARE},
    "hdr": {"exposure": Limit(1e-6, 1e6)},
    "vignette": {"intensity": _SHARE, "radius": Limit(0), "softness": _ABOVE_0},
    "blur": {"radius": _RADIUS, "sigma": _ABOVE_0},
    "box_blur": {"radius": _RADIUS},
    "median": {
        "radius": Limit(1, 2, whole=True, advice=": a larger one can be had by filtering again"),
    },
    "bilateral": {
        "radius": Limit(
            0,
            MOST_BILATERAL,
            whole=True,
            advice=": every pixel in a circle of it is looked at. Filter a smaller image instead",
        ),
        "sigma_color": _ABOVE_0,
        "sigma_space": _ABOVE_0,
    },
    "denoise": {"strength": _SHARE},
    "beauty": {"strength": _SHARE},
    "unsharp": {"radius": _RADIUS, "sigma": _ABOVE_0, "threshold": Limit(0)},
    "erode": {"radius": _RADIUS},
    "dilate": {"radius": _RADIUS},
    "overlay": {"alpha": _SHARE},
    "blend": {"alpha": _SHARE},
    "chroma_key": {"similarity": _SHARE, "blend": _SHARE},
    "background_blur": {"radius": _RADIUS, "sigma": _ABOVE_0, "every": _EVERY},
    "background_replace": {"every": _EVERY},
    "detect": {"threshold": _SHARE, "every": _EVERY},
}
"""By kernel and parameter; what is not here can be any number."""


def hold(kernel: str, params: Mapping[str, Any], optional: Collection[str] = ()) -> dict[str, Any]:
    """The parameters, those with limits as numbers within them; `optional` ones may be None."""
    limits = LIMITS.get(kernel, {})
    return {
        name: limits[name].hold(kernel, name, given)
        if name in limits and not (given is None and name in optional)
        else given
        for name, given in params.items()
    }
