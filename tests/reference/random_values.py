"""Numbers for random kernels: ordinary ones, and those at which arithmetic goes wrong."""

from random import Random

import numpy as np

from dala.ir.types import DTYPES

F32_EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 255.0, 255.5, 1e-45, -1e-40, 1.1754944e-38]
F32_EDGES += [2147483648.0, -2147483904.0, 4294967296.0, 1e10, -3e38, 3.4028235e38]
F32_EDGES += [float("nan"), float("inf"), float("-inf")]
F16_EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 255.0, 6e-8, -3e-5, 6.1e-5, 65504.0, -65504.0]
F16_EDGES += [float("nan"), float("inf"), float("-inf")]
F64_EDGES = [*F32_EDGES, 5e-324, -1e-310, 1e300, -1.7e308, 9.223372036854775807e18, 0.1, 2.0**53]

F32_LITERALS = [
    "0.0",
    "1.0",
    "2.0",
    "0.5",
    "0.25",
    "3.0",
    "(-1.5)",
    "(-0.0)",
    "0.1",
    "255.0",
    "100.0",
]
F32_LITERALS += [
    "1e-3",
    "1e10",
    "(-3e38)",
    "1e-40",
    "2147483648.0",
    "4294967040.0",
    "9.3e18",
    "1e999",
]
F64_LITERALS = [*F32_LITERALS, "1e300", "5e-324", "0.3333333333333333", "(-1e18)"]


def random_array(rng: Random, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Values of the dtype, about a third of them at the edges of what it holds."""
    scalar = DTYPES[dtype]
    count = int(np.prod(shape))
    if dtype == "bool":
        values = [rng.random() < 0.5 for _ in range(count)]
    elif scalar.is_float:
        edges = {"f16": F16_EDGES, "f32": F32_EDGES, "f64": F64_EDGES}[dtype]
        values = [_either(rng, edges, lambda: rng.uniform(-8.0, 8.0)) for _ in range(count)]
    else:
        edges = integer_edges(dtype)
        low = -20 if scalar.kind == "s" else 0
        values = [_either(rng, edges, lambda: rng.randint(low, 40)) for _ in range(count)]
    return np.array(values, scalar.numpy).reshape(shape)


def integer_edges(dtype: str) -> list[int]:
    """The ends of an integer dtype, its width and what is beside it."""
    scalar = DTYPES[dtype]
    near = [0, 1, 2, 3, 7, scalar.bits - 1, scalar.bits, scalar.bits + 1, scalar.highest]
    near += [scalar.highest - 1, scalar.highest // 2 + 1, scalar.lowest]
    return near if scalar.kind == "u" else [*near, -1, -2, -7, scalar.lowest + 1]


def random_literal(rng: Random, dtype: str) -> str:
    """A number as text that fits the dtype and takes it beside a value of that dtype."""
    if DTYPES[dtype].is_float:
        if rng.random() < 0.2:
            return str(rng.randint(0, 9))
        return rng.choice(F32_LITERALS if dtype == "f32" else F64_LITERALS)
    value = _either(rng, integer_edges(dtype), lambda: rng.randint(0, 12))
    return f"({value})" if value < 0 else str(value)


def _either(rng, edges, ordinary):
    return rng.choice(edges) if rng.random() < 0.35 else ordinary()
