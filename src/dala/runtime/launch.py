"""A kernel for buffers of given dtypes and shapes: checked and compiled once, run many times."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dala.devices.memory import HOST, Memory
from dala.emit.layout import layout_of
from dala.emit.limits import may_time_out
from dala.emit.llvm import Target
from dala.emit.partition import loops_over_rows
from dala.errors import KernelTimeoutError, ShapeError
from dala.ir.access import Access, accesses, is_elementwise
from dala.ir.nodes import AtomicAdd, Load, Program, walk
from dala.ir.record import changed
from dala.ir.types import F32, U8, Scalar
from dala.lang.lower import Definition, Special
from dala.plan.strips import MEMORY_COST, Strips, cut, effort_of

if TYPE_CHECKING:
    from dala.devices.cpu import Cpu, Executable

Kind = tuple[Scalar, tuple[int, ...]]
"""A buffer's dtype and shape."""

STREAMED_BYTES = 16 << 20
"""An output from this size on would only push other data out of the caches."""
WIDE_ROW = 256
"""Elements from which on a row is computed two vectors at a time."""
_NOTHING = (ctypes.c_int64 * 8)()
"""What an empty input points at: reading it gives zeros."""


class Launch:
    """One kernel, specialised; `run` takes memories of just these dtypes and shapes."""

    def __init__(
        self,
        device: Cpu,
        name: str,
        definition: Definition,
        inputs: tuple[Kind, ...],
        output: Kind,
        consts: tuple[tuple[str, bool | int | float], ...],
        types: tuple[tuple[str, Scalar], ...],
    ) -> None:
        self.device = device
        self.name = name
        self.inputs = inputs
        self.output = output
        special = special_for(name, definition, inputs, output, consts, types)
        try:
            self.program = definition.lower(special)
        except ShapeError as error:
            shapes = ", ".join(str(shape) for _, shape in inputs)
            raise ShapeError(
                f"{error} The inputs are {shapes}, the output is {output[1]}: an input that is "
                f"read at its own position has the same shape. Index it to read elsewhere."
            ) from None
        self.access = accesses(self.program)
        self.domain = self._domain()
        self._check_shapes()
        if is_elementwise(self.program):
            self.program = flattened(self.program)
            self.domain = (math.prod(self.domain),)
        self.empty = 0 in self.domain
        self.strips = self._strips()
        self.sizes = self._sizes()
        self.pixel_bytes = output[0].size_bytes * (self.program.output.channels or 1)
        large = self._size_bytes(output) >= STREAMED_BYTES
        # Cache lines are written whole, so whole elements have to fill them.
        self.streaming = large and 64 % self.pixel_bytes == 0 and not self._is_scattered
        self.unsure = may_time_out(self.program)
        self._executables: dict[tuple[frozenset[str], bool], Executable] = {}

    @property
    def _is_scattered(self) -> bool:
        return self.program.output.scattered

    # -- what is known from the shapes -----------------------------------------------------------

    def _domain(self) -> tuple[int, ...]:
        """The positions that the kernel runs over: its output's, or its first input's."""
        if self._is_scattered and self.inputs:
            return _plain(self.inputs[0][1], self.program.inputs[0].channels)
        return _plain(self.output[1], self.program.output.channels)

    def _check_shapes(self) -> None:
        for item, (_, shape) in zip(self.program.inputs, self.inputs, strict=True):
            own = self.access[item.name].kind == "own" or _reads_own(self.program, item.name)
            if own and _plain(shape, item.channels) != self.domain:
                where = "its first input" if self._is_scattered else "the output"
                raise ShapeError(
                    f"{self.name}: input {item.name!r} is {shape}, but {where} is "
                    f"{self.inputs[0][1] if self._is_scattered else self.output[1]}: an input that "
                    f"is read at its own position has the same shape. Index it to read elsewhere."
                )

    def _strips(self) -> Strips:
        *outer, width = self.domain
        threads = self.device.threads
        if any(isinstance(item, AtomicAdd) for item in walk(self.program.body)):
            threads = 1  # additions in one order: the same bits every time, and no atomics needed
        effort = effort_of(self.program)
        read = max((math.prod(shape) for _, shape in self.inputs), default=0)
        positions = max(1, math.prod(self.domain))
        whole = loops_over_rows(self.program)
        rows = math.prod(outer)
        effort += MEMORY_COST * (read // positions)
        return cut(rows, width, effort, threads, whole_rows=whole)

    def _sizes(self) -> tuple[int, ...]:
        """The values of the slots for sizes and extents, which the shapes fix."""
        shapes = {
            item.name: _plain(shape, item.channels)
            for item, (_, shape) in zip(self.program.inputs, self.inputs, strict=True)
        }
        shapes["out"] = _plain(self.output[1], self.program.output.channels)
        values = []
        for slot in layout_of(self.program):
            shape = shapes.get(slot.source or "out", ())
            if slot.kind == "size":
                values.append(self.domain[slot.axis])
            elif slot.kind == "input size":
                values.append(1 if 0 in shape else shape[slot.axis])
            elif slot.kind in ("out size", "extent"):
                values.append(shape[slot.axis])
        return tuple(values)

    def _size_bytes(self, kind: Kind) -> int:
        return kind[0].size_bytes * math.prod(kind[1])

    # -- running ---------------------------------------------------------------------------------

    def run(
        self, inputs: Sequence[Memory], output: Memory, params: Sequence[bool | int | float]
    ) -> None:
        """Compute the output; on failure it is as it was before."""
        in_place = self._in_place(inputs, output)
        if self.empty or in_place is None or self.unsure or self._is_scattered:
            self._run_aside(inputs, output, params)
        else:
            self._run_into(inputs, output.address, params, in_place)

    def _run_into(
        self,
        inputs: Sequence[Memory],
        address: int,
        params: Sequence[bool | int | float],
        in_place: frozenset[str] = frozenset(),
    ) -> None:
        streaming = self.streaming and address % self.pixel_bytes == 0
        executable = self._executables.get((in_place, streaming))
        if executable is None:
            executable = self._compiled(in_place, streaming)
        addresses = [
            memory.address if memory.size_bytes else ctypes.addressof(_NOTHING) for memory in inputs
        ]
        slots = executable.pack(address, *addresses, *self.sizes, *params)
        if self.device.run(executable, slots, self.strips):
            raise KernelTimeoutError(
                f"{self.name}: a loop took more turns than are allowed at one position (2**28 of a "
                f"`while`, 2**32 of all `for`s). Bound it, or do less at a time. The output is "
                f"as it was before."
            )

    def _run_aside(
        self, inputs: Sequence[Memory], output: Memory, params: Sequence[bool | int | float]
    ) -> None:
        """Compute into memory of its own, then copy: for aliases, and for what may yet fail."""
        if self.empty and not self._is_scattered:
            return
        aside = HOST.allocate(output.size_bytes, zeroed=self._is_scattered)
        if not self.empty:
            self._run_into(inputs, aside.address, params)
        ctypes.memmove(output.address, aside.address, output.size_bytes)

    def target(self, in_place: frozenset[str] = frozenset(), *, streaming: bool = False) -> Target:
        """What the code of this launch is compiled for."""
        wide = self.domain[-1] >= WIDE_ROW
        return self.device.target(wide=wide, streaming=streaming, in_place=in_place)

    def _compiled(self, in_place: frozenset[str], streaming: bool) -> Executable:
        target = self.target(in_place, streaming=streaming)
        made = self.device.executable(self.program, target)
        self._executables[(in_place, streaming)] = made
        return made

    def _in_place(self, inputs: Sequence[Memory], output: Memory) -> frozenset[str] | None:
        """The inputs that are the output, read where it is written; None for other aliases."""
        start, end = output.address, output.address + output.size_bytes
        shared: list[str] = []
        for item, kind, memory in zip(self.program.inputs, self.inputs, inputs, strict=True):
            if memory.address >= end or start >= memory.address + memory.size_bytes:
                continue
            if not self._fits_in_place(self.access[item.name], kind, memory, output):
                return None
            shared.append(item.name)
        return frozenset(shared)

    def _fits_in_place(self, access: Access, kind: Kind, memory: Memory, output: Memory) -> bool:
        if access.kind == "unused":
            return True
        same = kind[0].size_bytes == self.output[0].size_bytes and kind[1] == self.output[1]
        return access.kind == "own" and same and memory.address == output.address


def special_for(
    name: str,
    definition: Definition,
    inputs: tuple[Kind, ...],
    output: Kind,
    consts: tuple[tuple[str, bool | int | float], ...],
    types: tuple[tuple[str, Scalar], ...],
) -> Special:
    """What to compile a kernel for, given its buffers; a ShapeError where an image is none."""
    arguments = definition.signature.inputs
    specs = tuple(
        _image(name, f"input {item.name!r}", kind)
        if item.image
        else (kind[0], len(kind[1]) or 1, None)
        for item, kind in zip(arguments, inputs, strict=True)
    )
    channels = image_channels(output) if definition.imagery else None
    return Special(specs, (output[0], len(output[1]) or 1, channels), consts, types)


def _image(name: str, what: str, kind: Kind) -> tuple[Scalar, int, int]:
    channels = image_channels(kind)
    if channels is None:
        raise ShapeError(
            f"{name}: {what} is {kind[0]} {kind[1]}, which is not an image: images are (height, "
            f"width), (height, width, 3) or (height, width, 4), of u8 or f32."
        )
    return kind[0], 2, channels


def image_channels(kind: Kind) -> int | None:
    """How many channels the buffer has as an image, or None where it cannot be one."""
    scalar, shape = kind
    if scalar not in (U8, F32):
        return None
    if len(shape) == 2:
        return 1
    return shape[2] if len(shape) == 3 and shape[2] in (3, 4) else None


def flattened(program: Program) -> Program:
    """An elementwise program over one axis: its rows need not be told apart."""
    return changed(
        program,
        rank=1,
        inputs=tuple(changed(item, rank=1) for item in program.inputs),
        output=changed(program.output, rank=1),
    )


def _plain(shape: tuple[int, ...], channels: int | None) -> tuple[int, ...]:
    """The axes that positions have: an image's height and width, one axis for a scalar."""
    return (shape[:2] if channels else shape) or (1,)


def _reads_own(program: Program, source: str) -> bool:
    return any(
        isinstance(item, Load) and item.source == source and item.index is None
        for item in walk(program.body)
    )
