"""The records of operators that reduce axes."""

from __future__ import annotations

import numpy as np

from dala.ir.types import S64
from dala.kernels.tensor.reductions import reduce_max, reduce_mean, reduce_min, reduce_sum
from dala.ml.executor import constant_folding as folds
from dala.ml.executor import parts, reductions
from dala.ml.executor.dtypes import on_device
from dala.ml.executor.operator_record import Operator
from dala.ml.executor.parts import written_as


def _as_reductions(*lines: str) -> Operator:
    return Operator(parts=written_as(*lines), takes_integers=True)


REDUCTIONS: dict[str, Operator] = {
    "ArgMax": Operator(
        expand=reductions.argmax, takes_integers=True, gives=lambda _: on_device(S64)
    ),
    "ArgMin": Operator(
        expand=reductions.argmax, takes_integers=True, gives=lambda _: on_device(S64)
    ),
    "CumProd": Operator(expand=reductions.running_sum, constants=(1,), takes_integers=True),
    "CumSum": Operator(
        expand=reductions.running_sum, fold=folds.accumulating, constants=(1,), takes_integers=True
    ),
    "Hardmax": Operator(parts=parts.along_rows(parts.hardmax)),
    "LogSoftmax": Operator(parts=parts.along_rows(parts.log_softmax)),
    "ReduceL1": _as_reductions("a = Abs(0)", "y = ReduceSum(a, 1)"),
    "ReduceL2": _as_reductions("a = Mul(0, 0)", "s = ReduceSum(a, 1)", "y = Sqrt(s)"),
    "ReduceLogSum": _as_reductions("s = ReduceSum(0, 1)", "y = Log(s)"),
    "ReduceLogSumExp": _as_reductions(
        "m = ReduceMax(0, 1) keepdims=1",
        "d = Sub(0, m)",
        "e = Exp(d)",
        "s = ReduceSum(e, 1)",
        "l = Log(s)",
        "o = ReduceMax(0, 1)",
        "y = Add(l, o)",
    ),
    "ReduceMax": Operator(
        expand=reductions.reduce_by(reduce_max, reductions.lowest),
        fold=folds.reduced(np.maximum),
        constants=(1,),
        takes_integers=True,
    ),
    "ReduceMean": Operator(
        expand=reductions.reduce_by(reduce_mean), constants=(1,), takes_integers=True
    ),
    "ReduceMin": Operator(
        expand=reductions.reduce_by(reduce_min, reductions.highest),
        fold=folds.reduced(np.minimum),
        constants=(1,),
        takes_integers=True,
    ),
    "ReduceProd": Operator(
        expand=reductions.product,
        fold=folds.reduced(np.multiply),
        constants=(1,),
        takes_integers=True,
    ),
    "ReduceSum": Operator(
        expand=reductions.reduce_by(reduce_sum),
        fold=folds.reduced(np.add),
        constants=(1,),
        takes_integers=True,
    ),
    "ReduceSumSquare": _as_reductions("a = Mul(0, 0)", "y = ReduceSum(a, 1)"),
    "Softmax": Operator(expand=reductions.softmax, takes_doubles=True),
}
