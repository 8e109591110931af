"""What a program pays before its first result. Every sample is a fresh process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from benchmarks.harness import Duration

IMPORT_PROGRAM = """
import time, numpy
start = time.perf_counter_ns()
import dala.gpu.compute
print((time.perf_counter_ns() - start) / 1e9)
"""


BYTECODE = tempfile.TemporaryDirectory(prefix="dala-bytecode-")
"""Python's own cache, which an installed package always has."""


def printed_seconds(arguments: list[str], cache_dir: str) -> float:
    finished = subprocess.run(
        [sys.executable, *arguments],
        env={
            **os.environ,
            "DALA_CACHE_DIR": cache_dir,
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": BYTECODE.name,
        },
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(finished.stdout)


def importing() -> Duration:
    def sample() -> float:
        with tempfile.TemporaryDirectory() as cache_dir:
            return printed_seconds(["-c", IMPORT_PROGRAM], cache_dir)

    return Duration("import dala.gpu.compute, beyond numpy", 0.100, sample)


def first_run_with_nothing_cached() -> Duration:
    def sample() -> float:
        with tempfile.TemporaryDirectory() as cache_dir:
            return printed_seconds(["-m", "benchmarks.first_run"], cache_dir)

    return Duration("first run of a fresh kernel, nothing cached", 0.060, sample)


def first_run_from_the_disk_cache() -> Duration:
    cache = tempfile.TemporaryDirectory()

    def sample() -> float:
        return printed_seconds(["-m", "benchmarks.first_run"], cache.name)

    sample()
    return Duration("first run of a fresh kernel, from disk", 0.010, sample)
