"""What other translations need of elements, too: broadcasting, activations, bounds."""

from __future__ import annotations

from dala.errors import ModelError
from dala.ml.importers.tfjs.operation import Operation, Tensor


def elementwise(op: Operation, kind: str, *tensors: Tensor, **attrs: float | int | str) -> Tensor:
    """Returns what an ONNX operator gives for tensors that are broadcast against each other."""
    # Only what chooses between two takes a condition of another dtype.
    dtypes = {tensor.dtype for tensor in (tensors[1:] if kind == "Where" else tensors)}
    if len(dtypes) > 1:
        raise ModelError(
            f"its inputs are {' and '.join(sorted(dtypes))}: they have to be of one kind."
        )
    layout = op.layout(*tensors)
    return op.emit(kind, op.broadcast(tensors, layout), layout, **attrs)


def activated(op: Operation, tensor: Tensor, name: str, slope: Tensor | None = None) -> Tensor:
    """Returns the tensor after an activation that is fused with what made it."""
    match name:
        case "Relu" | "Elu" | "Sigmoid" | "Tanh":
            return elementwise(op, name, tensor)
        case "Relu6":
            return clipped(op, tensor, 0, 6)
        case "LeakyRelu":
            alpha = op.node.number("leakyrelu_alpha", op.node.number("alpha", 0.2))
            return elementwise(op, "LeakyRelu", tensor, alpha=alpha)
        case "Prelu" if slope is not None:
            return elementwise(op, "PRelu", tensor, slope)
    raise ModelError(
        f"it is fused with {name!r}, but what can be is BiasAdd, Relu, Relu6, Elu, Sigmoid, Tanh, "
        f"LeakyRelu and Prelu."
    )


def clipped(op: Operation, tensor: Tensor, least: float, most: float) -> Tensor:
    """Returns the tensor with values held between two bounds."""
    layout = op.layout(tensor)
    bounds = [op.new(bound, tensor.dtype) for bound in (least, most)]
    return op.emit("Clip", [op.name(tensor, layout), *bounds], layout)
