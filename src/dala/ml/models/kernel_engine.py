"""dala's own kernels as an engine: a model is computed on whichever device its buffers are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from dala import __version__
from dala.devices import Device, using
from dala.errors import DtypeError, ModelError, ShapeError, either
from dala.ml.executor.dtypes import stored
from dala.ml.executor.graph import Graph
from dala.ml.onnx.contents import Contents
from dala.runtime.buffers.access import read
from dala.runtime.buffers.buffer import Buffer, from_numpy
from dala.runtime.pipelines.composite import Stage

_INSTEAD = either("Load it with engine='onnxruntime'.", "Choose --device cpu.")


class KernelEngine:
    """A model as a graph of kernels."""

    on_device = True

    def __init__(self, name: str, contents: Contents) -> None:
        self.model = name
        self.contents = contents
        self._graph = Graph(contents)
        self._laid_out: WeakKeyDictionary[Device, bool] = WeakKeyDictionary()

    def __str__(self) -> str:
        return f"dala {__version__}"

    @cached_property
    def missing(self) -> list[str]:
        """What kernels cannot compute of the model."""
        return self._graph.missing()

    def lays_out(self, device: Device) -> bool:
        """Returns whether the layout for that device goes through, as far as it can be known.

        It is known where all inputs have fixed sizes.
        """
        if device not in self._laid_out:
            sizes = [item.fixed for item in self.contents.inputs]
            self._laid_out[device] = not self.missing
            if self._laid_out[device] and None not in sizes:
                with using(device):
                    self._laid_out[device] = self._graph.lays_out()
        return self._laid_out[device]

    def require_all(self) -> None:
        """Refuses a model that kernels cannot compute as a whole."""
        if self.missing:
            rest = len(self.missing) - 5
            raise ModelError(
                f"{self.model}: dala's own kernels cannot compute {'; '.join(self.missing[:5])}"
                f"{f'; and {rest} more' if rest > 0 else ''}. {_INSTEAD}"
            )

    def stages(self, inputs: Sequence[Buffer], outputs: Mapping[str, Buffer]) -> Iterator[Stage]:
        with self._naming_the_model():
            return self._graph.stages(self._by_name(inputs), outputs)

    def run(self, inputs: Sequence[Buffer], outputs: Mapping[str, Buffer]) -> None:
        with self._naming_the_model():
            self._graph.run(self._by_name(inputs), outputs)

    def copies(self, output: Buffer) -> str:
        return ""

    def compute_arrays(self, inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        names = [item.name for item in self.contents.inputs]
        given = zip(names, inputs, strict=True)
        made = self.compute([from_numpy(stored(f"input {name!r}", item)) for name, item in given])
        return {
            item.name: read(made[item.name]).astype(item.numpy, copy=False)
            for item in self.contents.outputs
        }

    def compute(self, inputs: Sequence[Buffer]) -> dict[str, Buffer]:
        """Returns every output by its name, on the inputs' device, the current one.

        Integers of 64 bits come in 32 where the device has no others.
        """
        with self._naming_the_model():
            return self._graph.compute(self._by_name(inputs))

    def _by_name(self, inputs: Sequence[Buffer]) -> dict[str, Buffer]:
        names = [item.name for item in self.contents.inputs]
        return dict(zip(names, inputs, strict=True))

    @contextmanager
    def _naming_the_model(self) -> Iterator[None]:
        """Inside, an error says which model it is about: it may show in given shapes only."""
        try:
            yield
        except ModelError as error:
            raise ModelError(f"{self.model}: {error} {_INSTEAD}") from error
        except (DtypeError, ShapeError) as error:
            raise type(error)(f"{self.model}: {error}") from error
