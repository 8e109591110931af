"""Convolutions, pooling and resizing of images with channels last, in plain NumPy."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def pads(size, reach, stride, padding):
    """How many elements are added before and after an axis."""
    if padding == "VALID":
        return 0, 0
    total = max((-(-size // stride) - 1) * stride + reach - size, 0)
    return total // 2, total - total // 2


def windows(x, window, strides, padding, dilations=(1, 1), fill=0.0):
    """Batch, rows, columns, channels, rows of the window, columns of the window."""
    reach = [(size - 1) * gap + 1 for size, gap in zip(window, dilations, strict=True)]
    rim = padding
    if isinstance(padding, str):
        rim = [pads(*each, padding) for each in zip(x.shape[1:3], reach, strides, strict=True)]
    wide = np.pad(x, [(0, 0), *rim, (0, 0)], constant_values=fill)
    found = sliding_window_view(wide, reach, axis=(1, 2))
    return found[:, :: strides[0], :: strides[1], :, :: dilations[0], :: dilations[1]]


def convolution(x, w, strides=(1, 1), padding="VALID", dilations=(1, 1)):
    return np.einsum("nyxcij,ijco->nyxo", windows(x, w.shape[:2], strides, padding, dilations), w)


def depthwise(x, w, strides=(1, 1), padding="VALID", dilations=(1, 1)):
    found = windows(x, w.shape[:2], strides, padding, dilations)
    made = np.einsum("nyxcij,ijcm->nyxcm", found, w)
    return made.reshape(*made.shape[:3], -1)


def transposed_convolution(x, w, size, strides, padding):
    """Each element spreads the weights over the result; what is outside of it is cut off."""
    rows, columns, channels, _ = w.shape
    reach = [
        (count - 1) * stride + width
        for count, stride, width in zip(x.shape[1:3], strides, (rows, columns), strict=True)
    ]
    whole = np.zeros(
        (x.shape[0], *(max(a, b) + 8 for a, b in zip(reach, size, strict=True)), channels)
    )
    for y in range(x.shape[1]):
        for z in range(x.shape[2]):
            top, left = y * strides[0], z * strides[1]
            spread = np.einsum("nc,ijoc->nijo", x[:, y, z], w)
            whole[:, top : top + rows, left : left + columns] += spread
    top, left = (
        pads(*each, padding)[0] for each in zip(size, (rows, columns), strides, strict=True)
    )
    return whole[:, top : top + size[0], left : left + size[1]]


def sources(size, count, aligned, centred):
    """Where along an axis each new element lies among the old ones."""
    places = np.arange(count)
    if aligned:
        return places * ((size - 1) / (count - 1)) if count > 1 else places * 0.0
    scale = size / count
    return (places + 0.5) * scale - 0.5 if centred else places * scale


def bilinear(x, size, aligned=False, centred=False):
    for axis in (1, 2):
        at = sources(x.shape[axis], size[axis - 1], aligned, centred)
        at = np.clip(at, 0, x.shape[axis] - 1)
        low = np.floor(at).astype(int)
        high = np.minimum(low + 1, x.shape[axis] - 1)
        part = (at - low).reshape([-1 if each == axis else 1 for each in range(4)])
        x = np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part
    return x


def nearest(x, size, aligned=False, centred=False):
    for axis in (1, 2):
        at = sources(x.shape[axis], size[axis - 1], aligned, centred)
        places = np.floor(at + 0.5) if aligned or centred else np.floor(at)
        x = np.take(x, np.clip(places, 0, x.shape[axis] - 1).astype(int), axis)
    return x
