"""One run of a program over buffers of given dtypes and shapes: what a device is asked to do."""

from __future__ import annotations

import math

from dala.base.record import changed, remembered
from dala.errors import ShapeError
from dala.ir.access import Access, accesses, is_flat, reads_own
from dala.ir.nodes import OUTPUT, Program, Write, domain_of, walk
from dala.ir.types import Scalar
from dala.ir.writes import covers_output, rows_write_own_elements, writes_own_elements
from dala.plan.watchdog import STEP_LIMIT, WATCHED_ITERATIONS, max_iterations

Shape = tuple[int, ...]
Kind = tuple[Scalar, Shape]
"""A buffer's dtype and shape."""
InPlace = frozenset[tuple[str, int]]
"""Inputs by name, and the number of the output whose memory they share."""


class Task:
    """A program, the shapes it runs over, and what follows from both."""

    def __init__(
        self, name: str, program: Program, inputs: tuple[Kind, ...], outputs: tuple[Kind, ...]
    ) -> None:
        self.name = name
        self.inputs = inputs
        self.outputs = outputs
        self.lowered = program
        """The program as it was lowered; `program` is flattened where it is elementwise."""
        self.program = program
        self.access = accesses(program)
        self.scattered = program.output.scattered
        self.accumulates = program.output.accumulates
        self.domain = self._domain()
        self.positions = self.domain
        """The domain with all its axes, also where it is flattened."""
        self.reports = bool(program.sites)
        """Whether it checks or prints."""
        self._check_shapes()
        if is_flat(program):
            self.program = flattened(program)
            self.domain = (math.prod(self.domain),)
        self.empty = 0 in self.domain
        self.owns_elements = writes_own_elements(self.program, self.domain)
        """Whether it scatters, and no two positions write the same element."""
        self.rows_own_elements = rows_write_own_elements(self.program, self.domain)
        """Whether it scatters, and no two rows write the same element."""
        self.covers_output = self.owns_elements and covers_output(
            self.program, self.domain, self.shapes
        )
        """Whether it scatters to every element of the output, which need not hold zeros first."""
        writes = sum(isinstance(item, Write) for item in walk(self.program.body))
        self.stores_once = self.covers_output and writes * math.prod(self.domain) == math.prod(
            self.shapes[OUTPUT]
        )
        """Whether it scatters to every element once, and nowhere else."""
        self.starts_from_zeros = (
            self.scattered and not self.accumulates and (self.empty or not self.covers_output)
        )
        self.max_iterations = max_iterations(self.program, self.shapes)
        """The most iterations of its loops at one position."""
        self.may_not_terminate = self.max_iterations > STEP_LIMIT
        self.watched = self.max_iterations > WATCHED_ITERATIONS

    def _domain(self) -> Shape:
        """Returns the positions that the kernel runs over: its output's, or its first input's."""
        if self.scattered and self.inputs:
            return domain_of(self.inputs[0][1], self.program.inputs[0].channels)
        return domain_of(self.outputs[0][1], self.program.output.channels)

    def _check_shapes(self) -> None:
        for number, (_, shape) in enumerate(self.outputs):
            channels = self.program.outputs[number].channels
            if not self.scattered and domain_of(shape, channels) != self.domain:
                raise ShapeError(
                    f"{self.name}: output 0 is {self.outputs[0][1]}, but output {number} is "
                    f"{shape}: all outputs of a kernel have as many positions along each axis. "
                    f"Give outputs of one shape, or write a kernel for each."
                )
        for item, (_, shape) in zip(self.program.inputs, self.inputs, strict=True):
            own = self.access[item.name].kind == "own" or reads_own(self.program, item.name)
            if own and domain_of(shape, item.channels) != self.domain:
                where = "its first input" if self.scattered else "the output"
                raise ShapeError(
                    f"{self.name}: input {item.name!r} is {shape}, but {where} is "
                    f"{self.inputs[0][1] if self.scattered else self.outputs[0][1]}: an input that "
                    f"is read at its own position has the same shape, or broadcasts to it. Index "
                    f"it to read elsewhere."
                )

    @property
    def sizes_bytes(self) -> list[int]:
        """How many bytes each input has, then each output."""
        return [
            scalar.size_bytes * math.prod(shape) for scalar, shape in (*self.inputs, *self.outputs)
        ]

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shape of each input and of the outputs, without an axis of channels."""
        shapes = {
            item.name: domain_of(shape, item.channels)
            for item, (_, shape) in zip(self.program.inputs, self.inputs, strict=True)
        }
        shapes[OUTPUT] = domain_of(self.outputs[0][1], self.program.output.channels)
        return shapes

    def fits_in_place(self, position: int, number: int = 0) -> bool:
        """Returns whether the input may be an output's memory: read only where it is written."""
        access: Access = self.access[self.program.inputs[position].name]
        if access.kind == "unused":
            return True
        scalar, shape = self.inputs[position]
        written, extents = self.outputs[number]
        same = scalar.size_bytes == written.size_bytes and shape == extents
        return access.kind == "own" and same


@remembered
def flattened(program: Program) -> Program:
    """Returns a program over one axis, if its rows need not be told apart."""
    return changed(
        program,
        rank=1,
        inputs=tuple(
            changed(item, rank=1) if reads_own(program, item.name) else item
            for item in program.inputs
        ),
        outputs=tuple(changed(item, rank=1) for item in program.outputs),
    )
