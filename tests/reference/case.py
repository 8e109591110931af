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
from reference.interpreter import run


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

    @property
    def definition(self) -> Definition:
        return Definition(from_definitions(self.source, NAMES, "<case>"), self.border)

    def __str__(self) -> str:
        given = ", ".join(f"{item.dtype}{item.shape}" for item in self.inputs)
        return (
            f"{self.source}\ninputs {given}; params {self.params}; consts {self.consts}; "
            f"border {self.border}; output {self.dtype} {self.shape}"
        )


def lower(case: Case, *, fold: bool = True) -> Program:
    """The program for the case's dtypes, ranks and constants."""
    definition = case.definition
    kinds = tuple((dtype_of(item.dtype), item.shape) for item in case.inputs)
    output, consts = (dtype_of(case.dtype), case.shape), tuple(case.consts.items())
    return definition.lower(specialize("case", definition, kinds, output, consts, ()), fold=fold)


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
) -> np.ndarray:
    """What the case's output holds afterwards, by the interpreter."""
    program = lower(case, fold=fold)
    names = [item.name for item in program.inputs]
    inputs = dict(zip(names, case.inputs, strict=True))
    dtype = dtype_of(case.dtype).numpy
    return run(program, inputs, numbers(case), case.shape, dtype, shaken_by)
