"""How fast dala is, as ratios to what else does the same work.

Importing this package holds the process to two processors and two threads: it comes before NumPy,
whose BLAS reads its settings once.
"""

import os

THREADS = 2

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = str(THREADS)

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
