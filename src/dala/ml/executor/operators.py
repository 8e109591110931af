"""The operators of ONNX: one record for each, with all that is known of it, by families."""

from __future__ import annotations

from dala.ml.executor.elementwise_operators import ELEMENTWISE
from dala.ml.executor.host_operators import FLOW, HOST
from dala.ml.executor.layer_records import LAYERS
from dala.ml.executor.movement_operators import MOVEMENT
from dala.ml.executor.operator_record import Operator
from dala.ml.executor.reduction_operators import REDUCTIONS

OPERATORS: dict[str, Operator] = {**ELEMENTWISE, **MOVEMENT, **REDUCTIONS, **HOST, **FLOW, **LAYERS}
"""Every operator that is computed, by its name."""
