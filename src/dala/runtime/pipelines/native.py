"""Kernels whose code is written as LLVM text, for the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from dala.devices import CPU
from dala.devices.cpu.device import Executable
from dala.devices.cpu.launches import bound_launch
from dala.devices.device import Again, Memory
from dala.emit.llvm.target import Options
from dala.errors import DeviceError
from dala.plan.chunks import Chunks
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.arguments import Params, one_output
from dala.runtime.kernels.call import Outputs
from dala.runtime.pipelines.composite import HostCallKernel
from dala.runtime.profiling.profile import ACTIVE, measure


class NativeKernel(HostCallKernel):
    """A kernel given as what emits its module for this CPU, with the sizes that it is run with.

    The module's arguments are the addresses of the output and of the inputs, then the sizes.
    """

    def __init__(
        self,
        name: str,
        inputs: tuple[str, ...],
        emit: Callable[[], str],
        sizes: Sequence[int],
        chunks: Callable[[int], Chunks],
    ) -> None:
        super().__init__(name, inputs, _not_called)
        self._emit = emit
        self._sizes = tuple(sizes)
        self._cut = chunks

    def run(self, inputs: Sequence[Buffer], output: Outputs, params: Params | None = None) -> None:
        output = one_output(self.name, output)
        self._check(output)
        executable, chunks = self._loaded
        memories, target = [item.memory for item in inputs], output.memory
        addresses = [item.address for item in (target, *memories)]  # type: ignore[attr-defined]
        slots = executable.pack(*addresses, *self._sizes)

        def call() -> None:
            CPU.run(executable, slots, chunks)

        if ACTIVE:
            measure(self.name, CPU, memories, (target,), call)
        else:
            call()

    def bound(self, inputs: Sequence[Memory], output: Memory) -> Again:
        """Returns the launch on these memories."""
        executable, chunks = self._loaded
        addresses = [item.address for item in (output, *inputs)]  # type: ignore[attr-defined]
        given = (*addresses, *self._sizes)
        return bound_launch(CPU, executable, given, chunks, range(len(addresses)))

    def explain(self, *_: object, **__: object) -> str:
        """Returns the LLVM IR."""
        text = self._emit()
        print(text)
        return text

    @cached_property
    def _loaded(self) -> tuple[Executable, Chunks]:
        formats = "Q" * (1 + len(self.inputs)) + "q" * len(self._sizes)
        text = self._emit()
        return CPU.compiled(text, formats, Options()), self._cut(CPU.threads)

    def _check(self, output: Buffer) -> None:
        if not output.is_host:
            raise DeviceError(f"{self.name} is code for the CPU, but its buffers are elsewhere.")


def _not_called(*_: object, **__: Mapping[str, object]) -> None:
    """Computed by code for this CPU."""
