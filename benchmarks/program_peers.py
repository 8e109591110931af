"""The same programs as users of Numba, Taichi and JAX write them."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from typing import Any

import numpy as np

from dala.gpu import compute

Peer = Callable[[], np.ndarray]
Makers = dict[str, Callable[[], Peer]]


@cache
def numba() -> Any:
    import numba as module

    module.set_num_threads(compute.device_info()["threads"])
    return module


@cache
def taichi() -> Any:
    import taichi as module

    threads = compute.device_info()["threads"]
    with redirect_stdout(io.StringIO()):  # it says on what it starts, whatever its level
        module.init(module.cpu, cpu_max_num_threads=threads, log_level=module.ERROR)
    return module


def jax() -> Any:
    import jax as module

    return module


# -- Mandelbrot ------------------------------------------------------------------------------------


def mandelbrot(shape: tuple[int, int], steps: int) -> Makers:
    out = np.empty(shape, np.int32)
    h, w = shape

    def of_numba() -> Peer:
        nb = numba()

        @nb.njit(parallel=True)
        def run(out):
            f = np.float32
            for i in nb.prange(h):
                for j in range(w):
                    cx, cy = f(-2) + f(3) * f(j) / f(w), f(-1) + f(2) * f(i) / f(h)
                    x, y, n = f(0), f(0), 0
                    while n < steps and x * x + y * y < f(4):
                        x, y = x * x - y * y + cx, f(2) * x * y + cy
                        n += 1
                    out[i, j] = n

        return lambda: run(out) or out

    def of_taichi() -> Peer:
        ti = taichi()
        field = ti.field(ti.i32, shape)

        @ti.kernel
        def run():
            for i, j in field:
                cx, cy = -2.0 + 3.0 * j / w, -1.0 + 2.0 * i / h
                x, y, n = 0.0, 0.0, 0
                while n < steps and x * x + y * y < 4.0:
                    x, y = x * x - y * y + cx, 2.0 * x * y + cy
                    n += 1
                field[i, j] = n

        return _taichi_result(run, field)

    return {"Numba": of_numba, "Taichi": of_taichi}


# -- Black-Scholes ---------------------------------------------------------------------------------


def black_scholes(given: list[np.ndarray], rate: float, volatility: float) -> Makers:
    out = np.empty_like(given[0])

    def of_numba() -> Peer:
        nb = numba()
        f = np.float32
        r, v = f(rate), f(volatility)

        @nb.njit(parallel=True)
        def run(price, strike, years, out):
            for i in nb.prange(len(price)):
                spread = v * math.sqrt(years[i])
                d1 = (math.log(price[i] / strike[i]) + (r + f(0.5) * v * v) * years[i]) / spread
                d2 = d1 - spread
                below1 = f(0.5) + f(0.5) * math.erf(d1 * f(0.70710678))
                below2 = f(0.5) + f(0.5) * math.erf(d2 * f(0.70710678))
                out[i] = price[i] * below1 - strike[i] * math.exp(-r * years[i]) * below2

        return lambda: run(*given, out) or out

    def of_jax() -> Peer:
        module = jax()
        jnp, erf = module.numpy, module.scipy.special.erf

        @module.jit
        def run(price, strike, years):
            spread = volatility * jnp.sqrt(years)
            d1 = (jnp.log(price / strike) + (rate + 0.5 * volatility**2) * years) / spread
            below1, below2 = (0.5 + 0.5 * erf(d * 0.70710678) for d in (d1, d1 - spread))
            return price * below1 - strike * jnp.exp(-rate * years) * below2

        held = [jnp.asarray(x) for x in given]
        return lambda: run(*held).block_until_ready()

    return {"Numba": of_numba, "JAX": of_jax}


# -- n-body ----------------------------------------------------------------------------------------


def n_body(mass: np.ndarray, at: np.ndarray, softening: float) -> Makers:
    out = np.empty_like(at)
    n = len(mass)

    def of_numba() -> Peer:
        nb = numba()
        soft = np.float32(softening)

        @nb.njit(parallel=True)
        def run(mass, at, out):
            for i in nb.prange(n):
                ax = ay = az = np.float32(0)
                x, y, z = at[i, 0], at[i, 1], at[i, 2]
                for j in range(n):
                    dx, dy, dz = at[j, 0] - x, at[j, 1] - y, at[j, 2] - z
                    far = dx * dx + dy * dy + dz * dz + soft
                    pull = mass[j] / (far * math.sqrt(far))
                    ax, ay, az = ax + dx * pull, ay + dy * pull, az + dz * pull
                out[i, 0], out[i, 1], out[i, 2] = ax, ay, az

        return lambda: run(mass, at, out) or out

    def of_taichi() -> Peer:
        ti = taichi()
        masses, places = ti.field(ti.f32, n), ti.Vector.field(3, ti.f32, n)
        pulls = ti.Vector.field(3, ti.f32, n)
        masses.from_numpy(mass)
        places.from_numpy(at)

        @ti.kernel
        def run():
            for i in places:
                total = ti.Vector([0.0, 0.0, 0.0])
                for j in range(n):
                    apart = places[j] - places[i]
                    far = apart.norm_sqr() + softening
                    total += apart * (masses[j] / (far * ti.sqrt(far)))
                pulls[i] = total

        return _taichi_result(run, pulls)

    def of_jax() -> Peer:
        module = jax()
        jnp = module.numpy

        @module.jit
        def run(mass, at):
            apart = at[None, :, :] - at[:, None, :]
            far = (apart * apart).sum(-1) + softening
            return (apart * (mass / (far * jnp.sqrt(far)))[..., None]).sum(1)

        held = jnp.asarray(mass), jnp.asarray(at)
        return lambda: run(*held).block_until_ready()

    return {"Numba": of_numba, "Taichi": of_taichi, "JAX": of_jax}


# -- Jacobi ----------------------------------------------------------------------------------------


def jacobi(plate: np.ndarray) -> Makers:
    h, w = plate.shape

    def of_numba() -> Peer:
        nb = numba()
        ping, pong = plate.copy(), plate.copy()
        quarter = np.float32(0.25)

        @nb.njit(parallel=True)
        def relax(x, out):
            for i in nb.prange(h):
                up, down = max(i - 1, 0), min(i + 1, h - 1)
                for j in range(w):
                    left, right = max(j - 1, 0), min(j + 1, w - 1)
                    out[i, j] = quarter * (x[up, j] + x[down, j] + x[i, left] + x[i, right])

        def run() -> np.ndarray:
            relax(plate, pong)
            relax(pong, ping)
            for _ in range(4):
                relax(ping, pong)
                relax(pong, ping)
            return ping

        return run

    def of_taichi() -> Peer:
        ti = taichi()
        start, ping, pong = (ti.field(ti.f32, plate.shape) for _ in range(3))
        start.from_numpy(plate)

        def relaxing(x: Any, out: Any) -> Callable[[], None]:
            @ti.kernel
            def relax():
                for i, j in x:
                    up, down = max(i - 1, 0), min(i + 1, h - 1)
                    left, right = max(j - 1, 0), min(j + 1, w - 1)
                    out[i, j] = 0.25 * (x[up, j] + x[down, j] + x[i, left] + x[i, right])

            return relax

        first, there, back = relaxing(start, pong), relaxing(ping, pong), relaxing(pong, ping)

        def run() -> None:
            first()
            back()
            for _ in range(4):
                there()
                back()

        return _taichi_result(run, ping)

    def of_jax() -> Peer:
        module = jax()
        jnp = module.numpy

        @module.jit
        def run(x):
            for _ in range(10):
                wide = jnp.pad(x, 1, mode="edge")
                x = 0.25 * (wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:])
            return x

        held = jnp.asarray(plate)
        return lambda: run(held).block_until_ready()

    return {"Numba": of_numba, "Taichi": of_taichi, "JAX": of_jax}


# -- waves -----------------------------------------------------------------------------------------


def waves(fields: list[np.ndarray]) -> Makers:
    out = np.empty((4, *fields[0].shape), np.float32)
    h, w = fields[0].shape

    def of_numba() -> Peer:
        nb = numba()
        f = np.float32

        @nb.njit(parallel=True)
        def run(p, u, v, loudness, out):
            for i in nb.prange(h):
                up, down = max(i - 1, 0), min(i + 1, h - 1)
                for j in range(w):
                    left, right = max(j - 1, 0), min(j + 1, w - 1)
                    here, x, y = p[i, j], u[i, j], v[i, j]
                    spread = u[i, right] - x + v[down, j] - y
                    out[0, i, j] = here - f(0.5) * spread
                    out[1, i, j] = x - f(0.5) * (here - p[i, left])
                    out[2, i, j] = y - f(0.5) * (here - p[up, j])
                    power = here * here + x * x + y * y
                    out[3, i, j] = f(0.99) * loudness[i, j] + f(0.01) * power

        return lambda: run(*fields, out) or out

    return {"Numba": of_numba}


# -- a scene of signed distances -------------------------------------------------------------------


def scene(shape: tuple[int, int]) -> Makers:
    out = np.empty(shape, np.float32)
    h, w = shape

    def of_numba() -> Peer:
        nb = numba()
        f = np.float32

        @nb.njit
        def distance_at(x, y, z):
            ball = math.sqrt(x * x + (y - f(0.2)) * (y - f(0.2)) + z * z) - f(0.7)
            around = math.sqrt(x * x + z * z) - f(1.1)
            ring = math.sqrt(around * around + y * y) - f(0.25)
            return min(ball, ring, y + f(0.6))

        @nb.njit(parallel=True)
        def run(out):
            for i in nb.prange(h):
                for j in range(w):
                    across, down = (f(2) * f(j) - f(w)) / f(h), (f(h) - f(2) * f(i)) / f(h)
                    rx, ry, rz = across, down - f(0.2), f(1.8)
                    scale = f(1) / math.sqrt(rx * rx + ry * ry + rz * rz)
                    rx, ry, rz = rx * scale, ry * scale, rz * scale
                    far = f(0)
                    for _ in range(64):
                        step = distance_at(rx * far, f(0.6) + ry * far, f(-3) + rz * far)
                        if step < f(0.001) or far > f(20):
                            break
                        far += step
                    out[i, j] = far

        return lambda: run(out) or out

    def of_taichi() -> Peer:
        ti = taichi()
        field = ti.field(ti.f32, shape)

        @ti.func
        def distance_at(p):
            ball = (p - ti.Vector([0.0, 0.2, 0.0])).norm() - 0.7
            ring = ti.Vector([ti.Vector([p.x, p.z]).norm() - 1.1, p.y]).norm() - 0.25
            return min(ball, ring, p.y + 0.6)

        @ti.kernel
        def run():
            for i, j in field:
                across, down = (2.0 * j - w) / h, (h - 2.0 * i) / h
                ray = ti.Vector([across, down - 0.2, 1.8]).normalized()
                eye = ti.Vector([0.0, 0.6, -3.0])
                far = 0.0
                for _ in range(64):
                    step = distance_at(eye + ray * far)
                    if step < 0.001 or far > 20.0:
                        break
                    far += step
                field[i, j] = far

        return _taichi_result(run, field)

    return {"Numba": of_numba, "Taichi": of_taichi}


def _taichi_result(run: Callable[[], object], field: Any) -> Peer:
    """Runs a kernel; its field is read only when somebody looks at it."""

    class Result:
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return field.to_numpy()

    def call() -> Any:
        run()
        taichi().sync()
        return Result()

    return call
