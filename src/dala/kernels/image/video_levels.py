"""How levels of luma and chroma stand for colors: BT.601, BT.709 and BT.2020, limited and full."""

from __future__ import annotations

from dala.base.record import value

WEIGHTS = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593)}
"""What red and blue add to the luma."""
RANGES = {"limited": (16, 219, 224), "full": (0, 255, 255)}
"""The level of black, and how many levels luma and chroma span."""


@value
class Levels:
    """The weights of a matrix and the levels of a range, of which all else follows.

    With light = yr · R + yg · G + yb · B, Y is black + light, U is 128 + ub · B - ur · R - ug · G
    and V is 128 + vr · R - vg · G - vb · B. Back, with light = y · max(Y - black, 0), u = U - 128
    and v = V - 128, R is light + rv · v, G is light - gu · u - gv · v and B is light + bu · u.
    """

    red: float
    blue: float
    black: int
    luma_span: int
    chroma_span: int

    @property
    def green(self) -> float:
        return 1 - self.red - self.blue

    def colors(self) -> dict[str, float]:
        """How many levels of a color a level of luma or chroma is."""
        rv, bu = self._steepest()
        return {
            "y": 255 / self.luma_span,
            "rv": rv,
            "gu": bu * self.blue / self.green,
            "gv": rv * self.red / self.green,
            "bu": bu,
        }

    def _steepest(self) -> tuple[float, float]:
        """How much of red a level of V is, and of blue a level of U."""
        span = self.chroma_span / 255
        return 2 * (1 - self.red) / span, 2 * (1 - self.blue) / span

    def luma(self) -> dict[str, float]:
        """The weights of red, green and blue in Y."""
        share = self.luma_span / 255
        return {"yr": self.red * share, "yg": self.green * share, "yb": self.blue * share}

    def chroma(self) -> dict[str, float]:
        """The weights in U, where red and green are subtracted, and in V, where green and blue."""
        v, u = (1 / steep for steep in self._steepest())
        return {
            "ur": self.red * u,
            "ug": self.green * u,
            "ub": (1 - self.blue) * u,
            "vr": (1 - self.red) * v,
            "vg": self.green * v,
            "vb": self.blue * v,
        }


def levels_of(matrix: str, range_: str) -> Levels:
    """What the parameters `matrix` and `range` stand for."""
    return Levels(*WEIGHTS[matrix], *RANGES[range_])
