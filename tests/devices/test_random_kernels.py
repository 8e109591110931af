"""Random kernels, on a device and by a plain NumPy interpreter of the same IR: every bit agrees.

`DALA_RANDOM_KERNELS=10000 ./test tests/devices` runs more of them; `DALA_RANDOM_SEED` other ones.
"""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest
from reference.case import Case
from reference.random_kernels import random_kernel, run_reference

from dala.devices import cpu_device
from dala.gpu import compute
from dala.runtime.kernel import Kernel

COUNT = int(os.environ.get("DALA_RANDOM_KERNELS", "2000"))
FIRST = int(os.environ.get("DALA_RANDOM_SEED", "1"))
BATCH = 100


def run_on_device(case: Case) -> np.ndarray:
    definition = case.definition
    kernel = Kernel("random", "", lambda: definition)
    inputs = [compute.from_numpy(item) for item in case.inputs]
    output = compute.buffer_zeros(case.shape, case.dtype)
    compute.run_kernel(kernel, inputs, output, {**case.params, **case.consts})
    return compute.read(output)


def differences(got: np.ndarray, want: np.ndarray) -> str:
    """Where the two differ; NaN equals NaN, but 0.0 does not equal -0.0."""
    same = got == want
    if got.dtype.kind == "f":
        signs = np.signbit(got) == np.signbit(want)
        same = (same & signs) | (np.isnan(got) & np.isnan(want))
    places = np.argwhere(~same)[:3]
    return ", ".join(f"{tuple(p)}: {got[tuple(p)]} for {want[tuple(p)]}" for p in places.tolist())


def require_agreement(seed: int, where: str) -> None:
    case = random_kernel(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        want = run_reference(case, fold=False)
    found = differences(run_on_device(case), want)
    assert not found, f"seed {seed} on {where}: {found}\n{case}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, BATCH))
def test_16_random_kernels_agree_with_the_reference(device, first):
    for seed in range(first, first + BATCH):
        require_agreement(seed, device)


@pytest.mark.parametrize("bits", [128, 256, 512])
def test_random_kernels_agree_at_every_vector_width(bits, monkeypatch):
    monkeypatch.setitem(vars(cpu_device().compiler), "vector_bits", bits)
    for seed in range(FIRST + COUNT, FIRST + COUNT + 40):
        require_agreement(seed, f"vectors of {bits} bits")
