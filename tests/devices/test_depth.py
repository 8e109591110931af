"""Kernels that are nested deeply."""

from __future__ import annotations

import pytest

from dala import errors
from dala.gpu import compute


def chain(length: int) -> str:
    lines = ["def chain(x):", "    if x == 0:", "        y = 0"]
    for i in range(1, length):
        lines += [f"    elif x == {i}:", f"        y = {i * i}"]
    return "\n".join([*lines, "    else:", "        y = -1", "    return y"])


def test_a_long_chain_of_elifs_runs(device):
    kernel = compute.Kernel.register("chain", chain(60), replace=True)
    x, out = compute.buffer([0, 7, 59, 60], (4,), "s32"), compute.buffer_zeros((4,), "s32")
    compute.run_kernel(kernel, [x], out)
    assert compute.read_list(out) == [0, 49, 59 * 59, -1]


@pytest.mark.usefixtures("webgpu")
def test_one_that_wgsl_cannot_nest_is_refused():
    kernel = compute.Kernel.register("chain", chain(140), replace=True)
    x = compute.buffer([0], (1,), "s32")
    with pytest.raises(errors.LimitError, match="nested more than"):
        compute.run_kernel(kernel, [x], x)
