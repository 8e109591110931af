"""Prints the seconds from the definition of a kernel to the end of its first run."""

import time

import numpy as np

import dala
from dala.gpu import compute


def main() -> None:
    values = np.linspace(-1.0, 1.0, 1000, dtype=np.float32)
    x = compute.from_numpy(values)
    out = compute.buffer_zeros(values.shape, "f32")

    start = time.perf_counter_ns()

    @dala.kernel
    def shifted_square(x, shift: dala.f32):
        return x * x + shift

    compute.run_kernel(shifted_square, [x], out, {"shift": 0.25})
    seconds = (time.perf_counter_ns() - start) / 1e9

    np.testing.assert_allclose(compute.read(out), values * values + np.float32(0.25), rtol=1e-6)
    print(seconds)


if __name__ == "__main__":
    main()
