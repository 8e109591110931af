"""Layers and masks as users of Numba write them: plain loops, rows in parallel.

Blend modes work on levels, in floats; the first image is the one below.
"""

from __future__ import annotations

from numba import njit, prange

from benchmarks.filters.loops_points import f32, loops, stored

mode = njit(inline="always")


@mode
def normal(a, b, top):
    return b


@mode
def add(a, b, top):
    return min(a + b, top)


@mode
def subtract(a, b, top):
    return max(a - b, f32(0))


@mode
def multiply(a, b, top):
    return a * b * (f32(1) / top)


@mode
def screen(a, b, top):
    return a + b - a * b * (f32(1) / top)


@mode
def darken(a, b, top):
    return min(a, b)


@mode
def lighten(a, b, top):
    return max(a, b)


@mode
def difference(a, b, top):
    return abs(a - b)


@mode
def overlay(a, b, top):
    if a + a <= top:
        return (a + a) * b * (f32(1) / top)
    return top - f32(2) * (top - a) * (top - b) * (f32(1) / top)


MODES = {
    "normal": normal,
    "add": add,
    "subtract": subtract,
    "multiply": multiply,
    "screen": screen,
    "darken": darken,
    "lighten": lighten,
    "difference": difference,
    "overlay": overlay,
}


def blending(name: str):
    """What blends opaque images in a mode; and what does so with RGBA, and with an `alpha`."""
    blend = MODES[name]

    @njit(parallel=True, fastmath=True)
    def opaque(x, y, out, top):
        for i in prange(x.shape[0]):
            for j in range(x.shape[1]):
                for k in range(x.shape[2]):
                    a, b = f32(x[i, j, k]), f32(y[i, j, k])
                    out[i, j, k] = stored(blend(a, b, top), out)

    @njit(parallel=True, fastmath=True)
    def with_alpha(x, y, out, alpha, top):
        for i in prange(x.shape[0]):
            for j in range(x.shape[1]):
                below = f32(x[i, j, 3]) / top
                above = alpha * f32(y[i, j, 3]) / top
                both = above + below * (f32(1) - above)
                share = above / both if both > f32(0) else f32(0)
                for k in range(3):
                    a, b = f32(x[i, j, k]), f32(y[i, j, k])
                    color = (f32(1) - below) * b + below * blend(a, b, top)
                    out[i, j, k] = stored(a + share * (color - a), out)
                out[i, j, 3] = stored(both * top, out)

    return opaque, with_alpha


@loops
def mix(x, y, out, alpha):
    """The second image at an opacity over the first, both without alpha."""
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                a, b = f32(x[i, j, k]), f32(y[i, j, k])
                out[i, j, k] = stored(a + alpha * (b - a), out)


@loops
def add_with_alpha(x, y, out, alpha, top):
    """plus-lighter, whose alpha is a sum, too."""
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            below = f32(x[i, j, 3]) / top
            above = alpha * f32(y[i, j, 3]) / top
            both = min(f32(1), above + below)
            for k in range(3):
                a, b = f32(x[i, j, k]), f32(y[i, j, k])
                total = min(top, above * b + below * a)
                out[i, j, k] = stored(total / both if both > f32(0) else a, out)
            out[i, j, 3] = stored(both * top, out)


@loops
def put_over(x, layer, out, left, upper, top):
    """A layer with alpha over an image, at a place inside of it."""
    height, width = layer.shape[:2]
    for i in prange(x.shape[0]):
        out[i] = x[i]
        down = i - upper
        if 0 <= down < height:
            for across in range(width):
                j = left + across
                above = f32(layer[down, across, 3]) / top
                if x.shape[2] == 1:
                    light = f32(0.299) * f32(layer[down, across, 0])
                    light += f32(0.587) * f32(layer[down, across, 1])
                    light += f32(0.114) * f32(layer[down, across, 2])
                    a = f32(x[i, j, 0])
                    out[i, j, 0] = stored(a + above * (light - a), out)
                    continue
                below = f32(x[i, j, 3]) / top if x.shape[2] == 4 else f32(1)
                both = above + below * (f32(1) - above)
                share = above / both if both > f32(0) else f32(0)
                for k in range(3):
                    a, b = f32(x[i, j, k]), f32(layer[down, across, k])
                    out[i, j, k] = stored(a + share * (b - a), out)
                if x.shape[2] == 4:
                    out[i, j, 3] = stored(both * top, out)


@loops
def mix_by_mask(x, y, mask, out, top):
    """The first image where the mask is white, and the second where it is black."""
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            share = f32(mask[i, j, 0]) / top
            for k in range(x.shape[2]):
                a, b = f32(x[i, j, k]), f32(y[i, j, k])
                out[i, j, k] = stored(b + share * (a - b), out)


@loops
def weigh_background(x, mask, color, weight, top):
    """What lies behind, by how much it is seen: colors times that, and that itself."""
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            seen = f32(1) - f32(mask[i, j, 0]) / top
            weight[i, j] = seen
            for k in range(color.shape[2]):
                color[i, j, k] = f32(x[i, j, k]) * seen


@loops
def reveal(x, mask, color, weight, out, top):
    """The image over its blurred background."""
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            share = f32(mask[i, j, 0]) / top
            for k in range(color.shape[2]):
                behind = color[i, j, k] / max(weight[i, j, 0], f32(1e-9))
                a = f32(x[i, j, k])
                out[i, j, k] = stored(behind + share * (a - behind), out)
            if x.shape[2] == 4:
                out[i, j, 3] = x[i, j, 3]


@loops
def take_part(x, out, left, upper):
    """A rectangle of the image."""
    for i in prange(out.shape[0]):
        for j in range(out.shape[1]):
            for k in range(out.shape[2]):
                out[i, j, k] = x[upper + i, left + j, k]
