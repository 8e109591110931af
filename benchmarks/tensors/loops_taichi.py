"""Kernels as users of Taichi write them; Taichi is started before this is imported."""

import taichi as ti

Array = ti.types.ndarray(ti.f32, 1)


@ti.kernel
def saxpy(x: Array, y: Array, out: Array, a: ti.f32):
    for i in out:
        out[i] = a * x[i] + y[i]


@ti.kernel
def add(x: Array, y: Array, out: Array):
    for i in out:
        out[i] = x[i] + y[i]


@ti.kernel
def multiply(x: Array, y: Array, out: Array):
    for i in out:
        out[i] = x[i] * y[i]


@ti.kernel
def relu(x: Array, out: Array):
    for i in out:
        out[i] = ti.max(x[i], 0.0)


@ti.kernel
def exp(x: Array, out: Array):
    for i in out:
        out[i] = ti.exp(x[i])


@ti.kernel
def sigmoid(x: Array, out: Array):
    for i in out:
        out[i] = 1.0 / (1.0 + ti.exp(-x[i]))


@ti.kernel
def tanh(x: Array, out: Array):
    for i in out:
        out[i] = ti.tanh(x[i])


@ti.kernel
def sum_all(x: Array, out: Array):
    total = 0.0
    for i in x:
        total += x[i]
    out[0] = total
