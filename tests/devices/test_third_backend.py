"""A third device fits: one of 110 lines, which interprets programs, keeps the promises of all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dala import errors
from dala.devices.registry import Listing, register_backend, unregister_backend
from dala.gpu import compute

ROOT = Path(__file__).parents[2]
CONTRACTS = [
    ROOT.parent / "shared" / "contract" / f"test_{name}.py"
    for name in ("compute", "media", "ml", "surface")
]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "DALA_DEVICE": "numpy"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment,
    )


PROGRAM = """
import numpy as np, reference.backend
from dala.gpu import compute
x = compute.from_numpy(np.float32([-1, 2]))
compute.relu(x, x)
print(compute.device_info()["id"], x.device, compute.read_list(x))
print([info["id"] for info in compute.devices()][:1])
endless = "def endless(x):\\n    while x > 0.0:\\n        x += 1.0\\n    return x"
try:
    compute.run_kernel(compute.Kernel.register("endless", endless), [x], x)
except TimeoutError as error:
    print(type(error).__name__)
"""


def test_a_registered_backend_is_found_and_computes():
    ended = run("-c", PROGRAM)
    assert ended.stdout == "numpy numpy [0.0, 2.0]\n['cpu']\nKernelTimeoutError\n", ended.stderr


@pytest.mark.slow
@pytest.mark.skipif(not CONTRACTS[0].exists(), reason="the contract is not beside this folder")
def test_it_keeps_the_contract():
    plugin = ["-c", "pyproject.toml", "--rootdir", ".", "-p", "reference.backend", "-q"]
    ended = run("-m", "pytest", *plugin, *map(str, CONTRACTS))
    assert ended.returncode == 0, ended.stdout[-3000:]


class Nothing:
    """A backend without devices."""

    def listings(self):
        raise errors.DeviceError("nothing here.")

    def preferred(self):
        return None


def test_a_backend_that_cannot_be_used_is_in_nobodys_way():
    register_backend("nothing", Nothing())
    try:
        assert "nothing" not in [info["id"] for info in compute.devices()]
        with pytest.raises(errors.DeviceError, match=r"There is .*cpu.*nothing here\."):
            compute.use_device("no such device")
        with pytest.raises(errors.ArgumentError, match="registered already"):
            register_backend("nothing", Nothing())
    finally:
        unregister_backend("nothing")


def test_a_device_is_found_by_part_of_its_name():
    with compute.device("cpu") as cpu:
        listing = Listing("odd", "Odd One Out", cpu.info, lambda: cpu)
    backend = Nothing()
    backend.listings = lambda: [listing]
    register_backend("odd", backend)
    try:
        with compute.device("one out") as found:
            assert found is cpu
        assert np.asarray(compute.buffer_zeros((1,), "u8")).tolist() == [0]
    finally:
        unregister_backend("odd")
