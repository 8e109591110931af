"""The blend modes of the W3C: what a color of an image becomes under one of a layer.

Those of `CURVES` take one channel of each, those of `COLORS` whole pixels.
"""

from __future__ import annotations

from typing import Any

from dala.kernels.base import language as dala
from dala.lang.calls import Function
from dala.runtime.kernels.kernel import function


@function
def normal(below: Any, above: Any) -> Any:
    return above


@function
def multiply(below: Any, above: Any) -> Any:
    return below * above


@function
def screen(below: Any, above: Any) -> Any:
    return below + above - below * above


@function
def hard_light(below: Any, above: Any) -> Any:
    twice = 2.0 * above
    return multiply(below, twice) if above <= 0.5 else screen(below, twice - 1.0)


@function
def overlaid(below: Any, above: Any) -> Any:
    return hard_light(above, below)


@function
def darken(below: Any, above: Any) -> Any:
    return min(below, above)


@function
def lighten(below: Any, above: Any) -> Any:
    return max(below, above)


@function
def color_dodge(below: Any, above: Any) -> Any:
    bright = 1.0 if above >= 1.0 else min(below / (1.0 - above), 1.0)
    return 0.0 if below <= 0.0 else bright


@function
def color_burn(below: Any, above: Any) -> Any:
    dark = 0.0 if above <= 0.0 else 1.0 - min((1.0 - below) / above, 1.0)
    return 1.0 if below >= 1.0 else dark


@function
def soft_light(below: Any, above: Any) -> Any:
    smooth = ((16.0 * below - 12.0) * below + 4.0) * below
    bright = smooth if below <= 0.25 else dala.sqrt(max(below, 0.0))
    lit = below + (2.0 * above - 1.0) * (bright - below)
    return below - (1.0 - 2.0 * above) * below * (1.0 - below) if above <= 0.5 else lit


@function
def difference(below: Any, above: Any) -> Any:
    return abs(below - above)


@function
def exclusion(below: Any, above: Any) -> Any:
    return below + above - 2.0 * below * above


@function
def subtract(below: Any, above: Any) -> Any:
    return max(below - above, 0.0)


@function
def divide(below: Any, above: Any) -> Any:
    part = 1.0 if above <= 0.0 else min(below / above, 1.0)
    return 0.0 if below <= 0.0 else part


CURVES: dict[str, Function] = {
    "normal": normal,
    "multiply": multiply,
    "screen": screen,
    "overlay": overlaid,
    "darken": darken,
    "lighten": lighten,
    "color-dodge": color_dodge,
    "color-burn": color_burn,
    "hard-light": hard_light,
    "soft-light": soft_light,
    "difference": difference,
    "exclusion": exclusion,
    "subtract": subtract,
    "divide": divide,
}


# -- whole colors ---------------------------------------------------------------------------------


@function
def _light(r: Any, g: Any, b: Any) -> Any:
    """How bright a color is, with the weights that the W3C gives here."""
    return 0.3 * r + 0.59 * g + 0.11 * b


@function
def _span(p: Any) -> Any:
    return max(p.r, p.g, p.b) - min(p.r, p.g, p.b)


@function
def _lit(r: Any, g: Any, b: Any, light: Any) -> Any:
    """The color made as bright as `light`, drawn towards its gray where it leaves 0..1."""
    more = light - _light(r, g, b)
    r, g, b = r + more, g + more, b + more
    least, most = min(r, g, b), max(r, g, b)
    down = light / (light - least) if least < 0.0 else 1.0
    up = (1.0 - light) / (most - light) if most > 1.0 else 1.0
    part = down * up
    return light + (r - light) * part, light + (g - light) * part, light + (b - light) * part


@function
def _stretched(p: Any, span: Any) -> Any:
    """The color with its least channel at 0 and its largest at `span`."""
    own, least = _span(p), min(p.r, p.g, p.b)
    scale = span / own if own > 0.0 else 0.0
    return (p.r - least) * scale, (p.g - least) * scale, (p.b - least) * scale


@function
def hue(below: Any, above: Any) -> Any:
    r, g, b = _stretched(above, _span(below))
    return _lit(r, g, b, _light(below.r, below.g, below.b))


@function
def saturation(below: Any, above: Any) -> Any:
    r, g, b = _stretched(below, _span(above))
    return _lit(r, g, b, _light(below.r, below.g, below.b))


@function
def color(below: Any, above: Any) -> Any:
    return _lit(above.r, above.g, above.b, _light(below.r, below.g, below.b))


@function
def luminosity(below: Any, above: Any) -> Any:
    return _lit(below.r, below.g, below.b, _light(above.r, above.g, above.b))


COLORS: dict[str, Function] = {
    "hue": hue,
    "saturation": saturation,
    "color": color,
    "luminosity": luminosity,
}
