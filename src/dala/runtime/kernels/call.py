"""Kernels called as functions: arguments sorted into inputs and parameters, outputs made."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np

from dala.base.suggestions import hint
from dala.devices import current_device, using
from dala.devices.device import Device
from dala.errors import ArgumentError, KernelError, ShapeError, edge, without_frames
from dala.ir.types import DtypeLike, Scalar, dtype_of
from dala.lang.signature import Parameter
from dala.plan.task import Kind, Shape
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.host_data import check_shape
from dala.runtime.kernels import call_gate
from dala.runtime.kernels.arguments import Params, outputs_of
from dala.runtime.kernels.arrays import Argument, Destination, DlpackArray, like, made, read_from

Outputs: TypeAlias = Buffer | Sequence[Buffer]
"""The output of a kernel, or a list of several."""
ShapeLike: TypeAlias = int | Sequence[int] | Sequence[Sequence[int]]
DtypesLike: TypeAlias = DtypeLike | Sequence[DtypeLike]
"""A dtype for all outputs, or one for each."""
Item = TypeVar("Item")
Into = TypeVar("Into", bound=DlpackArray)
Tensor = TypeVar("Tensor", bound=DlpackArray)


class CalledKernel(ABC):
    """A kernel as a function of arrays."""

    name: str
    has_function = True
    """Whether it is one function of the language, which Python could run, too."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[str, ...]:
        """The names of its inputs."""

    @property
    @abstractmethod
    def accumulates(self) -> bool:
        """Whether it starts from what its output holds."""

    @property
    @abstractmethod
    def params(self) -> tuple[Parameter, ...]:
        """Its parameters, with their defaults."""

    @abstractmethod
    def run(self, inputs: Sequence[Buffer], output: Outputs, params: Params | None = None) -> None:
        """Compute the output from the inputs; a list of outputs if there are several."""

    @abstractmethod
    def result_kinds(
        self,
        inputs: tuple[Kind, ...],
        params: Params,
        shapes: tuple[Shape, ...] = (),
        scalars: tuple[Scalar, ...] = (),
    ) -> tuple[Kind, ...]:
        """Returns the dtype and shape of each of a call's results.

        Those given are as they are: none, one for all results, or one for each.
        """

    @cached_property
    def _takes(self) -> tuple[int, tuple[str, ...]]:
        """How many inputs it has, more than can be if any number, and its parameters' names."""
        count = sys.maxsize if _is_variadic(self.inputs) else len(self.inputs)
        return count, tuple(item.name for item in self.params)

    def _plain(
        self, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Buffer, ...], dict[str, Any]] | None:
        """Returns inputs and parameters in less than a microsecond, or None where it takes more."""
        count, params = self._takes
        inputs, more = arguments[:count], arguments[count:]
        for item in inputs:
            if type(item) is not Buffer:
                return None
        for name in named:
            if name not in params:
                return None
        if more:
            by_position = dict(zip(params, more, strict=False))
            if len(by_position) < len(more) or not by_position.keys().isdisjoint(named):
                return None
            return inputs, {**by_position, **named}
        return (inputs, named) if len(inputs) == count else None

    @overload
    def __call__(
        self,
        /,
        *arguments: Argument,
        out: Into,
        shape: ShapeLike | None = None,
        dtype: DtypesLike | None = None,
        **named: Argument,
    ) -> Into: ...
    @overload
    def __call__(
        self,
        /,
        *arguments: Argument,
        out: tuple[Into, ...] | list[Into],
        shape: ShapeLike | None = None,
        dtype: DtypesLike | None = None,
        **named: Argument,
    ) -> tuple[Into, ...]: ...
    @overload
    def __call__(
        self,
        first: Buffer,
        /,
        *arguments: Argument,
        out: None = None,
        shape: ShapeLike | None = None,
        dtype: DtypesLike | None = None,
        **named: Argument,
    ) -> Buffer: ...
    @overload
    def __call__(
        self,
        first: np.ndarray,
        /,
        *arguments: Argument,
        out: None = None,
        shape: ShapeLike | None = None,
        dtype: DtypesLike | None = None,
        **named: Argument,
    ) -> np.ndarray: ...
    @overload
    def __call__(
        self,
        first: Tensor,
        /,
        *arguments: Argument,
        out: None = None,
        shape: ShapeLike | None = None,
        dtype: DtypesLike | None = None,
        **named: Argument,
    ) -> Tensor: ...
    @overload
    def __call__(
        self,
        /,
        *,
        out: None = None,
        shape: ShapeLike | None = None,
        dtype: DtypesLike | None = None,
        **named: Argument,
    ) -> Any: ...
    def __call__(
        self,
        /,
        *arguments: Any,
        out: Any = None,
        shape: ShapeLike | None = None,
        dtype: DtypesLike | None = None,
        **named: Argument,
    ) -> Any:
        """Returns the kernel's output for these inputs, then parameters; both go by name, too.

        The result is of the kind of the first input: a NumPy array, a buffer, a tensor of PyTorch
        or JAX. It has the shape that the kernel runs over and the dtype of what it returns, unless
        `shape` or `dtype` say otherwise; or it is written into `out`, which is then returned. A
        kernel that returns several values gives a tuple; for it, these three may be tuples, too.

        >>> import numpy as np
        >>> from dala.gpu import compute
        >>> scale = compute.Kernel.lookup("scale")
        >>> scale(np.array([1, 2], np.float32), factor=3.0)
        array([3., 6.], dtype=float32)
        """
        try:
            if type(out) is Buffer and shape is None and dtype is None:
                plain = self._plain(arguments, named)
                if plain is not None:
                    if not call_gate.again(self, plain[0], out, plain[1]):
                        self.run(plain[0], out, plain[1])
                    return out
            return _called(self, arguments, named, {"out": out, "shape": shape, "dtype": dtype})
        except KernelError as error:
            raise without_frames(error) from None

    @edge
    def python(
        self,
        *inputs: Any,
        shape: ShapeLike | None = None,
        dtype: DtypesLike | None = None,
        **params: Any,
    ) -> Any:
        """Returns what the kernel computes, run as plain Python, one position after another.

        A debugger stops at its lines, where values are NumPy scalars. `shape` and `dtype` are those
        of the output, where they are not those of a call. It is an array, or a tuple of arrays for
        a kernel that returns several values.

        >>> import numpy as np
        >>> from dala.gpu import compute
        >>> compute.Kernel.lookup("relu").python(np.array([-2, 3], np.int32))
        array([0, 3], dtype=int32)
        """
        from dala.runtime.kernels.python_call import call_as_python

        return call_as_python(self, inputs, shape, dtype, params)  # type: ignore[arg-type]


def _called(
    kernel: CalledKernel,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    wanted: dict[str, Any],
) -> Any:
    own = {*kernel.inputs, *(item.name for item in kernel.params)}
    for name, value in wanted.items():
        if name in own and value is not None:  # an argument of its own comes first
            named, wanted = {**named, name: value}, {**wanted, name: None}
    inputs, params = _sorted(kernel, arguments, named)
    out, shape, dtype = wanted["out"], wanted["shape"], wanted["dtype"]
    if out is not None and not (shape is dtype is None):
        raise ArgumentError(
            f"{kernel.name}: out= has a shape and a dtype already: leave shape= and dtype= away."
        )
    with using(_device(out, inputs.values())) as device:
        sources = [read_from(kernel.name, name, item) for name, item in inputs.items()]
        if out is not None:
            several = isinstance(out, list | tuple) and any(hasattr(x, "__dlpack__") for x in out)
            given = out if several else [out]
            filled = kernel.accumulates
            destinations = [Destination(kernel.name, item, device, filled=filled) for item in given]
            kernel.run(sources, _one_or_all([item.buffer for item in destinations]), params)
            back = tuple(item.filled() for item in destinations)
            return back if several else back[0]
        kinds = tuple((item.scalar, item.shape) for item in sources)
        wished = (requested_shapes(shape), requested_dtypes(dtype))
        found = kernel.result_kinds(kinds, params, *wished)
        targets = [made(device, kind, zeroed=kernel.accumulates) for kind in found]
        kernel.run(sources, _one_or_all(targets), params)
        first = next(iter(inputs.values()), None)
        return _one_or_all(tuple(like(first, target) for target in targets))


def _one_or_all(items: Sequence[Any]) -> Any:
    """Returns the only item itself, or all of several."""
    return items[0] if len(items) == 1 else items


def requested_shapes(given: Any) -> tuple[Shape, ...]:
    """Returns the shapes that were asked for: none, one, or one for each output."""
    if given is None:
        return ()
    several = isinstance(given, list | tuple) and given and isinstance(given[0], list | tuple)
    return tuple(check_shape(item, dtype_of("u8"))[0] for item in (given if several else [given]))


def requested_dtypes(given: Any) -> tuple[Scalar, ...]:
    """Returns the dtypes that were asked for: none, one, or one for each output."""
    if given is None:
        return ()
    return tuple(map(dtype_of, given if isinstance(given, list | tuple) else [given]))


def for_each(
    kernel: str, what: str, given: tuple[Item, ...], outputs: Sequence[Any]
) -> tuple[Item, ...]:
    """Returns what was given as one for each output; raises ArgumentError for another number."""
    if len(given) == 1:
        return given * len(outputs)
    if given and len(given) != len(outputs):
        raise ArgumentError(
            f"{kernel} has {len(outputs)} output{'s' * (len(outputs) != 1)}, but {what}= has "
            f"{len(given)} items: give one for each output, or one for all."
        )
    return given


def _device(out: Any, inputs: Any) -> Device:
    """Returns the device of the first buffer among out and inputs, else the current one."""
    for item in (*outputs_of(out), *inputs):
        if isinstance(item, Buffer):
            return item.place.device
    return current_device()


def _is_variadic(names: tuple[str, ...]) -> bool:
    return bool(names) and names[-1].startswith("*")


def _sorted(
    kernel: CalledKernel, arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the inputs and the parameters by name."""
    inputs, params = kernel.inputs, [item.name for item in kernel.params]
    if _is_variadic(inputs):
        more = inputs[-1].lstrip("*")
        counted = range(max(1, len(arguments) - len(inputs) + 1))
        inputs = (*inputs[:-1], *(f"{more}[{i}]" for i in counted))
        params_by_position: list[str] = []
    else:
        params_by_position = params
    places = [*inputs, *params_by_position]
    if len(arguments) > len(places):
        raise ArgumentError(
            f"{_takes(kernel)}, but {len(arguments)} arguments were given by position; out=, "
            f"shape= and dtype= are given by name."
        )
    given = dict(zip(places, arguments, strict=False))
    for name, value in named.items():
        if name in given:
            raise ArgumentError(
                f"{kernel.name}: {name!r} is given twice, by position and by name: once is enough."
            )
        if name not in inputs and name not in params:
            near = hint(name, [*inputs, *params, "out", "shape", "dtype"])
            raise ArgumentError(f"{_takes(kernel)}; it has no {name!r}.{near}")
        given[name] = value
    missing = [name for name in inputs if name not in given]
    if missing:
        raise ArgumentError(
            f"{_takes(kernel)}, but {' and '.join(map(repr, missing))} "
            f"{'is' if len(missing) == 1 else 'are'} missing."
        )
    return {name: given.pop(name) for name in inputs}, given


def _takes(kernel: CalledKernel) -> str:
    arguments = ", ".join([*kernel.inputs, *map(str, kernel.params)])
    return f"{kernel.name} is called as {kernel.name}({arguments})"


def only(kernel: str, what: str, given: tuple[Item, ...]) -> Item | None:
    """Returns what was given for the one output of a kernel, if anything was."""
    return next(iter(for_each(kernel, what, given, (None,))), None)


def kind_of_first(name: str, inputs: tuple[Kind, ...], shape: Shape | None) -> Kind:
    """Returns the kind of the first input, in the shape that was asked for, if one was."""
    if not inputs:
        raise ShapeError(
            f"{name} has no inputs that say what its output is: give shape=(…) and dtype=, or out="
            f" with what it is to write to."
        )
    return inputs[0][0], inputs[0][1] if shape is None else shape
