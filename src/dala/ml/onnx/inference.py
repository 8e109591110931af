"""Sizes that follow from a model, looked at before ONNX Runtime makes room for them."""

from __future__ import annotations

import math
from typing import Any

from dala.errors import ModelError, either
from dala.ml.onnx.budget import Budget
from dala.ml.onnx.external_data import Bundle
from dala.ml.onnx.tensors import DTYPES

FREE_AXIS = 64
"""How long an axis is taken to be whose size the model leaves open."""
LONGEST_AXIS = 1 << 16
"""Of an input: for longer ones the inference itself takes memory for every element."""
_KEPT_BYTES = 1024
"""Constants that sizes may follow from are small; the others are not looked at."""


def check_inferred(model: str, source: bytes | Bundle) -> None:
    """Refuses a model that would make values out of all proportion to what it is given.

    What sizes follow from inputs is not known here, where an axis is left open.
    """
    try:
        import onnx
        from onnx import shape_inference
    except ImportError as error:
        raise ModelError(
            f"{model}: its sizes are inferred by onnx before ONNX Runtime makes room for them, and "
            "it is not installed: pip install 'dala-gpu[ml]'"
            + either(", or load the model with engine='dala'.", ".")
        ) from error
    try:
        read = onnx.load_model_from_string(source.data if isinstance(source, Bundle) else source)
        given = sum(_let_go(item) for item in read.graph.initializer)
        given += sum(_bind(item) for item in read.graph.input)
        if isinstance(source, Bundle):
            given += sum(map(len, source.beside.values()))
        inferred = shape_inference.infer_shapes(read, data_prop=True).graph
    except Exception as error:  # whatever its libraries raise
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(f"{model}: its sizes cannot be inferred: {said[0]}") from error
    budget = Budget(given)
    for value in (*inferred.value_info, *inferred.output):
        kind = value.type.tensor_type
        sizes = [axis.dim_value for axis in kind.shape.dim]
        if (
            all(axis.HasField("dim_value") for axis in kind.shape.dim)
            and min(sizes, default=0) >= 0
        ):
            bits = DTYPES.get(kind.elem_type, ("", 32))[1]
            budget.check_value(f"{model}: {value.name!r}", sizes, max(bits // 8, 1))


def _let_go(tensor: Any) -> int:
    """The bytes of a constant; where they are many, it is left with its type and shape."""
    count = tensor.ByteSize()
    if count > _KEPT_BYTES:
        for field in ("raw_data", "float_data", "int32_data", "int64_data", "double_data"):
            tensor.ClearField(field)
    return int(count)


def _bind(value: Any) -> int:
    """The bytes of an input, whose open axes get a size; very long ones are left open."""
    kind = value.type.tensor_type
    sizes = [
        axis.dim_value if axis.HasField("dim_value") and axis.dim_value >= 0 else FREE_AXIS
        for axis in kind.shape.dim
    ]
    for axis, size in zip(kind.shape.dim, sizes, strict=True):
        axis.dim_value = size
        if size > LONGEST_AXIS:
            axis.ClearField("dim_value")
    return math.prod(sizes) * 4
