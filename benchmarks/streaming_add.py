"""A sum of two arrays in C, with AVX and stores that do not read what they overwrite."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks import THREADS
from benchmarks.peers import Absent, need_program

ALIGNMENT = 64
SOURCE = """
#include <immintrin.h>

void add(const float *a, const float *b, float *out, long n, int threads) {
    #pragma omp parallel for num_threads(threads) schedule(static)
    for (long i = 0; i < n; i += 16) {
        __m256 low = _mm256_add_ps(_mm256_load_ps(a + i), _mm256_load_ps(b + i));
        __m256 high = _mm256_add_ps(_mm256_load_ps(a + i + 8), _mm256_load_ps(b + i + 8));
        _mm256_stream_ps(out + i, low);
        _mm256_stream_ps(out + i + 8, high);
    }
    _mm_sfence();
}
"""


def aligned(count: int) -> np.ndarray:
    """Floats that begin at a line of the cache."""
    memory = np.empty(count * 4 + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + count * 4].view(np.float32)


@cache
def compiled() -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
    """What adds two aligned arrays into a third; an Absent without gcc, or without AVX."""
    gcc = need_program("gcc")
    if " avx " not in _flags():
        raise Absent("this processor has no AVX, or does not say so in /proc/cpuinfo")
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "add.c"), Path(folder, "add.so")
        source.write_text(SOURCE, encoding="utf-8")
        given = ["-O3", "-mavx", "-fopenmp", "-shared", "-fPIC", str(source), "-o", str(library)]
        done = subprocess.run([gcc, *given], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Absent(f"gcc does not compile it: {done.stderr.strip():.100}")
        function = ctypes.CDLL(str(library)).add
    pointer = ctypes.c_void_p
    function.argtypes = [pointer, pointer, pointer, ctypes.c_long, ctypes.c_int]
    function.restype = None

    def call(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        function(a.ctypes.data, b.ctypes.data, out.ctypes.data, len(a), THREADS)

    return call


def _flags() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""
