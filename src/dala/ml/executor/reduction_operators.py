"""The records of operators that reduce axes."""

from __future__ import annotations

import numpy as np

from dala.ir.types import S32
from dala.kernels.tensor.reductions import reduce_max, reduce_mean, reduce_min, reduce_sum
from dala.ml.executor import constant_folding as folds
from dala.ml.executor import operator_checks as checks
from dala.ml.executor import reductions
from dala.ml.executor.operator_record import Operator, on_constants

REDUCTIONS: dict[str, Operator] = {
    "ArgMax": Operator(
        expand=reductions.argmax,
        takes_integers=True,
        gives=lambda _: S32,
        check=checks.without("select_last_index", "the last of equals"),
    ),
    "ReduceMax": Operator(
        expand=reductions.reduce_by(reduce_max), constants=(1,), takes_integers=True
    ),
    "ReduceMean": Operator(expand=reductions.reduce_by(reduce_mean), constants=(1,)),
    "ReduceMin": Operator(
        expand=reductions.reduce_by(reduce_min), constants=(1,), takes_integers=True
    ),
    "ReduceProd": on_constants(folds.reduced(np.multiply)),
    "ReduceSum": Operator(
        expand=reductions.reduce_by(reduce_sum),
        fold=folds.reduced(np.add),
        constants=(1,),
        takes_integers=True,
    ),
    "Softmax": Operator(expand=reductions.softmax),
}
