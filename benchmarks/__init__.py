"""How fast dala is, as ratios to what else does the same work.

Importing this package holds the process to two processors and two threads: it comes before NumPy,
whose BLAS reads its settings once.
"""

import os

THREADS = 2

for _name in (
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "HL_NUM_THREADS",
    "VIPS_CONCURRENCY",
):
    os.environ[_name] = str(THREADS)
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
"""How long threads of OpenMP, those of PyTorch and Numba, look for more work before they sleep. By
default that is so long that they take the processors from each other, and from dala."""
os.environ["ENABLE_TAICHI_HEADER_PRINT"] = "0"  # what it prints would be in the way of --json

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
