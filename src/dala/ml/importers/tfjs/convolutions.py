"""Convolutions, with the bias, scale, padding and dilation that other nodes around them express."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dala.base.record import changed, record
from dala.errors import ModelError
from dala.ml.importers.tfjs.activations import activated, elementwise
from dala.ml.importers.tfjs.operation import FIRST, Operation, Tensor, translates

Pads = tuple[tuple[int, int], tuple[int, int]]
NO_PADS: Pads = ((0, 0), (0, 0))


@record
class Convolution:
    """A convolution that was written, so that it can be written again with more in it."""

    source: Tensor
    weights: np.ndarray | None
    weights_name: str
    bias: np.ndarray | None
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: Pads
    groups: int


@record
class Padded:
    """A tensor with zeros around its rows and columns."""

    source: Tensor
    pads: Pads


@record
class Blocked:
    """A tensor whose rows and columns were dealt out to the batch, for a dilated convolution."""

    source: Tensor
    block: tuple[int, int]
    pads: Pads
    convolution: Convolution | None = None


def spatial(op: Operation, name: str) -> tuple[int, int]:
    """Returns the attribute's values for rows and columns."""
    values = op.node.wholes(name, (1, 1, 1, 1))
    if len(values) != 4 or values[0] != 1 or values[3] != 1 or min(values) < 1:
        raise ModelError(
            f"its {name} are {list(values)}, but they have to be [1, rows, columns, 1], from 1 on."
        )
    return values[1], values[2]


def pads_of(
    op: Operation,
    sizes: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int] = (1, 1),
) -> Pads:
    """How far a window that moves over rows and columns of these sizes reaches out of them."""
    kind = op.node.text("padding", "VALID")
    if kind == "VALID":
        return NO_PADS
    if kind == "EXPLICIT":
        given = op.node.wholes("explicit_paddings")
        if len(given) != 8 or min(given) < 0:
            raise ModelError(
                f"its explicit_paddings are {list(given)}, but 8 from 0 on are needed."
            )
        return (given[2], given[3]), (given[4], given[5])
    if kind != "SAME":
        raise ModelError(f"its padding is {kind!r}, but SAME, VALID and EXPLICIT are known.")
    rows, columns = (
        _same_pads(size, (reach - 1) * dilation + 1, stride)
        for size, reach, stride, dilation in zip(sizes, window, strides, dilations, strict=True)
    )
    return rows, columns


def _same_pads(size: int, reach: int, stride: int) -> tuple[int, int]:
    total = max((-(-size // stride) - 1) * stride + reach - size, 0)
    return total // 2, total - total // 2


def flat(pads: Pads) -> list[int]:
    """Returns the pads in the order of ONNX: where rows and columns start, then where they end."""
    return [pads[0][0], pads[1][0], pads[0][1], pads[1][1]]


def check_layout(op: Operation) -> None:
    """Check that the node has its channels last."""
    layout = op.node.text("data_format", "NHWC")
    if layout != "NHWC":
        raise ModelError(f"its data_format is {layout!r}, but only NHWC is read.")


def check_images(op: Operation, *places: int) -> None:
    """Check that these inputs have four axes, the channels last."""
    check_layout(op)
    for place in places:
        if place >= len(op.inputs) or op.inputs[place].rank != 4:
            shapes = [tensor.shape for tensor in op.inputs]
            raise ModelError(f"its input {place} needs four axes; its inputs are {shapes}.")


@translates("Conv2D", "DepthwiseConv2dNative", "_FusedConv2D", "FusedDepthwiseConv2dNative")
def _convolve(op: Operation) -> Tensor:
    check_images(op, 0, 1)
    source, kernel = op.inputs[:2]
    rows, columns, taken, last = kernel.shape
    weights = op.array(kernel)
    if "Depthwise" in op.node.op:
        groups, order, shape = taken, (2, 3, 0, 1), (taken * last, 1, rows, columns)
        fits = source.shape[3] == taken
    else:
        groups, order, shape = source.shape[3] // max(taken, 1), (3, 2, 0, 1), None
        fits = groups > 0 and groups * taken == source.shape[3] and last % groups == 0
    if not fits:
        raise ModelError(
            f"its weights {kernel.shape} do not fit its input {source.shape}: they are for "
            f"{taken} channels."
        )
    (name,) = op.graph.add(
        "Transpose", [op.name(kernel)], f"{op.node.inputs[1][0]}/oihw", perm=order
    )
    if shape is not None:
        (name,) = op.graph.add("Reshape", [name, op.new(shape)], name)
    weights = op.graph.array(name)
    strides, dilations = spatial(op, "strides"), spatial(op, "dilations")
    pads = pads_of(op, source.shape[1:3], (rows, columns), strides, dilations)
    convolution = Convolution(source, weights, name, None, strides, dilations, pads, groups)
    return _with_fused(op, _without_padding(op, convolution))


def _with_fused(op: Operation, convolution: Convolution) -> Tensor:
    """Returns the convolution with the bias and the activation that the node names."""
    fused = list(op.node.texts("fused_ops"))
    extra = list(op.inputs[2:])
    if len(extra) < fused.count("BiasAdd") + fused.count("Prelu"):
        raise ModelError(f"it is fused with {fused}, but has only {len(extra)} inputs for that.")
    bias = extra.pop(0) if fused[:1] == ["BiasAdd"] else None
    values = op.array(bias) if bias is not None else None
    if values is not None:
        convolution = changed(convolution, bias=_per_channel(op, values, convolution))
    result = written(op, convolution)
    if bias is not None and values is None:
        result = elementwise(op, "Add", result, bias)
    for name in fused[bias is not None :]:
        result = activated(op, result, name, extra.pop(0) if name == "Prelu" else None)
    return result


def written(op: Operation, convolution: Convolution) -> Tensor:
    """Returns what a convolution gives, as a new node."""
    names = [op.name(convolution.source, FIRST), convolution.weights_name]
    if convolution.bias is not None:
        names.append(op.graph.constant(convolution.bias, f"{op.node.name}/bias"))
    result = op.emit(
        "Conv",
        names,
        FIRST,
        dilations=convolution.dilations,
        group=convolution.groups,
        kernel_shape=op.graph.shape(convolution.weights_name)[2:],
        pads=flat(convolution.pads),
        strides=convolution.strides,
    )
    name = result.forms[FIRST]
    op.origins[name] = convolution
    blocked = _origin(op, convolution.source)
    if isinstance(blocked, Blocked) and blocked.convolution is None:
        op.origins[name] = changed(blocked, convolution=convolution)
    return result


def merged_bias(op: Operation) -> Tensor | None:
    """Returns the sum, if that is a convolution with a bias: it then costs nothing."""
    found = _scaled_convolution(op)
    if found is None:
        return None
    convolution, values = found
    start = convolution.bias if convolution.bias is not None else np.float32(0)
    return written(op, changed(convolution, bias=start + values))


def merged_scale(op: Operation) -> Tensor | None:
    """Returns the product, if that is a convolution with other weights: it then costs nothing."""
    found = _scaled_convolution(op)
    if found is None or found[0].weights is None:
        return None
    convolution, values = found
    weights = convolution.weights * values[:, None, None, None]
    name = op.graph.constant(weights, f"{op.node.name}/weights")
    bias = None if convolution.bias is None else convolution.bias * values
    return written(op, changed(convolution, weights=weights, weights_name=name, bias=bias))


def _scaled_convolution(op: Operation) -> tuple[Convolution, np.ndarray] | None:
    """Returns the convolution that this node alone takes, and its constant for each channel."""
    if len(op.inputs) != 2:
        return None
    for place, other in ((0, 1), (1, 0)):
        convolution, values = _origin(op, op.inputs[place]), op.array(op.inputs[other])
        if not isinstance(convolution, Convolution) or not op.used_once[place]:
            continue
        if values is not None and values.dtype == np.float32:
            channels = op.inputs[place].shape[3]
            along_channels = values.shape[-1:] == (channels,) or values.size == 1
            if values.size in (1, channels) and values.ndim <= 4 and along_channels:
                return convolution, _per_channel(op, values, convolution)
    return None


def _per_channel(op: Operation, values: np.ndarray, convolution: Convolution) -> np.ndarray:
    channels = op.graph.shape(convolution.weights_name)[0]
    if values.size not in (1, channels) or values.dtype != np.float32:
        raise ModelError(
            f"its bias is {values.dtype.name} {values.shape}, but there are {channels} channels of "
            f"float32."
        )
    return np.ascontiguousarray(np.broadcast_to(values.ravel(), channels))


def _without_padding(op: Operation, convolution: Convolution) -> Convolution:
    """Returns the convolution that pads by itself what was padded for it."""
    padded = _origin(op, convolution.source)
    if not isinstance(padded, Padded):
        return convolution
    pads = _added(convolution.pads, padded.pads)
    return changed(convolution, source=padded.source, pads=pads)


def _added(first: Pads, second: Pads, times: Sequence[int] = (1, 1)) -> Pads:
    rows, columns = (
        (mine[0] * factor + other[0], mine[1] * factor + other[1])
        for mine, other, factor in zip(first, second, times, strict=True)
    )
    return rows, columns


def _origin(op: Operation, tensor: Tensor) -> Convolution | Padded | Blocked | None:
    found = (op.origins.get(name) for name in tensor.forms.values())
    return next((each for each in found if each is not None), None)


def undealt(op: Operation, crops: Pads, block: tuple[int, int]) -> Tensor | None:
    """Returns the dilated convolution that rows and columns dealt out to the batch stand for."""
    dealt = _origin(op, op.inputs[0])
    if not isinstance(dealt, Blocked) or dealt.convolution is None or dealt.block != block:
        return None
    convolution = dealt.convolution
    if convolution.strides != (1, 1) or convolution.dilations != (1, 1) or not op.used_once[0]:
        return None
    negative: Pads = ((-crops[0][0], -crops[0][1]), (-crops[1][0], -crops[1][1]))
    pads = _added(convolution.pads, _added(dealt.pads, negative), block)
    if min(flat(pads)) < 0:
        return None
    whole = changed(convolution, source=dealt.source, dilations=block, pads=pads)
    return written(op, whole)


@translates("Conv2DBackpropInput")
def _transposed_convolution(op: Operation) -> Tensor:
    check_images(op, 1, 2)
    kernel, source = op.inputs[1:3]
    sizes = op.wholes(0, "the size of its result")
    strides, dilations = spatial(op, "strides"), spatial(op, "dilations")
    window = kernel.shape[:2]
    if len(sizes) not in (2, 4) or kernel.shape[3] != source.shape[3]:
        raise ModelError(
            f"its weights {kernel.shape} do not fit its input {source.shape}, or the size of its "
            f"result, {sizes}."
        )
    target = sizes if len(sizes) == 2 else sizes[1:3]
    pads = pads_of(op, target, window, strides, dilations)
    reached = [
        (size - 1) * stride + (reach - 1) * dilation + 1 - sum(pad)
        for size, stride, reach, dilation, pad in zip(
            source.shape[1:3], strides, window, dilations, pads, strict=True
        )
    ]
    missing = [size - reach for size, reach in zip(target, reached, strict=True)]
    if not all(0 <= each < stride for each, stride in zip(missing, strides, strict=True)):
        raise ModelError(f"its input {source.shape} cannot become {sizes} by strides {strides}.")
    (name,) = op.graph.add(
        "Transpose", [op.name(kernel)], f"{op.node.inputs[1][0]}/iohw", perm=(3, 2, 0, 1)
    )
    return op.emit(
        "ConvTranspose",
        [op.name(source, FIRST), name],
        FIRST,
        dilations=dilations,
        kernel_shape=window,
        output_padding=missing,
        pads=flat(pads),
        strides=strides,
    )
