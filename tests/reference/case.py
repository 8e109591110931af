"""A kernel as text with everything it is run on, lowered and run by the reference."""

from dataclasses import dataclass, field

import numpy as np

from dala.ir.nodes import Program
from dala.ir.types import dtype_of
from dala.lang.language_names import NAMES
from dala.lang.lower import Definition, Specialization
from dala.lang.source import from_text
from reference.interpreter import run_all


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
    others: tuple[str, ...] = ()
    """The dtypes of further outputs, of the same shape."""

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtype of each output."""
        return (self.dtype, *self.others)

    @property
    def definition(self) -> Definition:
        return Definition(from_text(self.source, NAMES, "<case>"), self.border)

    def __str__(self) -> str:
        given = ", ".join(f"{item.dtype}{item.shape}" for item in self.inputs)
        return (
            f"{self.source}\ninputs {given}; params {self.params}; consts {self.consts}; "
            f"border {self.border}; output {', '.join(self.dtypes)} {self.shape}"
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
    rank = 2 if channels else len(case.shape)
    outputs = tuple((dtype_of(dtype), rank, channels) for dtype in case.dtypes)
    return definition.lower(Specialization(inputs, outputs, tuple(case.consts.items())), fold=fold)


def _special(item: np.ndarray, *, image: bool) -> tuple:
    if image:
        return dtype_of(item.dtype), 2, 1 if item.ndim == 2 else item.shape[2]
    return dtype_of(item.dtype), item.ndim, None


def run_reference(
    case: Case, *, fold: bool = True, shaken_by: np.random.Generator | None = None
) -> tuple[np.ndarray, ...]:
    """What the case's outputs hold afterwards, by the interpreter."""
    program = lower(case, fold=fold)
    names = [item.name for item in program.inputs]
    inputs = dict(zip(names, case.inputs, strict=True))
    wanted = [(case.shape, dtype_of(dtype).numpy) for dtype in case.dtypes]
    return run_all(program, inputs, case.params, wanted, shaken_by)
