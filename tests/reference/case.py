"""A kernel as text with everything it is run on, lowered and run by the reference."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dala.ir.nodes import Program
from dala.ir.types import dtype_of
from dala.lang.composites import flattened
from dala.lang.language_names import NAMES
from dala.lang.lower import Definition
from dala.lang.text_definitions import from_definitions
from dala.runtime.kernels.specialization import specialize
from reference.interpreter import run_all


@dataclass(frozen=True)
class Case:
    """One run of a kernel: its source, its inputs in order, what it writes to."""

    source: str
    inputs: tuple[np.ndarray, ...]
    shape: tuple[int, ...]
    dtype: str
    params: dict[str, Any] = field(default_factory=dict)
    consts: dict[str, int] = field(default_factory=dict)
    border: str = "clamp"
    others: tuple[str, ...] = ()
    """The dtypes of further outputs, of the same shape."""

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtype of each output."""
        return (self.dtype, *self.others)

    @property
    def definition(self) -> Definition:
        return Definition(from_definitions(self.source, NAMES, "<case>"), self.border)

    def __str__(self) -> str:
        given = ", ".join(f"{item.dtype}{item.shape}" for item in self.inputs)
        return (
            f"{self.source}\ninputs {given}; params {self.params}; consts {self.consts}; "
            f"border {self.border}; output {', '.join(self.dtypes)} {self.shape}"
        )


def lower(case: Case, *, fold: bool = True) -> Program:
    """The program for the case's dtypes, ranks and constants."""
    definition = case.definition
    kinds = tuple((dtype_of(item.dtype), item.shape) for item in case.inputs)
    outputs = tuple((dtype_of(dtype), case.shape) for dtype in case.dtypes)
    consts = tuple(case.consts.items())
    return definition.lower(specialize("case", definition, kinds, outputs, consts, ()), fold=fold)


def numbers(case: Case) -> dict[str, bool | int | float]:
    """The parameters as a program takes them, number by number."""
    found: dict[str, bool | int | float] = {}
    for item in case.definition.signature.params:
        if item.name in case.params:
            given = case.params[item.name]
            parts = flattened(item.composite, given, item.name) if item.composite else [given]
            found.update(zip(item.components, parts, strict=True))
    return found


def run_reference(
    case: Case, *, fold: bool = True, shaken_by: np.random.Generator | None = None
) -> tuple[np.ndarray, ...]:
    """What the case's outputs hold afterwards, by the interpreter."""
    program = lower(case, fold=fold)
    names = [item.name for item in program.inputs]
    inputs = dict(zip(names, case.inputs, strict=True))
    wanted = [(case.shape, dtype_of(dtype).numpy) for dtype in case.dtypes]
    return run_all(program, inputs, numbers(case), wanted, shaken_by)
