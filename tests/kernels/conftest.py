"""Kernels run on arrays: what goes in, and what the output becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from dala.gpu import compute
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.pipelines.composite import HostCallKernel

Run = Callable[..., np.ndarray]


@pytest.fixture(params=["libraries", "kernels"])
def computed_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What composite kernels may use: host calls, or kernels alone, as on other devices."""
    if request.param == "kernels":
        monkeypatch.setattr(Buffer, "is_host", property(lambda _: False))
        monkeypatch.setattr(HostCallKernel, "run", _refuse)
    return request.param


def _refuse(library: HostCallKernel, *_: Any) -> None:
    raise AssertionError(f"{library.name} is computed by a library, where there may be none")


@pytest.fixture
def run(device: str) -> Run:
    """Run a kernel on arrays, and give back its output, which held something else before."""

    def call(
        kernel: str,
        inputs: Sequence[np.ndarray],
        shape: tuple[int, ...],
        dtype: str,
        **params: Any,
    ) -> np.ndarray:
        output = compute.buffer_zeros(shape, dtype)
        compute.write(output, np.full(shape, 77))
        buffers = [compute.from_numpy(np.array(item)) for item in inputs]
        compute.run_kernel(kernel, buffers, output, params)
        return compute.read(output)

    return call


@pytest.fixture
def fail(device: str) -> Callable[..., str]:
    """Run a kernel on zeros of the given shapes and dtypes, and give back how it is refused."""

    def call(
        error: type[Exception],
        kernel: str,
        inputs: Sequence[tuple[tuple[int, ...], str]],
        output: tuple[tuple[int, ...], str],
        **params: Any,
    ) -> str:
        made = compute.buffer_zeros(*output)
        compute.write(made, np.full(made.shape, 77))
        with pytest.raises(error) as caught:
            compute.run_kernel(
                kernel, [compute.buffer_zeros(*item) for item in inputs], made, params
            )
        assert (np.asarray(made) == 77).all()
        return str(caught.value)

    return call
