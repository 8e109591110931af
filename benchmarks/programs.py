"""Programs of users in the kernel language, beside the fastest of Numba, Taichi and JAX.

All in f32, with the same number of threads and the same algorithm on each side. Numba and Taichi
write to arrays that are there already, JAX gives its own; what Taichi and JAX keep on their side
stays there. Mathematics is as each compiles it by default: none is told that it may be inexact.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

import dala
from benchmarks import program_peers as peers
from benchmarks.contest import Peer, fastest, installed
from benchmarks.harness import Comparison, Row
from dala.gpu import compute

BAR = 1.0
SAMPLE_S = 0.02
STEPS = 100
BODIES = 4096
SOFTENING = 1e-3


def comparison(
    work: str,
    ours: Callable[[], object],
    result: Callable[[], np.ndarray],
    makers: peers.Makers,
    *,
    within: float,
    share: float = 1.0,
) -> Comparison:
    """A row against the fastest of the peers that are installed; `share` of the elements agree."""
    calls = installed(Peer(name, make) for name, make in makers.items())

    def check() -> None:
        ours()
        got = result()
        for name, call in calls.items():
            close = np.isclose(got, np.asarray(call()), rtol=within, atol=within)
            assert close.mean() >= share, f"{work}: {1 - close.mean():.2%} differ from {name}"

    check()
    name, rounds = fastest(calls)
    return Comparison(
        work,
        BAR,
        ours,
        calls[name],
        check=lambda: None,
        sample_s=SAMPLE_S,
        most_rounds=rounds,
        peer_name=name,
        others=tuple(calls),
    )


# -- Mandelbrot ------------------------------------------------------------------------------------


@dala.kernel
def mandelbrot():
    i, j = dala.position(2)
    h, w = dala.shape(2)
    cx, cy = -2.0 + 3.0 * j / w, -1.0 + 2.0 * i / h
    x, y, n = 0.0, 0.0, 0
    while n < STEPS and x * x + y * y < 4.0:
        x, y = x * x - y * y + cx, 2.0 * x * y + cy
        n += 1
    return n


def mandelbrot_row() -> Comparison:
    shape = (1024, 1536)
    out = compute.buffer_zeros(shape, "s32")
    return comparison(
        "Mandelbrot, 1536 × 1024, 100 steps",
        partial(compute.run_kernel, mandelbrot, [], out),
        lambda: np.asarray(out),
        peers.mandelbrot(shape, STEPS),
        within=0.0,
        share=0.99,  # a point that wanders off in the last bit
    )


# -- Black-Scholes ---------------------------------------------------------------------------------


@dala.kernel
def black_scholes(price, strike, years, rate: float, volatility: float):
    spread = volatility * dala.sqrt(years)
    d1 = (dala.log(price / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    d2 = d1 - spread
    below1 = 0.5 + 0.5 * dala.erf(d1 * 0.70710678)
    below2 = 0.5 + 0.5 * dala.erf(d2 * 0.70710678)
    return price * below1 - strike * dala.exp(-rate * years) * below2


def black_scholes_row() -> Comparison:
    random = np.random.default_rng(1)
    n = 1 << 20
    given = [
        random.uniform(low, high, n).astype(np.float32)
        for low, high in ((5, 30), (1, 100), (0.25, 10))
    ]
    inputs, out = [compute.from_numpy(x) for x in given], compute.buffer_zeros((n,), "f32")
    params = {"rate": 0.02, "volatility": 0.3}
    return comparison(
        "Black-Scholes, 1 M options",
        partial(compute.run_kernel, black_scholes, inputs, out, params),
        lambda: np.asarray(out),
        peers.black_scholes(given, 0.02, 0.3),
        within=1e-3,
    )


# -- n-body ----------------------------------------------------------------------------------------


@dala.kernel
def attract(mass, at, out: dala.Out):
    (i,) = dala.position(1)
    x, y, z = at[i, 0], at[i, 1], at[i, 2]
    ax, ay, az = 0.0, 0.0, 0.0
    for j in range(len(mass)):
        dx, dy, dz = at[j, 0] - x, at[j, 1] - y, at[j, 2] - z
        far = dx * dx + dy * dy + dz * dz + SOFTENING
        pull = mass[j] / (far * dala.sqrt(far))
        ax, ay, az = ax + dx * pull, ay + dy * pull, az + dz * pull
    out[i, 0], out[i, 1], out[i, 2] = ax, ay, az


def n_body_row() -> Comparison:
    random = np.random.default_rng(1)
    mass, at = random.random(BODIES, np.float32), random.random((BODIES, 3), np.float32)
    inputs = [compute.from_numpy(mass), compute.from_numpy(at)]
    out = compute.buffer_zeros((BODIES, 3), "f32")
    return comparison(
        f"n-body, {BODIES} bodies",
        partial(compute.run_kernel, attract, inputs, out),
        lambda: np.asarray(out),
        peers.n_body(mass, at, SOFTENING),
        within=1e-2,
    )


# -- Jacobi ----------------------------------------------------------------------------------------


@dala.kernel
def relax(x):
    i, j = dala.position(2)
    return 0.25 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])


def jacobi_row() -> Comparison:
    plate = np.random.default_rng(1).random((1024, 1024), np.float32)
    start, ping, pong = (compute.from_numpy(plate) for _ in range(3))
    first = compute.pipeline().add(relax, [start], pong).add(relax, [pong], ping)
    others = compute.pipeline().add(relax, [ping], pong).add(relax, [pong], ping)

    def ours() -> None:
        first.run()
        compute.repeat(others, 4)

    return comparison(
        "Jacobi × 10, 1024²",
        ours,
        lambda: np.asarray(ping),
        peers.jacobi(plate),
        within=1e-5,
    )


# -- waves -----------------------------------------------------------------------------------------


@dala.kernel
def wave_step(p, u, v, loudness):
    i, j = dala.position(2)
    spread = u[i, j + 1] - u + v[i + 1, j] - v
    louder = 0.99 * loudness + 0.01 * (p * p + u * u + v * v)
    return p - 0.5 * spread, u - 0.5 * (p - p[i, j - 1]), v - 0.5 * (p - p[i - 1, j]), louder


def waves_row() -> Comparison:
    random = np.random.default_rng(1)
    fields = [random.random((1024, 1024), np.float32) for _ in range(4)]
    inputs = [compute.from_numpy(field) for field in fields]
    outputs = [compute.buffer_zeros(fields[0].shape, "f32") for _ in fields]
    return comparison(
        "waves, 4 fields of 1024²",
        partial(compute.run_kernel, wave_step, inputs, outputs),
        lambda: np.stack([np.asarray(output) for output in outputs]),
        peers.waves(fields),
        within=1e-5,
    )


# -- a scene of signed distances -------------------------------------------------------------------


@dala.function
def distance_at(p):
    ball = dala.length(p - dala.vec3(0.0, 0.2, 0.0)) - 0.7
    ring = dala.length(dala.vec2(dala.length(p.xz) - 1.1, p.y)) - 0.25
    ground = p.y + 0.6
    return min(ball, ring, ground)


@dala.kernel
def march():
    i, j = dala.position(2)
    h, w = dala.shape(2)
    across, down = (2.0 * j - w) / h, (h - 2.0 * i) / h
    ray = dala.normalize(dala.vec3(across, down - 0.2, 1.8))
    eye = dala.vec3(0.0, 0.6, -3.0)
    far = 0.0
    for _ in range(64):
        step = distance_at(eye + ray * far)
        if step < 0.001 or far > 20.0:
            break
        far += step
    return far


def scene_row() -> Comparison:
    shape = (540, 960)
    out = compute.buffer_zeros(shape, "f32")
    return comparison(
        "SDF scene, 960 × 540, 64 steps",
        partial(compute.run_kernel, march, [], out),
        lambda: np.asarray(out),
        peers.scene(shape),
        within=1e-2,
        share=0.99,
    )


ROWS: dict[str, Callable[[], Row]] = {
    "mandelbrot": mandelbrot_row,
    "black-scholes": black_scholes_row,
    "n-body": n_body_row,
    "jacobi": jacobi_row,
    "waves": waves_row,
    "sdf-scene": scene_row,
}
