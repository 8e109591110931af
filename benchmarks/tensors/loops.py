"""Kernels as users of Numba write them: plain loops in parallel."""

from __future__ import annotations

import math

import numpy as np
from numba import get_num_threads, njit, prange

loops = njit(parallel=True, cache=True)
loops_by_thread = njit(parallel=True)
"""Asks how many threads there are, and is compiled each time."""
f32 = np.float32


@loops
def saxpy(x, y, out, a):
    for i in prange(len(x)):
        out[i] = a * x[i] + y[i]


@loops
def add(x, y, out):
    for i in prange(len(x)):
        out[i] = x[i] + y[i]


@loops
def multiply(x, y, out):
    for i in prange(len(x)):
        out[i] = x[i] * y[i]


@loops
def relu(x, out):
    for i in prange(len(x)):
        out[i] = max(x[i], f32(0))


@loops
def exp(x, out):
    for i in prange(len(x)):
        out[i] = np.exp(x[i])


@loops
def sigmoid(x, out):
    for i in prange(len(x)):
        out[i] = f32(1) / (f32(1) + np.exp(-x[i]))


@loops
def tanh(x, out):
    for i in prange(len(x)):
        out[i] = np.tanh(x[i])


@loops
def gelu(x, out):
    for i in prange(len(x)):
        out[i] = f32(0.5) * x[i] * (f32(1) + f32(math.erf(x[i] * f32(0.70710678))))


@loops
def softmax(x, out):
    for i in prange(x.shape[0]):
        most = x[i].max()
        total = f32(0)
        for j in range(x.shape[1]):
            out[i, j] = np.exp(x[i, j] - most)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] /= total


@loops
def layer_norm(x, weight, bias, out):
    for i in prange(x.shape[0]):
        mean = x[i].sum() / f32(x.shape[1])
        spread = f32(0)
        for j in range(x.shape[1]):
            spread += (x[i, j] - mean) ** 2
        scale = f32(1) / np.sqrt(spread / f32(x.shape[1]) + f32(1e-5))
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * scale * weight[j] + bias[j]


@njit(parallel=True, cache=True, fastmath=True)
def sum_all(x, out):
    """Told that sums may be in any order: else it adds one element after another."""
    total = f32(0)
    for i in prange(len(x)):
        total += x[i]
    out[0] = total


@njit(parallel=True, cache=True, fastmath=True)
def sum_rows(x, out):
    for i in prange(x.shape[0]):
        total = f32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        out[i] = total


@loops_by_thread
def sum_columns(x, out):
    count = get_num_threads()
    parts = np.zeros((count, x.shape[1]), f32)
    for part in prange(count):
        for i in range(part, x.shape[0], count):
            for j in range(x.shape[1]):
                parts[part, j] += x[i, j]
    for j in range(x.shape[1]):
        out[j] = parts[:, j].sum()


@njit(parallel=True, cache=True, fastmath=True)
def max_all(x, out):
    most = f32(-np.inf)
    for i in prange(len(x)):
        most = max(most, x[i])
    out[0] = most


@loops
def argmax_rows(x, out):
    for i in prange(x.shape[0]):
        out[i] = x[i].argmax()


@loops
def transpose(x, out):
    """In blocks that fit into a cache."""
    size = 32
    for block in prange(x.shape[0] // size):
        for left in range(0, x.shape[1], size):
            for i in range(block * size, block * size + size):
                for j in range(left, left + size):
                    out[j, i] = x[i, j]


@loops
def gather(x, places, out):
    for i in prange(len(places)):
        out[i] = x[places[i]]


@loops_by_thread
def histogram(x, out):
    count = get_num_threads()
    parts = np.zeros((count, 256), np.int64)
    size = len(x) // count + 1
    for part in prange(count):
        for i in range(part * size, min(part * size + size, len(x))):
            parts[part, x[i]] += 1
    for level in range(256):
        out[level] = parts[:, level].sum()


@loops_by_thread
def prefix_sum(x, out):
    """Each thread adds up its part; then all add what comes before theirs."""
    count = get_num_threads()
    size = -(-len(x) // count)
    ends = np.zeros(count + 1, x.dtype)
    for part in prange(count):
        total = x[0] - x[0]
        for i in range(part * size, min(part * size + size, len(x))):
            total += x[i]
            out[i] = total
        ends[part + 1] = total
    for part in range(count):
        ends[part + 1] += ends[part]
    for part in prange(count):
        for i in range(part * size, min(part * size + size, len(x))):
            out[i] += ends[part]


@loops
def concat(x, y, out):
    for i in prange(len(x)):
        out[i] = x[i]
    for i in prange(len(y)):
        out[len(x) + i] = y[i]


@loops
def max_pool(x, out):
    for plane in prange(x.shape[0] * x.shape[1]):
        n, c = plane // x.shape[1], plane % x.shape[1]
        for i in range(out.shape[2]):
            for j in range(out.shape[3]):
                above = max(x[n, c, 2 * i, 2 * j], x[n, c, 2 * i, 2 * j + 1])
                below = max(x[n, c, 2 * i + 1, 2 * j], x[n, c, 2 * i + 1, 2 * j + 1])
                out[n, c, i, j] = max(above, below)


@loops
def depthwise(x, weight, out):
    """3 × 3 windows, with zeros around."""
    height, width = x.shape[2:]
    for plane in prange(x.shape[0] * x.shape[1]):
        n, c = plane // x.shape[1], plane % x.shape[1]
        for i in range(height):
            for j in range(width):
                total = f32(0)
                for a in range(max(0, 1 - i), min(3, height + 1 - i)):
                    for b in range(max(0, 1 - j), min(3, width + 1 - j)):
                        total += weight[c, 0, a, b] * x[n, c, i + a - 1, j + b - 1]
                out[n, c, i, j] = total
