"""Tensors through a model: arrays give arrays, buffers give buffers on their device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dala.devices import Device, current_device, using
from dala.errors import ArgumentError, DeviceError, DtypeError
from dala.ir.types import DTYPES
from dala.ml.models.model import Model, require_model
from dala.runtime.buffers.buffer import Buffer, from_dlpack
from dala.runtime.commands.result_command import ResultCommand, submit_call

Given = np.ndarray | Buffer


def predict(model: Model, tensors: Any) -> Any:
    """Returns the outputs for one input, or for several in a list or a mapping of names.

    Buffers give buffers on their own device, arrays give arrays. A model with several outputs gives
    a mapping of their names. Where a model is for one input at a time, the first axis of 1, it runs
    for each of a batch.
    """
    made = outputs_of(model, given_tensors(model, tensors))
    return made if len(made) > 1 else next(iter(made.values()))


def predict_async(model: Model, tensors: Any) -> ResultCommand:
    """Returns a command that gives what `predict` does, of arrays as they are now."""
    given, device = given_tensors(model, tensors), current_device()
    kept = [item.copy() if isinstance(item, np.ndarray) else _held(item) for item in given]
    reads = tuple(item.memory for item in kept if isinstance(item, Buffer))

    def call() -> Any:
        with using(device):  # the thread that runs it has another one
            return predict(model, kept)

    return submit_call(call, reads, model.name)


def _held(buffer: Buffer) -> Buffer:
    """Returns a buffer of its own over the same memory: the caller may free the other."""
    return Buffer(buffer.memory, buffer.scalar, buffer.shape)


def outputs_of(model: Model, given: Sequence[Given]) -> dict[str, Any]:
    """Returns every output by its name, as the kind of thing that the inputs are.

    Arrays are computed on the current device, buffers on their own.
    """
    device, count = _device(model, given), _batch(model, given)
    with using(device or current_device()) as here:
        buffers = [item for item in given if isinstance(item, Buffer)]
        if buffers and count is None and model.runs_on(here):
            computed = model.computed(buffers)
            if computed is not None:
                return dict(computed)
        arrays = [np.asarray(item, order="C") for item in given]
        if count is None:
            made = model.outputs(arrays)
        else:
            parts = [model.outputs([item[i : i + 1] for item in arrays]) for i in range(count)]
            made = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        if not buffers:
            return dict(made)
        return {name: _buffer(model, name, array) for name, array in made.items()}


def given_tensors(model: Model, tensors: Any) -> list[Given]:
    """Returns one tensor for each input of the model, in order."""
    names = [item.name for item in require_model("predict", model).takes]
    if isinstance(tensors, Mapping):
        unknown = [name for name in tensors if name not in names]
        missing = [name for name in names if name not in tensors]
        if unknown or missing:
            raise ArgumentError(
                f"{model.name} takes {', '.join(names)}, but {', '.join(map(str, tensors))} was "
                f"given."
            )
        found = [tensors[name] for name in names]
    elif isinstance(tensors, list | tuple):
        found = list(tensors)
    else:
        found = [tensors]
    if len(found) != len(names):
        raise ArgumentError(
            f"{model.name} takes {len(names)} input{'s' * (len(names) != 1)} ({', '.join(names)}), "
            f"but {len(found)} were given."
        )
    for item in found:
        if not isinstance(item, np.ndarray | Buffer):
            raise ArgumentError(
                f"{model.name}: an input is an array or a Buffer, not {type(item).__name__}: an "
                f"image goes through ml.preprocess, or is given to the model itself."
            )
    return found


def _device(model: Model, given: Sequence[Given]) -> Device | None:
    """Returns the device of buffers; None for arrays."""
    devices = {item.memory.device if isinstance(item, Buffer) else None for item in given}
    if len(devices) > 1:
        places = ", ".join("no device" if item is None else item.id for item in devices)
        raise DeviceError(
            f"{model.name}: its inputs are on {places}: give buffers of one device, or arrays."
        )
    return devices.pop() if devices else None  # a model without inputs is given none


def _buffer(model: Model, name: str, array: np.ndarray) -> Buffer:
    if not any(array.dtype.name == scalar.numpy_name for scalar in DTYPES.values()):
        raise DtypeError(
            f"{model.name}: output {name!r} is {array.dtype}, but buffers are one of "
            f"{', '.join(DTYPES)}: give arrays, and it is given back as one."
        )
    if array.dtype == np.int64 and not current_device().supports("s64"):
        array = array.astype(np.int32)
    return from_dlpack(array)


def _batch(model: Model, given: Sequence[Given]) -> int | None:
    """Returns how many there are, where each has to be run by itself."""
    counts = {item.shape[0] if item.shape else 0 for item in given}
    if len(counts) != 1 or counts <= {0, 1}:
        return None
    one_each = all((item.shape or ())[:1] == (1,) for item in (*model.takes, *model.gives))
    fits = all(
        wanted.accepts((1, *item.shape[1:]))
        for wanted, item in zip(model.takes, given, strict=True)
    )
    return counts.pop() if one_each and fits else None
