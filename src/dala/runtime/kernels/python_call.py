"""A kernel called as plain Python: what it is given, checked, and the array that it gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dala.errors import ArgumentError
from dala.ir.types import dtype_of
from dala.lang.lowering_cache import lowered
from dala.lang.python_run import run_python
from dala.runtime.kernels.arguments import Params, complete
from dala.runtime.kernels.call import DtypesLike, ShapeLike, requested_dtypes, requested_shapes
from dala.runtime.kernels.specialization import specialize, specialized_task

if TYPE_CHECKING:
    from dala.runtime.kernels.kernel import Kernel


def call_as_python(
    kernel: Kernel,
    inputs: Sequence[Any],
    shape: ShapeLike | None,
    dtype: DtypesLike | None,
    params: Params,
) -> np.ndarray | tuple[np.ndarray, ...]:
    """Returns the output of the kernel's own Python function, run at every position."""
    name, names = kernel.name, kernel.inputs
    if not kernel.has_function:
        raise ArgumentError(
            f"{name} is not one function of the kernel language, which Python could run: run it "
            f"with compute.run_kernel; its doc is: {kernel.doc.partition(chr(10))[0]}"
        )
    arrays = [np.asarray(item) for item in inputs]
    if len(arrays) != len(names):
        raise ArgumentError(
            f"{name} takes {len(names)} input{'s' * (len(names) != 1)} "
            f"({', '.join(names) or 'none'}), but {len(arrays)} were given."
        )
    kinds = tuple((dtype_of(item.dtype), item.shape) for item in arrays)
    wished = (requested_shapes(shape), requested_dtypes(dtype))
    outputs = kernel.result_kinds(kinds, params, *wished)
    scalar = outputs[0][0]
    consts, types, _ = kernel.sort_params((*(kind for kind, _ in kinds), scalar), params)
    specialized_task(name, kernel.definition, kinds, outputs, consts, types)  # checks all of it
    special = specialize(name, kernel.definition, kinds, outputs, consts, types)
    program = lowered(kernel.definition, special)
    made = tuple(np.zeros(extents, scalar.numpy) for scalar, extents in outputs)
    given = complete(name, kernel.params, params)
    run_python(kernel.definition, program, dict(zip(names, arrays, strict=True)), given, made)
    return made if len(made) > 1 else made[0]
