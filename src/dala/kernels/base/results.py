"""The dtypes and shapes of what built-in kernels give where they are called."""

from __future__ import annotations

from collections.abc import Sequence

from dala.errors import ShapeError
from dala.ir.types import F32, F64, S32, S64, Scalar, promote
from dala.kernels.base.builtin import Given
from dala.kernels.base.shapes import Shape
from dala.lang.reductions import summed_type
from dala.runtime.pipelines.composite import CompositeKernel


def common_dtype(scalars: Sequence[Scalar], params: Given) -> Scalar:
    """Returns the dtype in which all inputs meet."""
    met = scalars[0]
    for scalar in scalars[1:]:
        met = promote(met, scalar) or S64
    return met


def float_dtype(scalars: Sequence[Scalar], params: Given) -> Scalar:
    """Returns the first input's dtype if it is a float, else the float that it meets."""
    first = scalars[0]
    return first if first.is_float else F64 if first.bits == 64 else F32


def sum_dtype(scalars: Sequence[Scalar], params: Given) -> Scalar:
    """Returns the dtype of a sum of the first input: narrow integers are summed in 32 bits."""
    return summed_type(scalars[0])


def position_dtype(scalars: Sequence[Scalar], params: Given) -> Scalar:
    """Returns the dtype of positions and counts."""
    return S32


def require_size(kernel: CompositeKernel, what: str) -> None:
    """Declares that only the output's own shape says how large the kernel's result is."""

    def refuse(shapes: Sequence[Shape], params: Given) -> Shape:
        raise ShapeError(
            f"{kernel.name}: {what}, which nothing else says: give shape=(…), or out= with what it "
            f"is to write to."
        )

    kernel.sized(refuse)
