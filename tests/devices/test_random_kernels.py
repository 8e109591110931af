"""Random kernels, on a device and by a plain NumPy interpreter of the same IR.

On the CPU every bit agrees. A GPU's driver may contract and reorder float operations, so there an
element may differ as `dala.devices.result_comparison` allows, or where it differs as much when
every float of the reference is moved by a unit in its last place: such an element says nothing.

`DALA_RANDOM_KERNELS=10000 ./test tests/devices` runs more of them; `DALA_RANDOM_SEED` other ones.
"""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest
from reference.case import Case
from reference.random_kernels import random_kernel, run_reference

from dala.devices import CPU
from dala.devices.result_comparison import compared
from dala.gpu import compute
from dala.runtime.kernels.kernel import Kernel

COUNT = int(os.environ.get("DALA_RANDOM_KERNELS", "2000"))
FIRST = int(os.environ.get("DALA_RANDOM_SEED", "1"))
BATCH = 100
SHAKES = 24
MOST_SHAKY = BATCH // 8
"""Kernels of a batch that may have elements which say nothing; about one in thirty has."""


def run_on_device(case: Case) -> list[np.ndarray]:
    definition = case.definition
    kernel = Kernel("random", "", lambda: definition)
    inputs = [compute.from_numpy(item) for item in case.inputs]
    outputs = [compute.buffer_zeros(case.shape, dtype) for dtype in case.dtypes]
    compute.run_kernel(kernel, inputs, outputs, {**case.params, **case.consts})
    return [compute.read(output) for output in outputs]


def unlike(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where the two differ; NaN equals NaN, but 0.0 does not equal -0.0."""
    same = got == want
    if got.dtype.kind == "f":
        signs = np.signbit(got) == np.signbit(want)
        same = (same & signs) | (np.isnan(got) & np.isnan(want))
    return ~same


def shaky(case: Case, number: int, want: np.ndarray, seed: int) -> np.ndarray:
    """The elements of an output that change when floats are off by a unit in their last place."""
    found = np.zeros(want.shape, bool)
    for shake in range(SHAKES):
        generator = np.random.default_rng([seed, shake])
        moved = run_reference(case, fold=False, shaken_by=generator)[number]
        found |= unlike(moved, want) if want.dtype.kind != "f" else compared(moved, want)[0]
    return found


def disagreement(seed: int, *, exact: bool) -> tuple[str, bool]:
    """What is wrong with a kernel, and whether some of its elements say nothing."""
    case = random_kernel(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        listed, excused = [], False
        outputs = zip(run_on_device(case), run_reference(case, fold=False), strict=True)
        for number, (got, want) in enumerate(outputs):
            wrong = unlike(got, want) if exact else compared(got, want)[0]
            # Levels are computed in integers, and floats may miss the middle between two of them.
            if wrong.any() and (not exact or case.definition.is_image):
                excused = True
                wrong &= ~shaky(case, number, want, seed)
            for place in map(tuple, np.argwhere(wrong)[:3].tolist()):
                listed.append(f"output {number} at {place}: {got[place]} for {want[place]}")
    return (f"seed {seed}: {', '.join(listed)}\n{case}" if listed else ""), excused


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, BATCH))
def test_16_random_kernels_agree_with_the_reference(device, first):
    found = [disagreement(seed, exact=device == "cpu") for seed in range(first, first + BATCH)]
    wrong = [text for text, _ in found if text]
    assert not wrong, f"on {device}, {len(wrong)} kernels: {wrong[0]}"
    assert sum(excused for _, excused in found) <= MOST_SHAKY


@pytest.mark.parametrize("bits", [128, 256, 512])
def test_random_kernels_agree_at_every_vector_width(bits, monkeypatch):
    monkeypatch.setitem(vars(CPU.compiler), "vector_bits", bits)
    for seed in range(FIRST + COUNT, FIRST + COUNT + 40):
        wrong, _ = disagreement(seed, exact=True)
        assert not wrong, f"vectors of {bits} bits: {wrong}"
