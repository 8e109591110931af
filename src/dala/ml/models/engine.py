"""Engines: what computes a model, behind one protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from dala.runtime.buffers.buffer import Buffer
from dala.runtime.pipelines.composite import Stage


class Engine(Protocol):
    """What computes a model; inputs were checked against what the model declares."""

    on_device: bool
    """Whether it computes where the buffers are; else on the host, with copies from elsewhere."""

    def __str__(self) -> str:
        """Returns its name and version, as users see it."""

    def stages(self, inputs: Sequence[Buffer], outputs: Mapping[str, Buffer]) -> Iterator[Stage]:
        """Returns the stages that compute outputs by name, on the current device."""

    def run(self, inputs: Sequence[Buffer], outputs: Mapping[str, Buffer]) -> None:
        """Computes outputs by name on the current device; none shares memory with an input."""

    def copies(self, output: Buffer) -> str:
        """Returns what is copied to compute such an output; nothing where it is computed there."""

    def compute_arrays(self, inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        """Returns every output by its name, in arrays of their own."""
