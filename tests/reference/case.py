"""A kernel as text with everything it is run on, lowered and run by the reference."""

from dataclasses import dataclass, field

import numpy as np

from dala.ir.nodes import Program
from dala.ir.types import dtype_of
from dala.lang.language_names import NAMES
from dala.lang.lower import Definition, Specialization
from dala.lang.source import from_text
from reference.interpreter import run


@dataclass(frozen=True)
class Case:
    """One run of a kernel: its source, its inputs in order, what it writes to."""

    source: str
    inputs: tuple[np.ndarray, ...]
    shape: tuple[int, ...]
    dtype: str
    params: dict[str, bool | int | float] = field(default_factory=dict)
    consts: dict[str, int] = field(default_factory=dict)
    border: str = "clamp"

    @property
    def definition(self) -> Definition:
        return Definition(from_text(self.source, NAMES, "<case>"), self.border)

    def __str__(self) -> str:
        given = ", ".join(f"{item.dtype}{item.shape}" for item in self.inputs)
        return (
            f"{self.source}\ninputs {given}; params {self.params}; consts {self.consts}; "
            f"border {self.border}; output {self.dtype} {self.shape}"
        )


def lower(case: Case, *, fold: bool = True) -> Program:
    """The program for the case's dtypes, ranks and constants."""
    definition = case.definition
    inputs = tuple(
        _special(item, image=argument.image)
        for item, argument in zip(case.inputs, definition.signature.inputs, strict=True)
    )
    channels = None
    if definition.is_image:
        channels = 1 if len(case.shape) == 2 else case.shape[2]
    output = (dtype_of(case.dtype), 2 if channels else len(case.shape), channels)
    return definition.lower(Specialization(inputs, output, tuple(case.consts.items())), fold=fold)


def _special(item: np.ndarray, *, image: bool) -> tuple:
    if image:
        return dtype_of(item.dtype), 2, 1 if item.ndim == 2 else item.shape[2]
    return dtype_of(item.dtype), item.ndim, None


def run_reference(
    case: Case, *, fold: bool = True, shaken_by: np.random.Generator | None = None
) -> np.ndarray:
    """What the case's output holds afterwards, by the interpreter."""
    program = lower(case, fold=fold)
    names = [item.name for item in program.inputs]
    inputs = dict(zip(names, case.inputs, strict=True))
    dtype = dtype_of(case.dtype).numpy
    return run(program, inputs, case.params, case.shape, dtype, shaken_by)
