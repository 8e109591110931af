"""Checks of what a kernel is called with: parameters by name, kind and range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dala.base.suggestions import hint
from dala.devices.device import Device
from dala.errors import ArgumentError, DeviceError, DeviceLostError
from dala.ir.types import BOOL, F32, F64, S32, S64, Scalar, promote
from dala.lang.arithmetic import Mismatch
from dala.lang.composites import Composite, flattened, leaves
from dala.lang.signature import Parameter
from dala.runtime.buffers.buffer import Buffer

Params = Mapping[str, Any]

_LARGEST_F32 = float(np.nextafter(np.float64(2.0**128 - 2.0**103), 0))
"""The largest number that rounds to a finite f32."""


def complete(kernel: str, declared: tuple[Parameter, ...], given: Params | None) -> dict[str, Any]:
    """Returns the value of every parameter, given or default; raises for unknown ones."""
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"{kernel}: params is a mapping of names to values, such as {{'factor': 2.0}}, not "
            f"{type(given).__name__}."
        )
    names = [item.name for item in declared]
    for name in given:
        if name not in names:
            raise ArgumentError(unknown_parameter(kernel, str(name), names))
    values: dict[str, Any] = {}
    for item in declared:
        if item.name in given:
            values[item.name] = given[item.name]
        elif item.required:
            raise ArgumentError(f"{kernel}: parameter {item.name!r} is missing; it is {item}.")
        else:
            values[item.name] = item.default
    return values


def params_key(params: object) -> tuple[Any, ...] | None:
    """Returns what tells parameters from others; None if they may change and stay the same."""
    if not params:
        return ()
    if type(params) is not dict and not isinstance(params, Mapping):
        return None
    found = []
    for name, value in params.items():
        kind = type(value)  # 1, 1.0 and True are equal, but no more
        key = value if kind in _PLAIN and value != 0 else _value_key(value)
        if key is None and value is not None:
            return None
        found.append((name, kind, key))
    return tuple(found)


_PLAIN = frozenset({bool, int, float, str, type(None)})


def _value_key(value: Any) -> Any:
    """Returns what tells a value from others of its type; None if it may change."""
    if isinstance(value, (bool, int, float, str, np.generic)):
        return str(value) if value == 0 else value  # so are 0.0 and -0.0
    if isinstance(value, (tuple, list)):
        parts = tuple([_value_key(item) for item in value])
        kinds = tuple([type(item) for item in value])
        may_change = any(
            part is None and item is not None for part, item in zip(parts, value, strict=True)
        )
        return None if may_change else (kinds, parts)
    return None


def unknown_parameter(kernel: str, name: str, names: list[str]) -> str:
    """Returns the error for an unknown parameter, with the one that may have been meant."""
    if not names:
        return f"{kernel} takes no parameters, but {name!r} was given."
    return f"{kernel} has no parameter {name!r}; it takes {', '.join(names)}.{hint(name, names)}"


def number(kernel: str, parameter: Parameter, value: Any) -> bool | int | float:
    """Returns the value as a Python number, as its parameter needs it."""
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, bool | int | float):
        raise ArgumentError(
            f"{kernel}: parameter {parameter} is a number, not {type(value).__name__} {value!r}."
        )
    scalar = parameter.type
    return value if scalar is None else fitted(kernel, parameter.name, scalar, value)


def composite(kernel: str, name: str, type: Composite, value: Any) -> list[bool | int | float]:
    """Returns the numbers of a vector, matrix or named tuple; raises where they do not fit."""
    try:
        given = flattened(type, value, f"parameter {name!r}")
    except Mismatch as mismatch:
        raise ArgumentError(f"{kernel}: {mismatch.what}") from None
    return [
        number(kernel, Parameter(own, "typed", scalar), item)
        for item, (own, scalar) in zip(given, leaves(type, name), strict=True)
    ]


def fitted(kernel: str, name: str, scalar: Scalar, value: bool | int | float) -> bool | int | float:
    """Returns the value as a number of the type; raises ArgumentError where it does not fit."""
    if scalar == BOOL:
        if value not in (0, 1):
            raise ArgumentError(f"{kernel}: parameter {name!r} is True or False, not {value!r}.")
        return bool(value)
    if scalar.is_float:
        try:
            wide = float(value)
        except OverflowError:
            raise ArgumentError(
                f"{kernel}: {name} = {value!r} is too large for {scalar}."
            ) from None
        if scalar == F32 and abs(wide) > _LARGEST_F32:
            return math.copysign(math.inf, wide)
        if scalar.is_storage:
            with np.errstate(over="ignore"):
                return float(scalar.numpy.type(wide))
        return wide
    if isinstance(value, float) and not value.is_integer():
        raise ArgumentError(f"{kernel}: parameter {name!r} is {scalar}, an integer, not {value!r}.")
    whole = int(value)
    if not scalar.lowest <= whole <= scalar.highest:
        raise ArgumentError(
            f"{kernel}: {name} = {whole} does not fit {scalar}, which holds {scalar.lowest} to "
            f"{scalar.highest}."
        )
    return whole


def number_type(scalars: tuple[Scalar, ...], value: bool | int | float) -> Scalar:
    """Returns the type of a `dala.number` parameter: that of a literal beside the inputs."""
    met = scalars[0]
    for scalar in scalars[1:]:
        met = promote(met, scalar) or S64
    if met == BOOL and not isinstance(value, bool | float):
        return S32
    if isinstance(value, float) and not met.is_float:
        return F64 if met.bits == 64 else F32
    return met.computed


def outputs_of(output: Any) -> tuple[Any, ...]:
    """Returns the outputs that were given: one, or a list or tuple of them."""
    return tuple(output) if type(output) in (list, tuple) and output else (output,)


def one_output(kernel: str, output: Any) -> Buffer:
    """Returns the output of a kernel that has one; raises ArgumentError where more are given."""
    given = outputs_of(output)
    if len(given) > 1:
        raise ArgumentError(f"{kernel} has one output, but {len(given)} were given: give one.")
    only: Buffer = given[0]
    return only


def check_buffers(kernel: str, names: tuple[str, ...], inputs: Any, output: Any) -> Device:
    """Returns the device of the buffers; raises unless they are what the kernel takes.

    `output` is a buffer, or several of them, none of which shares memory with another.
    """
    if isinstance(inputs, Buffer) or not isinstance(inputs, Sequence):
        raise ArgumentError(
            f"{kernel}: inputs is a list of buffers, not {type(inputs).__name__}: write [x]."
        )
    many = bool(names) and names[-1].startswith("*")
    if len(inputs) != len(names) and not (many and len(inputs) >= len(names)):
        raise ArgumentError(
            f"{kernel} takes {len(names)}{' or more' * many} input{'s' * (len(names) != 1)} "
            f"({', '.join(names) or 'none'}), but {len(inputs)} were given."
        )
    outputs = outputs_of(output)
    first = -len(outputs)
    for i, item in enumerate((*outputs, *inputs), first):
        if not isinstance(item, Buffer):
            raise ArgumentError(
                f"{kernel}: {_which(i, len(outputs))} is {type(item).__name__}, not a Buffer: make "
                f"one with compute.from_numpy(array) or compute.buffer(data, shape, dtype)."
            )
        there = (item._memory or item.memory).device  # scratch need not come to be for this
        if i == first:
            device = there
        elif there is not device:
            whole, which = (_which(place, len(outputs)) for place in (first, i))
            if there.lost or device.lost:
                raise DeviceLostError(
                    f"{kernel}: {whole if device.lost else which} was on "
                    f"{device.id}, which was lost with all that its buffers held: make it again."
                )
            raise DeviceError(
                f"{kernel}: {which} is on {there.id}, but {whole} is on {device.id}: a "
                f"kernel runs where all its buffers are. Move it with buffer.to({device.id!r})."
            )
    if len(outputs) > 1:
        _check_apart(kernel, outputs)
    return device


def _which(place: int, outputs: int) -> str:
    """Returns what a buffer is called; those of outputs end at -1."""
    if place >= 0:
        return f"input {place}"
    return "the output" if outputs == 1 else f"output {place + outputs}"


def _check_apart(kernel: str, outputs: tuple[Buffer, ...]) -> None:
    for i, item in enumerate(outputs):
        for j, other in enumerate(outputs[:i]):
            if item.aliases(other):
                raise ArgumentError(
                    f"{kernel}: outputs {j} and {i} share memory, so that one would overwrite the "
                    f"other: give each output a buffer of its own."
                )
