"""ONNX Runtime on the host: a model's session, bound to arrays that are the buffers' own memory."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType

import numpy as np

from dala.devices.cpu.threads import thread_count
from dala.errors import DalaError, ModelError, ShapeError, either
from dala.ml.models.guarded_run import GuardedRuns
from dala.ml.onnx.contents import Contents, Node, Source
from dala.ml.onnx.external_data import Bundle
from dala.ml.onnx.signature import Tensor
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.pipelines.composite import HostCallKernel, Stage

PROVIDER = "CPUExecutionProvider"
LARGEST_ROOM_BYTES = 1 << 27
"""Of an output that is made room for by what the model declares; larger ones ONNX Runtime makes."""


class OnnxRuntime:
    """A model that ONNX Runtime has loaded, on as many threads as the CPU device has."""

    on_device = False

    def __init__(self, name: str, source: Source, contents: Contents) -> None:
        runtime = _onnxruntime()
        self.model = name
        self.contents = contents
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
        self._runs = GuardedRuns(name, any(map(_may_loop, contents.nodes)), runtime.RunOptions)
        inputs = tuple(item.name for item in contents.inputs)
        self._kernel = HostCallKernel(name, inputs, self.compute)

    def __str__(self) -> str:
        many = f"{self.threads} thread{'s' * (self.threads != 1)}"
        return f"onnxruntime {self._version} ({PROVIDER}, {many})"

    def stages(self, inputs: Sequence[Buffer], outputs: Mapping[str, Buffer]) -> Iterator[Stage]:
        for name, buffer in outputs.items():
            yield Stage(self._kernel, inputs, buffer, {"output": name})

    def run(self, inputs: Sequence[Buffer], outputs: Mapping[str, Buffer]) -> None:
        for name, buffer in outputs.items():
            self._kernel.run(inputs, buffer, {"output": name})

    def copies(self, output: Buffer) -> str:
        return self._kernel.elsewhere(output)

    def compute_arrays(self, inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        rooms = {item.name: _room(item) for item in self.contents.outputs}
        return dict(zip(rooms, self._run(inputs, rooms), strict=True))

    def compute(self, *inputs: np.ndarray, out: np.ndarray, output: str) -> None:
        """Write the output of that name over an array of the shape it has."""
        wanted = next(item for item in self.contents.outputs if item.name == output)
        if wanted.fixed is not None and wanted.numpy == out.dtype:
            self._run(inputs, {output: out})
            return
        (made,) = self._run(inputs, {output: None})
        if made.shape != out.shape:
            raise ShapeError(
                f"{self.model}: output {output!r} of these inputs is {made.shape}, but there is "
                f"room for {out.shape}."
            )
        np.copyto(out, made, casting="same_kind")

    def _run(
        self, inputs: Sequence[np.ndarray], outputs: Mapping[str, np.ndarray | None]
    ) -> list[np.ndarray]:
        """Returns the outputs of those names, each written over its array, or in one of its own."""
        binding = self._session.io_binding()
        for wanted, item in zip(self.contents.inputs, inputs, strict=True):
            binding.bind_input(wanted.name, "cpu", 0, item.dtype, item.shape, item.ctypes.data)
        for name, out in outputs.items():
            if out is None:
                binding.bind_output(name, "cpu")
            else:
                binding.bind_output(name, "cpu", 0, out.dtype, out.shape, out.ctypes.data)
        try:
            self._runs.run(
                lambda options: self._session.run_with_iobinding(binding, options),
                tuple(item.shape for item in inputs),
            )
        except DalaError:
            raise
        except Exception as error:
            raise ModelError(f"{self.model}: ONNX Runtime failed: {_said(error)}") from error
        made = binding.get_outputs() if any(out is None for out in outputs.values()) else ()
        return [made[i].numpy() if out is None else out for i, out in enumerate(outputs.values())]


def _may_loop(node: Node) -> bool:
    """Whether a node has a graph inside, or is a function or one of ONNX Runtime's own operators.

    How much those have to do is not known from sizes.
    """
    return "." in node.op or node.op in ("If", "Loop", "Scan", "SequenceMap")


def _room(declared: Tensor) -> np.ndarray | None:
    """Returns an array for an output, if it says how large it is; it may say so in vain."""
    if declared.fixed is None:
        return None
    if math.prod(declared.fixed) * declared.numpy.itemsize > LARGEST_ROOM_BYTES:
        return None
    return np.empty(declared.fixed, declared.numpy)


def _onnxruntime() -> ModuleType:
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelError(
            "models are run by ONNX Runtime, which is not installed: pip install 'dala-gpu[ml]'"
            + either(", or load the model with engine='dala'.", ".")
        ) from error
    found: ModuleType = onnxruntime
    return found


def _said(error: Exception) -> str:
    """Returns what ONNX Runtime says, without its own places in its source."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].removeprefix("[ONNXRuntimeError] : ") if lines else type(error).__name__
