"""The numbers that a parameter accepts, and the refusal of all others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dala.base.record import value
from dala.errors import ArgumentError
from dala.kernels.base.shapes import integer_of, number_within, positive_number

LARGEST_RADIUS = 1 << 20


@value
class Limit:
    """The least and the most that a number can be; `above` leaves out the least itself."""

    least: float = -math.inf
    most: float = math.inf
    above: bool = False
    advice: str = ""
    """What to do about a number that is beyond."""

    def hold_integer(self, kernel: str, name: str, given: Any) -> int:
        """The integer; an ArgumentError, with the range, where it is none or is beyond."""
        number = integer_of(kernel, name, given)
        if self.least <= number <= self.most:
            return number
        raise ArgumentError(f"{kernel}: {name} is {self}, not {number}{self.advice}.")

    def hold_number(self, kernel: str, name: str, given: Any) -> float:
        """The number; an ArgumentError, with the range, where it is none or is beyond."""
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


ANY = Limit()
SHARE = Limit(0, 1)
ABOVE_0 = Limit(0, above=True)
FROM_0 = Limit(0)
RADIUS = Limit(0, LARGEST_RADIUS)
