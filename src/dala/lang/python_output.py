"""The output of a kernel that runs as plain Python and writes where it likes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.ir.types import S32, Scalar
from dala.lang.python_values import Evaluator


class WrittenOutput:
    """The output of a kernel that writes where it likes."""

    def __init__(self, evaluator: Evaluator, out: np.ndarray, type: Scalar) -> None:
        self._evaluator, self._out, self._type = evaluator, out, type
        self.shape = tuple(evaluator.classes[S32](size) for size in out.shape)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._write(index, value)

    def add(self, index: Any, value: Any) -> None:
        self._write(index, value, "add")

    def min(self, index: Any, value: Any) -> None:
        self._write(index, value, "min")

    def max(self, index: Any, value: Any) -> None:
        self._write(index, value, "max")

    def _write(self, index: Any, value: Any, op: str = "") -> None:
        run, out, type_ = self._evaluator, self._out, self._type
        places = tuple(int(item) for item in (index if isinstance(index, tuple) else (index,)))
        if all(0 <= place < size for place, size in zip(places, out.shape, strict=True)):
            stored_ = run.convert(value, type_.computed if op else type_)
            if op:
                stored_ = run.binary(op, run.classes[type_.computed](out[places]), stored_)
            out[places] = stored_
