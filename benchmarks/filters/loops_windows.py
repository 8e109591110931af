"""Filters that look around a pixel as users of Numba write them: plain loops, rows in parallel."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from benchmarks.filters.loops_points import BLUE, GREEN, RED, f32, loops, stored


@loops
def sharpen(x, out, amount):
    height, width = x.shape[:2]
    for i in prange(height):
        up, down = max(i - 1, 0), min(i + 1, height - 1)
        for j in range(width):
            left, right = max(j - 1, 0), min(j + 1, width - 1)
            for k in range(x.shape[2]):
                here = f32(x[i, j, k])
                around = f32(x[up, j, k]) + f32(x[down, j, k])
                around += f32(x[i, left, k]) + f32(x[i, right, k])
                out[i, j, k] = stored(here + amount * (f32(4) * here - around), out)


@njit(inline="always")
def luma(x, i, j):
    if x.shape[2] == 1:
        return f32(x[i, j, 0])
    return RED * f32(x[i, j, 0]) + GREEN * f32(x[i, j, 1]) + BLUE * f32(x[i, j, 2])


@loops
def find_edges(x, out, light):
    """Sobel's magnitude of the luma, which is kept between: in one channel, or in all colors."""
    height, width = x.shape[:2]
    for i in prange(height):
        for j in range(width):
            light[i, j] = luma(x, i, j)
    for i in prange(height):
        up, down = max(i - 1, 0), min(i + 1, height - 1)
        for j in range(width):
            left, right = max(j - 1, 0), min(j + 1, width - 1)
            across = light[up, right] + f32(2) * light[i, right] + light[down, right]
            across -= light[up, left] + f32(2) * light[i, left] + light[down, left]
            steep = light[down, left] + f32(2) * light[down, j] + light[down, right]
            steep -= light[up, left] + f32(2) * light[up, j] + light[up, right]
            found = stored(np.sqrt(across * across + steep * steep), out)
            for k in range(min(out.shape[2], 3)):
                out[i, j, k] = found
            if out.shape[2] == 4:
                out[i, j, 3] = x[i, j, 3]


@loops
def weigh_alike(x, guide, out, places, nearness, colors):
    """The mean of the pixels at places around, by how near they are, and how alike in the guide.

    `colors` has the weight of each distance of colors where these are integers, else the factor of
    its square in the exponent.
    """
    height, width, channels = x.shape
    for i in prange(height):
        for j in range(width):
            weights, r, g, b, a = f32(0), f32(0), f32(0), f32(0), f32(0)
            for n in range(len(places)):
                v = min(max(i + places[n, 0], 0), height - 1)
                u = min(max(j + places[n, 1], 0), width - 1)
                apart = abs(f32(guide[v, u, 0]) - f32(guide[i, j, 0]))
                if channels > 1:
                    apart += abs(f32(guide[v, u, 1]) - f32(guide[i, j, 1]))
                    apart += abs(f32(guide[v, u, 2]) - f32(guide[i, j, 2]))
                if channels > 3:
                    apart += abs(f32(guide[v, u, 3]) - f32(guide[i, j, 3]))
                weight = nearness[n] * likeness(apart, colors)
                weights += weight
                r += weight * f32(x[v, u, 0])
                if channels > 1:
                    g += weight * f32(x[v, u, 1])
                    b += weight * f32(x[v, u, 2])
                if channels > 3:
                    a += weight * f32(x[v, u, 3])
            out[i, j, 0] = stored(r / weights, out)
            if channels > 1:
                out[i, j, 1] = stored(g / weights, out)
                out[i, j, 2] = stored(b / weights, out)
            if channels > 3:
                out[i, j, 3] = stored(a / weights, out)


@njit(inline="always")
def likeness(apart, colors):
    if len(colors) == 1:
        return np.exp(apart * apart * colors[0])
    return colors[int(apart)]


@loops
def beautify(x, smooth, out, strength, top):
    """Skin in place of its detail and a little brighter; all else as it was."""
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            light = luma(smooth, i, j) / top
            cb = f32(0.5) + (smooth[i, j, 2] / top - light) / f32(1.772)
            cr = f32(0.5) + (smooth[i, j, 0] / top - light) / f32(1.402)
            down, across = (cb - f32(0.4)) / f32(0.1), (cr - f32(0.6)) / f32(0.08)
            far = (np.sqrt(down * down + across * across) - f32(0.75)) / f32(0.5)
            far = min(max(far, f32(0)), f32(1))
            skin = strength * (f32(1) - far * far * (f32(3) - f32(2) * far))
            for k in range(3):
                here, soft = f32(x[i, j, k]) / top, smooth[i, j, k] / top
                change = f32(0.2) * here * (f32(1) - here) - f32(0.8) * (here - soft)
                out[i, j, k] = stored((here + skin * change) * top, out)
            if x.shape[2] == 4:
                out[i, j, 3] = x[i, j, 3]


@loops
def warp(x, out, m):
    """Pixels at places (x, y) of the image, m · (x, y, 1) of the output; black outside of it."""
    height, width = x.shape[:2]
    for i in prange(out.shape[0]):
        for j in range(out.shape[1]):
            across = m[0, 0] * f32(j) + m[0, 1] * f32(i) + m[0, 2]
            down = m[1, 0] * f32(j) + m[1, 1] * f32(i) + m[1, 2]
            left, upper = math.floor(across), math.floor(down)
            u, v = across - f32(left), down - f32(upper)
            if left < -1 or upper < -1 or left >= width or upper >= height:
                out[i, j] = 0
                continue
            for k in range(x.shape[2]):
                a = f32(x[upper, left, k]) if upper >= 0 and left >= 0 else f32(0)
                b = f32(x[upper, left + 1, k]) if upper >= 0 and left + 1 < width else f32(0)
                c = f32(x[upper + 1, left, k]) if upper + 1 < height and left >= 0 else f32(0)
                d = f32(0)
                if upper + 1 < height and left + 1 < width:
                    d = f32(x[upper + 1, left + 1, k])
                low, high = a + u * (b - a), c + u * (d - c)
                out[i, j, k] = stored(low + v * (high - low), out)


@loops
def expand_planes(x, out, width, interleaved, order):
    """Colors of planes of video in the limited range of BT.601; `order` is that of the channels."""
    height = out.shape[0]
    flat = x.ravel()
    luma_size, half = height * width, width // 2
    for i in prange(height):
        for j in range(width):
            place = (i // 2) * half + j // 2
            if interleaved:
                u, v = flat[luma_size + 2 * place], flat[luma_size + 2 * place + 1]
            else:
                u, v = flat[luma_size + place], flat[luma_size + luma_size // 4 + place]
            light = f32(1.164384) * max(f32(flat[i * width + j]) - f32(16), f32(0))
            cb, cr = f32(u) - f32(128), f32(v) - f32(128)
            out[i, j, order[0]] = stored(light + f32(1.596027) * cr, out)
            green = light - f32(0.391762) * cb - f32(0.812968) * cr
            out[i, j, order[1]] = stored(green, out)
            out[i, j, order[2]] = stored(light + f32(2.017232) * cb, out)
            if out.shape[2] == 4:
                out[i, j, 3] = 255


@loops
def reduce_colors(x, out, interleaved, order):
    """Planes of video in the limited range of BT.601; chroma is that of the mean of 2 × 2."""
    height, width = x.shape[:2]
    flat = out.ravel()
    luma_size = height * width
    for pair in prange(height // 2):
        for j in range(0, width, 2):
            r, g, b = f32(0), f32(0), f32(0)
            for i in range(2 * pair, 2 * pair + 2):
                for m in range(j, j + 2):
                    red, green = f32(x[i, m, order[0]]), f32(x[i, m, order[1]])
                    blue = f32(x[i, m, order[2]])
                    light = f32(0.256788) * red + f32(0.504129) * green + f32(0.097906) * blue
                    flat[i * width + m] = stored(light + f32(16), out)
                    r, g, b = r + red, g + green, b + blue
            r, g, b = r * f32(0.25), g * f32(0.25), b * f32(0.25)
            u = f32(128) - f32(0.148223) * r - f32(0.290993) * g + f32(0.439216) * b
            v = f32(128) + f32(0.439216) * r - f32(0.367788) * g - f32(0.071427) * b
            place = pair * (width // 2) + j // 2
            if interleaved:
                flat[luma_size + 2 * place] = stored(u, out)
                flat[luma_size + 2 * place + 1] = stored(v, out)
            else:
                flat[luma_size + place] = stored(u, out)
                flat[luma_size + luma_size // 4 + place] = stored(v, out)
