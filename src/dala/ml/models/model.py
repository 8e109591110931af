"""Models as kernels: a stage of a pipeline, or called with an image for what is in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, overload

import numpy as np

from dala import __version__
from dala.base.deprecation import RenamedKeys
from dala.base.printable import printable
from dala.base.suggestions import hint
from dala.devices import CPU, Device, current_device, using
from dala.errors import ArgumentError, DtypeError, ModelError, ShapeError, either
from dala.images.frames import new_buffer
from dala.ir.types import DTYPES
from dala.lang.signature import Parameter
from dala.ml.catalog.entries import RENAMED, Entry
from dala.ml.models.engine import Engine, Tensor
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.arguments import Params, complete
from dala.runtime.pipelines.composite import CompositeKernel, HostCallKernel, Stage

if TYPE_CHECKING:
    from typing import Unpack

    # Only from Python 3.13 on has the one of `typing` a default; type checkers know this one.
    from typing_extensions import TypeVar

    from dala.ml.executor.graph import Graph

    Seen = TypeVar("Seen", default=Any)
else:
    from typing import TypeVar

    Seen = TypeVar("Seen")
"""What a model makes of an image: `Results` of its task, or a `Segmentation`."""

Choice = Literal["auto", "onnxruntime", "dala"]
"""What computes a model: see `load_model`."""
ENGINES: tuple[Choice, ...] = ("auto", "onnxruntime", "dala")
_INSTEAD = either("Load it with engine='onnxruntime'.", "Choose --device cpu.")


class Options(TypedDict, total=False):
    """What a caller may choose about the results; which of them a task has, docs/models.md says."""

    threshold: float
    iou: float
    top_k: int
    max_results: int


class Model(CompositeKernel, Generic[Seen]):
    """A network that was loaded: called with an image, or run on buffers as any kernel is.

    ONNX Runtime computes it on the CPU, on the buffers' own memory. Between buffers of another
    device either dala's own kernels compute it there, or its inputs are copied to the host and its
    output back: `engine`, `device` and `explain` tell.
    """

    def __init__(
        self,
        name: str,
        engine: Engine,
        entry: Entry | None = None,
        choice: Choice = "auto",
    ) -> None:
        doc = "A model that was loaded from a file" if entry is None else entry.doc
        names = tuple(item.name for item in engine.inputs)
        super().__init__(name, doc, names, _params(engine), self._stages)
        self.entry = entry
        self._engine = engine
        self._on_host = HostCallKernel(name, names, engine.compute)
        self._choice = choice
        if choice == "dala" and self._missing:
            rest = len(self._missing) - 5
            raise ModelError(
                f"{name}: dala's own kernels cannot compute {'; '.join(self._missing[:5])}"
                f"{f'; and {rest} more' if rest > 0 else ''}. {_INSTEAD}"
            )

    @cached_property
    def _graph(self) -> Graph:
        """The network as stages of kernels."""
        from dala.ml.executor.graph import Graph

        return Graph.read(self._engine.source)

    @cached_property
    def _missing(self) -> list[str]:
        """What kernels cannot compute of it."""
        return self._graph.missing()

    def runs_on(self, device: Device) -> bool:
        """Whether dala's own kernels compute it between buffers of that device.

        Unless an engine was chosen, they do on a hardware GPU, where they can compute all of it.
        """
        if self._choice == "auto":
            is_gpu = device.is_gpu
            return bool(is_gpu) and not self._missing
        return self._choice == "dala"

    # -- what it is ------------------------------------------------------------------------------

    @property
    def engine(self) -> str:
        """What computes it between buffers of the current device: its version, its threads."""
        return f"dala {__version__}" if self.runs_on(current_device()) else str(self._engine)

    @property
    def device(self) -> str:
        """Where it is computed between buffers of the current device."""
        here = current_device()
        return here.id if self.runs_on(here) else CPU.id

    @property
    def takes(self) -> tuple[Tensor, ...]:
        """Its inputs, as they are declared."""
        return self._engine.inputs

    @property
    def gives(self) -> tuple[Tensor, ...]:
        """Its outputs, as they are declared."""
        return self._engine.outputs

    def output_shape(
        self, shapes: Sequence[tuple[int, ...]], params: Params | None = None
    ) -> tuple[int, ...]:
        wanted = self._wanted(params)
        known: dict[Any, int] = {}
        for item, given in zip(self.takes, shapes, strict=True):
            known.update(zip(item.shape, given, strict=False))
        found = tuple(axis if isinstance(axis, int) else known.get(axis) for axis in wanted.shape)
        sizes = tuple(axis for axis in found if axis is not None)
        if None in wanted.shape or len(sizes) != len(found):
            raise ShapeError(
                f"{self.name}: output {wanted.name!r} is {wanted}: how large it is for inputs of "
                f"{list(shapes)} is not declared."
            )
        return sizes

    def __repr__(self) -> str:
        takes = ", ".join(f"{item.name}: {item}" for item in self.takes)
        return printable(f"<Model {self.name}({takes})>")

    @overload
    def __call__(
        self, image: list[Any] | tuple[Any, ...], /, **options: Unpack[Options]
    ) -> list[Seen]: ...
    @overload
    def __call__(self, image: Any, /, **options: Unpack[Options]) -> Seen: ...
    def __call__(self, image: Any, /, *more: Any, **options: Any) -> Any:
        """What the model sees in an image, or a list with that for each of a list of images.

        An image is an array, a Pillow image or a Buffer; boxes and points are in its own pixels.
        Options are those of the task, such as `threshold` or `top_k`.
        """
        from dala.ml.models.recognition import recognise

        if more:
            raise ArgumentError(
                f"{self.name} takes one image, or a list of them, and options by their names."
            )
        if isinstance(image, list | tuple):
            return [recognise(self, item, options) for item in image]
        return recognise(self, image, options)

    # -- running ---------------------------------------------------------------------------------

    def _stages(
        self, inputs: Sequence[Buffer], output: Buffer, params: dict[str, Any]
    ) -> Iterator[Stage]:
        wanted = self._wanted(params)
        self._engine.check([(item.shape, item.scalar.numpy) for item in inputs])
        own = self.runs_on(current_device())
        if output.dtype != wanted.dtype and not (own and output.dtype == "s32"):
            raise DtypeError(
                f"{self.name}: output {wanted.name!r} is {wanted}, but it would go into "
                f"{output.dtype} {output.shape}."
            )
        if not wanted.accepts(output.shape):
            raise ShapeError(
                f"{self.name}: output {wanted.name!r} is {wanted}, but there is room for "
                f"{output.shape}."
            )
        if own:
            yield from self._kernels(inputs, {wanted.name: output})
        else:
            yield Stage(self._on_host, inputs, output, {"output": wanted.name})

    def _kernels(self, inputs: Sequence[Buffer], outputs: Mapping[str, Buffer]) -> Iterator[Stage]:
        """The stages of dala's own kernels; what is in the way may show in these shapes only."""
        try:
            return self._graph.stages(dict(zip(self.inputs, inputs, strict=True)), outputs)
        except ModelError as error:
            raise ModelError(f"{self.name}: {error} {_INSTEAD}") from error
        except ShapeError as error:
            raise ShapeError(f"{self.name}: {error}") from error

    def computed(self, inputs: Sequence[Buffer]) -> dict[str, Buffer]:
        """Every output by its name, computed by kernels on the inputs' device, the current one.

        Whole numbers of 64 bits come as s32, which every device has.
        """
        self._engine.check([(item.shape, item.scalar.numpy) for item in inputs])
        shapes = [item.shape for item in inputs]
        made = {
            item.name: new_buffer(
                self.output_shape(shapes, {"output": item.name}),
                "s32" if item.dtype == "s64" else item.dtype,
            )
            for item in self.gives
        }
        with current_device().batch():
            for stage in self._kernels(inputs, made):
                stage.kernel.run(stage.inputs, stage.output, stage.params)
        return made

    def outputs(self, inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        """Every output by its name as ONNX Runtime computes it, in arrays of their own.

        Inputs that do not fit are refused.
        """
        self._engine.check([(item.shape, item.dtype) for item in inputs])
        rooms = {
            item.name: None if item.fixed is None else np.empty(item.fixed, item.numpy)
            for item in self.gives
        }
        return dict(zip(rooms, self._engine.run(inputs, rooms), strict=True))

    def _wanted(self, params: Params | None) -> Tensor:
        name = complete(self.name, self.params, params)["output"]
        found = self._engine.output(name)
        if found is None:
            known = [item.name for item in self.gives]
            raise ArgumentError(
                f"{self.name} has no output {name!r}; it has {', '.join(known)}."
                f"{hint(str(name), known)}"
            )
        if found.dtype not in DTYPES:
            raise DtypeError(
                f"{self.name}: output {found.name!r} is {found.dtype}, but buffers are one of "
                f"{', '.join(DTYPES)}: take it as an array, by predict()."
            )
        return found

    # -- seeing ----------------------------------------------------------------------------------

    def explain(
        self,
        inputs: Sequence[Buffer] | None = None,
        output: Buffer | None = None,
        params: Params | None = None,
        *,
        assembly: bool = False,
    ) -> str:
        """What computes it and where, its inputs and its outputs, and what is copied."""
        with using(current_device() if output is None else output.memory.device) as device:
            lines = [f"{self.name} is computed by {self.engine}"]
            lines += [f"  takes {item.name}: {item}" for item in self.takes]
            lines += [f"  gives {item.name}: {item}" for item in self.gives]
            if output is not None and not self.runs_on(device):
                lines += filter(None, [self._on_host.elsewhere(output)])
        explained = "\n".join(map(printable, lines))
        print(explained)
        return explained

    def info(self) -> dict[str, Any]:
        """The catalogue's entry, if it has one, its inputs and outputs, and what computes it."""
        values = {
            **({} if self.entry is None else self.entry.describe()),
            "name": self.name,
            "like": None if self.entry is None else self.entry.name,
            "inputs": _described(self.takes),
            "outputs": _described(self.gives),
            "engine": self.engine,
            "device": self.device,
            "copies": (
                "none"
                if self.device == current_device().id
                else f"its inputs from {current_device().id} to the host, its outputs back"
            ),
        }
        return RenamedKeys(values, RENAMED)


def require_model(what: str, given: Any) -> Model:
    """The model; an ArgumentError where it is none, such as the name of one."""
    if isinstance(given, Model):
        return given
    raise ArgumentError(f"{what}: the model is what load_model() gives, not {given!r}: load it.")


def _params(engine: Engine) -> tuple[Parameter, ...]:
    """Which output a stage writes: the first, unless it is named."""
    return (Parameter("output", "host", None, engine.outputs[0].name),)


def tensor_shape(entry: Entry) -> tuple[int, ...]:
    """The shape of what a model of the catalogue takes."""
    return (1, 3, *entry.shape) if entry.layout == "nchw" else (1, *entry.shape, 3)


def _described(tensors: Sequence[Tensor]) -> dict[str, dict[str, Any]]:
    """Declared inputs or outputs by name, as plain values."""
    return {item.name: {"shape": list(item.shape), "dtype": item.dtype} for item in tensors}
