"""ONNX Runtime on the host: a model's session, bound to arrays that are the buffers' own memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from dala.base.printable import printable
from dala.base.record import record
from dala.devices.cpu.threads import thread_count
from dala.errors import DtypeError, ModelError, ShapeError
from dala.ir.types import DTYPES
from dala.ml.onnx.external_data import Bundle

PROVIDER = "CPUExecutionProvider"
_ELEMENTS = {
    "float": np.float32,
    "double": np.float64,
    "float16": np.float16,
    "int8": np.int8,
    "uint8": np.uint8,
    "int16": np.int16,
    "uint16": np.uint16,
    "int32": np.int32,
    "uint32": np.uint32,
    "int64": np.int64,
    "uint64": np.uint64,
    "bool": np.bool_,
}
_NAMES = {scalar.numpy: name for name, scalar in DTYPES.items()}
Axis = int | str | None
"""How long an axis is; free axes have a name, or none."""


@record
class Tensor:
    """What a model declares about an input or an output."""

    name: str
    shape: tuple[Axis, ...]
    numpy: np.dtype[Any]

    @property
    def dtype(self) -> str:
        """The name of the dtype: dala's, or NumPy's where buffers cannot have it."""
        return _NAMES.get(self.numpy, str(self.numpy))

    @property
    def fixed(self) -> tuple[int, ...] | None:
        """The shape, where no axis is free."""
        sizes = tuple(axis for axis in self.shape if isinstance(axis, int))
        return sizes if len(sizes) == len(self.shape) else None

    def accepts(self, shape: Sequence[int]) -> bool:
        return len(shape) == len(self.shape) and all(
            given == axis or not isinstance(axis, int)
            for given, axis in zip(shape, self.shape, strict=True)
        )

    def __str__(self) -> str:
        axes = ["?" if axis is None else str(axis) for axis in self.shape]
        return printable(f"{self.dtype} ({', '.join(axes)}{',' * (len(axes) == 1)})")


class Engine:
    """A model that ONNX Runtime has loaded, on as many threads as the CPU device has."""

    def __init__(self, name: str, source: str | os.PathLike[str] | bytes | Bundle) -> None:
        runtime = _onnxruntime()
        self.model = name
        self.source = source
        self.threads = thread_count()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # what fails is raised
        given = source.data if isinstance(source, Bundle) else source
        given = given if isinstance(given, bytes) else os.fspath(given)
        if isinstance(source, Bundle):
            names, files = list(source.beside), list(source.beside.values())
            options.add_external_initializers_from_files_in_memory(
                names, files, [len(file) for file in files]
            )
        try:
            self._session = runtime.InferenceSession(given, options, providers=[PROVIDER])
        except Exception as error:
            raise ModelError(f"{name}: ONNX Runtime cannot load it: {_said(error)}") from error
        self._version = runtime.__version__

    def __str__(self) -> str:
        many = f"{self.threads} thread{'s' * (self.threads != 1)}"
        return f"onnxruntime {self._version} ({PROVIDER}, {many})"

    @cached_property
    def inputs(self) -> tuple[Tensor, ...]:
        return tuple(_tensor(self.model, item) for item in self._session.get_inputs())

    @cached_property
    def outputs(self) -> tuple[Tensor, ...]:
        return tuple(_tensor(self.model, item) for item in self._session.get_outputs())

    def output(self, name: str) -> Tensor | None:
        """The output of that name."""
        return next((item for item in self.outputs if item.name == name), None)

    def check(self, arrays: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]) -> None:
        """Refuse inputs of other shapes or dtypes than the model's, naming both."""
        for wanted, (shape, dtype) in zip(self.inputs, arrays, strict=True):
            if dtype != wanted.numpy:
                given = _NAMES.get(dtype, str(dtype))
                raise DtypeError(
                    f"{self.model}: input {wanted.name!r} is {wanted}, but {given} {shape} was "
                    f"given: convert it to {wanted.dtype} first."
                )
            if not wanted.accepts(shape):
                raise ShapeError(
                    f"{self.model}: input {wanted.name!r} is {wanted}, but {shape} was given: "
                    f"resize it first, as ml.preprocess does."
                )

    def run(
        self, inputs: Sequence[np.ndarray], outputs: Mapping[str, np.ndarray | None]
    ) -> list[np.ndarray]:
        """The outputs of those names, each written over its array, or in one of its own."""
        binding = self._session.io_binding()
        for wanted, item in zip(self.inputs, inputs, strict=True):
            binding.bind_input(wanted.name, "cpu", 0, item.dtype, item.shape, item.ctypes.data)
        for name, out in outputs.items():
            if out is None:
                binding.bind_output(name, "cpu")
            else:
                binding.bind_output(name, "cpu", 0, out.dtype, out.shape, out.ctypes.data)
        try:
            self._session.run_with_iobinding(binding)
        except Exception as error:
            raise ModelError(f"{self.model}: ONNX Runtime failed: {_said(error)}") from error
        made = binding.get_outputs() if any(out is None for out in outputs.values()) else ()
        return [made[i].numpy() if out is None else out for i, out in enumerate(outputs.values())]

    def compute(self, *inputs: np.ndarray, out: np.ndarray, output: str) -> None:
        """Write the output of that name over an array of its dtype, and of the shape it has."""
        wanted = self.output(output)
        if wanted is not None and wanted.fixed is not None:
            self.run(inputs, {output: out})
            return
        (made,) = self.run(inputs, {output: None})
        if made.shape != out.shape:
            raise ShapeError(
                f"{self.model}: output {output!r} of these inputs is {made.shape}, but there is "
                f"room for {out.shape}."
            )
        np.copyto(out, made)


def _onnxruntime() -> ModuleType:
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelError(
            "models are run by ONNX Runtime, which is not installed: pip install 'dala-gpu[ml]'."
        ) from error
    found: ModuleType = onnxruntime
    return found


def _tensor(model: str, declared: Any) -> Tensor:
    kind = str(declared.type)
    element = _ELEMENTS.get(kind.removeprefix("tensor(").removesuffix(")"))
    if element is None or not kind.startswith("tensor("):
        raise ModelError(
            f"{model}: {declared.name!r} is {kind}, but only tensors of numbers can be given and "
            f"taken."
        )
    return Tensor(declared.name, tuple(declared.shape), np.dtype(element))


def _said(error: Exception) -> str:
    """What ONNX Runtime says, without its own places in its source."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].removeprefix("[ONNXRuntimeError] : ") if lines else type(error).__name__
