"""Python functions as filters: called with each frame as an array, and with its time."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dala.errors import ArgumentError, DtypeError, FunctionError, ShapeError
from dala.ir.types import dtype_of
from dala.lang.calls import Function
from dala.lang.signature import REQUIRED, Parameter
from dala.runtime.pipelines.composite import HostCallKernel

FrameFunction = Callable[..., np.ndarray]
"""What makes a frame of a frame and of its time in seconds, and of parameters by name."""


class FunctionKernel(HostCallKernel):
    """The one kernel that calls functions: which is a parameter, so that none is planned anew."""

    @property
    def params(self) -> tuple[Parameter, ...]:
        names = ("function", "time_s", "given")
        return tuple(Parameter(name, "host", None, REQUIRED) for name in names)


def _call(
    frame: np.ndarray, *, out: np.ndarray, function: Any, time_s: float, given: Mapping[str, Any]
) -> None:
    """a Python function"""
    name = function_name(function)
    try:
        made = function(np.array(frame), time_s, **given)  # a frame that may be written over
    except Exception as error:
        said = f": {error}" if str(error) else ""
        raise FunctionError(f"{name} raised {type(error).__name__}{said}.") from error
    _check(name, frame, made)
    np.copyto(out, made)


CALL = FunctionKernel("function", ("frame",), _call)


def checked_function(function: Any, given: Mapping[str, Any]) -> FrameFunction:
    """The function itself; an ArgumentError where it does not take a frame, a time and these."""
    if isinstance(function, Function):
        raise ArgumentError(
            f"{function.source.name} is a @dala.function, which kernels call: decorate it with "
            f"@dala.kernel to make a filter of it."
        )
    try:
        inspect.signature(function).bind(None, 0.0, **given)
    except TypeError as error:
        raise ArgumentError(
            f"{function_name(function)} is called with a frame, its time in seconds"
            f"{''.join(f', {name}=…' for name in given)}, which it does not take: {error}. Write "
            f"it as def change(frame, t{''.join(f', {name}' for name in given)})."
        ) from None
    except ValueError:  # some functions of libraries do not say what they take
        pass
    return function  # type: ignore[no-any-return]


def function_name(function: Any) -> str:
    """Returns what a function is called, and where it is written."""
    function = inspect.unwrap(function)
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", type(function).__name__).strip("<>")
    code = getattr(function, "__code__", None)
    if code is None:
        return name
    return f"{name} ({Path(code.co_filename).name}, line {code.co_firstlineno})"


def _check(name: str, frame: np.ndarray, made: Any) -> None:
    """An error that names the function, unless it gave a frame like the one it got."""
    if made is None:
        raise ArgumentError(f"{name} returned nothing: return the frame, also if it is changed.")
    if not isinstance(made, np.ndarray):
        raise ArgumentError(
            f"{name} returned {type(made).__name__}, but it has to return an array like the frame, "
            f"{frame.dtype} {frame.shape}: np.asarray() makes one of most things."
        )
    if made.shape != frame.shape:
        raise ShapeError(
            f"{name} returned an array {made.shape}, but the frame is {frame.shape}: a function "
            f"keeps the size and the channels. Filters such as resize and crop change them."
        )
    if made.dtype != frame.dtype:
        how = f"0..{dtype_of(frame.dtype).white}"
        raise DtypeError(
            f"{name} returned {made.dtype}, but frames here are {frame.dtype}, {how}: return "
            f"made.astype(frame.dtype), rounded and clipped to {how}."
        )
