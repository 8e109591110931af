"""Models as kernels: a stage of a pipeline, or called with an image for what is in it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, overload

import numpy as np

from dala.base.deprecation import RenamedKeys
from dala.base.printable import printable
from dala.base.suggestions import hint
from dala.devices import CPU, Device, current_device, using
from dala.errors import ArgumentError, DtypeError, LimitError, ModelError, ShapeError
from dala.images.frames import new_buffer
from dala.ir.types import DTYPES
from dala.lang.signature import Parameter
from dala.ml.catalog.reading import RENAMED, Reading
from dala.ml.models.engine import Engine
from dala.ml.models.kernel_engine import KernelEngine
from dala.ml.onnx.contents import Contents, Source, read_contents
from dala.ml.onnx.metadata import read_metadata
from dala.ml.onnx.signature import Tensor, check_inputs, output_shape
from dala.ml.results.tracking import Tracker
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.arguments import Params, check_buffers, complete, one_output
from dala.runtime.kernels.call import Outputs
from dala.runtime.pipelines.composite import CompositeKernel, Stage
from dala.runtime.profiling.profile import copy

if TYPE_CHECKING:
    from typing import Unpack

    # Only from Python 3.13 on has the one of `typing` a default; type checkers know this one.
    from typing_extensions import TypeVar

    Seen = TypeVar("Seen", default=Any)
else:
    from typing import TypeVar

    Seen = TypeVar("Seen")
"""What a model makes of an image: `Results` of its task, or a `Segmentation`."""

Choice = Literal["auto", "onnxruntime", "dala"]
"""What computes a model: see `load_model`."""
ENGINES: tuple[Choice, ...] = ("auto", "onnxruntime", "dala")
Answer = TypeVar("Answer")


class Options(TypedDict, total=False):
    """What a caller may choose about the results; which of them a task has, docs/models.md says."""

    threshold: float
    iou: float
    top_k: int
    max_results: int
    max_detections: int
    classes: Sequence[str | int] | str | int
    track: bool | Tracker


class Model(CompositeKernel, Generic[Seen]):
    """A network that was loaded: called with an image, or run on buffers as any kernel is.

    ONNX Runtime computes it on the CPU, on the buffers' own memory. Between buffers of another
    device either dala's own kernels compute it there, or its inputs are copied to the host and its
    output back: `engine`, `device` and `explain` tell.
    """

    def __init__(
        self,
        name: str,
        source: Source,
        reading: Reading | Callable[[Contents], Reading | None] | None = None,
        choice: Choice = "auto",
    ) -> None:
        contents = read_contents(name, source)
        entry = reading(contents) if callable(reading) else reading
        doc = "A model that was loaded from a file" if entry is None else entry.doc
        names = tuple(item.name for item in contents.inputs)
        # Which output a stage writes: the first, unless it is named.
        params = (Parameter("output", "host", None, contents.outputs[0].name),)
        super().__init__(name, doc, names, params, self._stages)
        self.entry = entry
        """How images go into it, and what its outputs mean; None where nothing tells."""
        self.metadata = read_metadata(name, source)
        """What its file says of itself, by the names of properties."""
        self.takes = contents.inputs
        """Its inputs, as they are declared."""
        self.gives = contents.outputs
        """Its outputs, as they are declared."""
        self._choice = choice
        self._refused = False
        self._tracker: Tracker | None = None
        self._kernels = KernelEngine(name, contents)
        self._host: Engine = self._kernels
        if choice == "dala":
            self._kernels.require_all()
        else:
            from dala.ml.models.onnx_runtime import OnnxRuntime

            self._host = OnnxRuntime(name, source, contents)

    def runs_on(self, device: Device) -> bool:
        """Returns whether dala's own kernels compute it between buffers of that device.

        Unless an engine was chosen, they do on a hardware GPU, where they can compute all of it.
        What they refuse only when it is run is left to the host from then on.
        """
        if self._choice == "auto":
            able = device.is_gpu and not self._refused
            return able and self._kernels.lays_out(device)
        return self._choice == "dala"

    def engine_on(self, device: Device) -> Engine:
        """Returns what computes it between buffers of that device."""
        return self._kernels if self.runs_on(device) else self._host

    def _with_engine(self, call: Callable[[Engine], Answer]) -> Answer:
        """What a call gives with the engine of the current device; kernels that refuse give way.

        They refuse when a model is laid out for the shapes that it is given, before anything runs.
        """
        engine = self.engine_on(current_device())
        if engine is not self._kernels or self._choice != "auto":
            return call(engine)
        try:
            return call(engine)
        except (ModelError, ShapeError, DtypeError, LimitError) as error:
            self._refused = True
            warnings.warn(
                f"{self.name} is computed by {self._host} from now on, because dala's own kernels "
                f"cannot: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
            return call(self._host)

    # -- what it is ------------------------------------------------------------------------------

    @property
    def engine(self) -> str:
        """What computes it between buffers of the current device: its version, its threads."""
        return str(self.engine_on(current_device()))

    @property
    def device(self) -> str:
        """Where it is computed between buffers of the current device."""
        here = current_device()
        return here.id if self.engine_on(here).on_device else CPU.id

    def output_shape(
        self, shapes: Sequence[tuple[int, ...]], params: Params | None = None
    ) -> tuple[int, ...]:
        return output_shape(self.name, self.takes, shapes, self._wanted(params))

    def __repr__(self) -> str:
        takes = ", ".join(f"{item.name}: {item}" for item in self.takes)
        return printable(f"<Model {self.name}({takes})>")

    @overload  # type: ignore[override]  # a model takes images, and gives what it sees in them
    def __call__(
        self, image: list[Any] | tuple[Any, ...], /, **options: Unpack[Options]
    ) -> list[Seen]: ...
    @overload
    def __call__(self, image: Any, /, **options: Unpack[Options]) -> Seen: ...
    def __call__(self, image: Any, /, *more: Any, **options: Any) -> Any:
        """What the model sees in an image, or a list with that for each of a list of images.

        An image is an array, a Pillow image or a Buffer; boxes and points are in its own pixels.
        Options are those of the task, such as `threshold` or `top_k`. With `track` things have
        numbers, the same from call to call: True is for the frames of one video, for several give
        each a Tracker of its own.
        """
        from dala.ml.models.recognition import recognize

        if options.get("track") is True:
            usual = 0.25 if self.entry is None else self.entry.settings.get("score", 0.25)
            self._tracker = self._tracker or Tracker(usual)
            options["track"] = self._tracker
        if more:
            raise ArgumentError(
                f"{self.name} takes one image, or a list of them, and options by their names."
            )
        if isinstance(image, list | tuple):
            return [recognize(self, item, options) for item in image]
        return recognize(self, image, options)

    # -- running ---------------------------------------------------------------------------------

    def run(self, inputs: Sequence[Buffer], output: Outputs, params: Params | None = None) -> None:
        output = one_output(self.name, output)
        with using(check_buffers(self.name, self.inputs, inputs, output)) as device:
            wanted = self._checked(inputs, output, params)
            target = output
            if any(item.aliases(output) for item in inputs):
                target = new_buffer(output.shape, output.dtype)
            self._with_engine(lambda engine: engine.run(inputs, {wanted.name: target}))
            if target is not output:
                copy(device, target.memory, output.memory)

    def _stages(
        self, inputs: Sequence[Buffer], output: Buffer, params: dict[str, Any]
    ) -> Iterator[Stage]:
        wanted = self._checked(inputs, output, params)
        yield from self._with_engine(
            lambda engine: list(engine.stages(inputs, {wanted.name: output}))
        )

    def _checked(self, inputs: Sequence[Buffer], output: Buffer, params: Params | None) -> Tensor:
        """Returns the output that is wanted; refuses buffers that do not suit the model."""
        wanted = self._wanted(params)
        self._check_buffers(inputs)
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
        return wanted

    def check(self, given: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]) -> None:
        """Refuses inputs of other shapes or dtypes than the model's."""
        check_inputs(self.name, self.takes, given)

    def _check_buffers(self, inputs: Sequence[Buffer]) -> None:
        """Refuses buffers of other shapes or dtypes; narrower integers are what a device has."""
        given = []
        for item, wanted in zip(inputs, self.takes, strict=True):
            declared = wanted.numpy.name
            narrowed = {"int64": "s32", "uint64": "u32"}.get(declared) == item.dtype
            alike = narrowed and not current_device().supports("s64")
            given.append((item.shape, wanted.numpy if alike else item.scalar.numpy))
        self.check(given)

    def computed(self, inputs: Sequence[Buffer]) -> dict[str, Buffer] | None:
        """Every output by its name, computed by kernels on the inputs' device, the current one.

        Integers of 64 bits are held in 32 where the device has no wider ones. None where kernels
        refuse.
        """
        self._check_buffers(inputs)
        return self._with_engine(
            lambda engine: self._kernels.compute(inputs) if engine is self._kernels else None
        )

    def outputs(self, inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        """Every output by its name, in arrays of their own, computed for the current device.

        Inputs that do not fit are refused.
        """
        self.check([(item.shape, item.dtype) for item in inputs])
        return self._with_engine(lambda engine: engine.compute_arrays(inputs))

    def _wanted(self, params: Params | None) -> Tensor:
        name = complete(self.name, self.params, params)["output"]
        found = next((item for item in self.gives if item.name == name), None)
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
        output: Outputs | None = None,
        params: Params | None = None,
        *,
        assembly: bool = False,
    ) -> str:
        """Returns what computes it and where, its inputs and its outputs, and what is copied."""
        made = None if output is None else one_output(self.name, output)
        with using(current_device() if made is None else made.memory.device) as device:
            lines = [f"{self.name} is computed by {self.engine}"]
            lines += [f"  takes {item.name}: {item}" for item in self.takes]
            lines += [f"  gives {item.name}: {item}" for item in self.gives]
            if made is not None:
                lines += filter(None, [self.engine_on(device).copies(made)])
        explained = "\n".join(map(printable, lines))
        print(explained)
        return explained

    def info(self) -> dict[str, Any]:
        """The catalog's entry, if it has one, its inputs and outputs, and what computes it."""
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
    """Returns the model; raises ArgumentError where it is none, such as the name of one."""
    if isinstance(given, Model):
        return given
    raise ArgumentError(f"{what}: the model is what load_model() gives, not {given!r}: load it.")


def tensor_shape(entry: Reading) -> tuple[int, ...]:
    """Returns the shape of what a model of the catalog takes."""
    return (1, 3, *entry.shape) if entry.layout == "nchw" else (1, *entry.shape, 3)


def _described(tensors: Sequence[Tensor]) -> dict[str, dict[str, Any]]:
    """Declared inputs or outputs by name, as plain values."""
    return {
        item.name: {
            "shape": None if item.shape is None else list(item.shape),
            "dtype": item.dtype,
        }
        for item in tensors
    }
