"""Filters of single pixels as users of Numba write them: plain loops, rows in parallel.

Images are (height, width, channels), of any dtype; Numba compiles each function for each.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange, types
from numba.extending import overload

loops = njit(parallel=True, cache=True, fastmath=True)
"""Sums may be reordered: what is rounded to levels afterwards is the same, and much faster."""
f32 = np.float32
RED, GREEN, BLUE = f32(0.299), f32(0.587), f32(0.114)


def stored(value, like):
    """The value as an array stores it: rounded and kept in range where that is of integers."""
    raise NotImplementedError("called in compiled code only")


@overload(stored)
def _stored(value, like):
    if isinstance(like.dtype, types.Float):
        return lambda value, like: value
    top = f32((1 << like.dtype.bitwidth) - 1)
    return lambda value, like: min(max(value + f32(0.5), f32(0)), top)


# -- each channel alone ----------------------------------------------------------------------------


@loops
def look_up(x, out, table):
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                out[i, j, k] = table[x[i, j, k]]


@loops
def look_up_each(x, out, tables):
    """A table for each channel."""
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                out[i, j, k] = tables[k, x[i, j, k]]


@loops
def scale_and_add(x, out, a, b):
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                out[i, j, k] = x[i, j, k] * a + b


@loops
def raise_to(x, out, power):
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                out[i, j, k] = x[i, j, k] ** power


@loops
def tame(x, out, exposure, scale):
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                out[i, j, k] = (f32(1) - np.exp(-exposure * x[i, j, k])) * scale


@loops
def multiply(x, out, gains):
    """A factor for each channel."""
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                out[i, j, k] = stored(f32(x[i, j, k]) * gains[k], out)


@loops
def follow_curves(x, out, table):
    """What lies between the entries of a table (entries, channel), of floats in 0..1."""
    last = len(table) - 1
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                place = min(max(x[i, j, k], f32(0)), f32(1)) * f32(last)
                before = min(int(place), last - 1)
                low, high = table[before, k], table[before + 1, k]
                out[i, j, k] = low + (place - f32(before)) * (high - low)


@loops
def shade(x, out, light):
    """All colors times what a map (height, width) says; alpha stays."""
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(min(x.shape[2], 3)):
                out[i, j, k] = stored(f32(x[i, j, k]) * light[i, j], out)
            if x.shape[2] == 4:
                out[i, j, 3] = x[i, j, 3]


# -- channels together -----------------------------------------------------------------------------


@loops
def mix_channels(x, out, m):
    """A matrix of 3 × 3 of the colors; alpha stays."""
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            r, g, b = f32(x[i, j, 0]), f32(x[i, j, 1]), f32(x[i, j, 2])
            for k in range(3):
                out[i, j, k] = stored(m[k, 0] * r + m[k, 1] * g + m[k, 2] * b, out)
            if x.shape[2] == 4:
                out[i, j, 3] = x[i, j, 3]


@loops
def gray(x, out):
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            r, g, b = f32(x[i, j, 0]), f32(x[i, j, 1]), f32(x[i, j, 2])
            out[i, j, 0] = stored(RED * r + GREEN * g + BLUE * b, out)


@loops
def tell_apart(x, out, limit, top):
    """White where the luma is above a limit, in levels; alpha stays."""
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            r, g, b = f32(x[i, j, 0]), f32(x[i, j, 1]), f32(x[i, j, 2])
            light = top if RED * r + GREEN * g + BLUE * b > limit else 0
            for k in range(3):
                out[i, j, k] = light
            if x.shape[2] == 4:
                out[i, j, 3] = x[i, j, 3]


@loops
def key_out(x, out, top, key_cb, key_cr, similarity, blend):
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            r, g, b = f32(x[i, j, 0]) / top, f32(x[i, j, 1]) / top, f32(x[i, j, 2]) / top
            light = RED * r + GREEN * g + BLUE * b
            across = (b - light) / f32(1.772) - key_cb
            up = (r - light) / f32(1.402) - key_cr
            distance = np.sqrt((across * across + up * up) * f32(0.5))
            kept = min(max((distance - similarity) / blend, f32(0)), f32(1))
            for k in range(3):
                out[i, j, k] = x[i, j, k]
            alpha = f32(x[i, j, 3]) if x.shape[2] == 4 else top
            out[i, j, 3] = stored(alpha * kept, out)


@loops
def look_up_trilinear(x, out, table, top):
    """Between the eight corners of a cell of a table (blue, green, red, channel)."""
    last = len(table) - 1
    scale = f32(last) / top
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            r, g, b = f32(x[i, j, 0]) * scale, f32(x[i, j, 1]) * scale, f32(x[i, j, 2]) * scale
            ri, gi, bi = min(int(r), last - 1), min(int(g), last - 1), min(int(b), last - 1)
            r, g, b = r - f32(ri), g - f32(gi), b - f32(bi)
            for k in range(3):
                near = _along(table, bi, gi, ri, k, r, g)
                far = _along(table, bi + 1, gi, ri, k, r, g)
                out[i, j, k] = stored((near + b * (far - near)) * top, out)
            if x.shape[2] == 4:
                out[i, j, 3] = x[i, j, 3]


@njit(cache=True)
def _along(table, b, g, r, k, red, green):
    low = table[b, g, r, k] + red * (table[b, g, r + 1, k] - table[b, g, r, k])
    high = table[b, g + 1, r, k] + red * (table[b, g + 1, r + 1, k] - table[b, g + 1, r, k])
    return low + green * (high - low)


@loops
def look_up_tetrahedral(x, out, table, top):
    """Between four corners of a cell, along its axes in the order of the fractions."""
    last = len(table) - 1
    scale = f32(last) / top
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            r, g, b = f32(x[i, j, 0]) * scale, f32(x[i, j, 1]) * scale, f32(x[i, j, 2]) * scale
            ri, gi, bi = min(int(r), last - 1), min(int(g), last - 1), min(int(b), last - 1)
            r, g, b = r - f32(ri), g - f32(gi), b - f32(bi)
            most, least = max(r, g, b), min(r, g, b)
            middle = r + g + b - most - least
            r1, g1, b1 = ri + (r == most), gi + (g == most and r != most), bi
            b1 += b == most and most not in (r, g)
            r2, g2, b2 = ri + 1, gi + 1, bi + 1
            if b == least:
                b2 = bi
            elif g == least:
                g2 = gi
            else:
                r2 = ri
            for k in range(3):
                value = (f32(1) - most) * table[bi, gi, ri, k]
                value += (most - middle) * table[b1, g1, r1, k]
                value += (middle - least) * table[b2, g2, r2, k]
                value += least * table[bi + 1, gi + 1, ri + 1, k]
                out[i, j, k] = stored(value * top, out)
            if x.shape[2] == 4:
                out[i, j, 3] = x[i, j, 3]
