"""The operators of ONNX that kernels compute, and what is in the way of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dala.ir.types import F32
from dala.ml.executor import convolutions, movement
from dala.ml.executor import matmul as products
from dala.ml.executor import reductions as folds
from dala.ml.executor import spatial as planes
from dala.ml.executor.constant_folding import FOLDS
from dala.ml.executor.node_context import Site
from dala.ml.executor.pointwise import CASTS, POINTWISE, STORED, WHOLE
from dala.ml.onnx.contents import Contents, Node
from dala.runtime.pipelines.composite import Stage

Expand = Callable[[Site], Iterable[Stage]]

OPERATORS: dict[str, Expand] = {
    "ArgMax": folds.argmax,
    "AveragePool": planes.pool,
    "Concat": movement.concat,
    "Conv": convolutions.conv,
    "ConvTranspose": convolutions.transposed_conv,
    "DepthToSpace": movement.depth_to_space,
    "Expand": movement.expand,
    "Flatten": movement.flatten,
    "Gather": movement.gather,
    "GatherND": movement.gather_places,
    "Gemm": products.gemm,
    "GlobalAveragePool": planes.global_pool,
    "GlobalMaxPool": planes.global_pool,
    "MatMul": products.product,
    "MaxPool": planes.pool,
    "Pad": movement.pad,
    "ReduceMax": folds.reduce,
    "ReduceMean": folds.reduce,
    "ReduceMin": folds.reduce,
    "ReduceSum": folds.reduce,
    "Reshape": movement.reshape,
    "Resize": planes.resize,
    "Shape": movement.shape_of,
    "Slice": movement.slice_,
    "Softmax": folds.softmax,
    "SpaceToDepth": movement.space_to_depth,
    "Split": movement.split,
    "Squeeze": movement.squeeze,
    "Tile": movement.tile,
    "Transpose": movement.transpose,
    "Unsqueeze": movement.unsqueeze,
    "Upsample": planes.resize,
}
_CONVOLUTIONS = ("Conv", "ConvTranspose")
_PUT_OFF = {*POINTWISE, "Identity", "Dropout", "BatchNormalization"}

_GIVE_WHOLE = {"ArgMax", "Cast"}
_MOVING = {"Concat", "Expand", "Flatten", "Gather", "GatherND", "Pad", "Reshape", "Slice", "Split"}
_MOVING |= {"Squeeze", "Tile", "Transpose", "Unsqueeze", "Dropout", "Identity", "ArgMax"}
_TAKE_WHOLE = {*WHOLE, *_MOVING, "ReduceMax", "ReduceMin", "ReduceSum"}
"""Operators that take whole numbers as well as floats."""

_KNOWN_BEFORE: dict[str, tuple[int, ...]] = {
    "BatchNormalization": (1, 2, 3, 4),
    "Conv": (1, 2),
    "ConvTranspose": (1, 2),
    "Expand": (1,),
    "Gemm": (1, 2),
    "Pad": (1, 2, 3),
    "ReduceMax": (1,),
    "ReduceMean": (1,),
    "ReduceMin": (1,),
    "ReduceSum": (1,),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}
"""Inputs that have to be known before a model runs."""


def missing_of(contents: Contents) -> list[str]:
    """The nodes that kernels cannot compute, each with the reason."""
    found = [
        f"input {item.name!r}: {item.numpy} is not held by every device"
        for item in contents.inputs
        if item.numpy not in STORED
    ]
    found += [
        f"constant {name!r}: {dtype} is not computed by kernels"
        for name, dtype in contents.unreadable.items()
    ]
    known = {*contents.constants, *contents.unreadable, ""}
    whole = {item.name for item in contents.inputs if item.numpy.kind != "f"}
    for node in contents.nodes:
        if node.op == "Shape" or (node.op in FOLDS and known.issuperset(node.inputs)):
            known.update(node.outputs)
            continue
        if node.op in _GIVE_WHOLE and (node.op != "Cast" or CASTS.get(node.get("to")) != F32):
            whole.update(node.outputs)
        reason = _obstacle(node, known) or _of_planes(node, contents)
        if not reason and node.op != "Cast" and not whole.isdisjoint(node.inputs[:1]):
            reason = ": it is computed of floats only" if node.op not in _TAKE_WHOLE else ""
            whole.update(node.outputs)
        if reason:
            found.append(f"{node}{reason}")
    return found


def _obstacle(node: Node, known: set[str]) -> str:
    """Why kernels cannot compute a node; empty if they can."""
    if node.op not in OPERATORS and node.op not in _PUT_OFF:
        return ": no kernel computes it"
    for index in _KNOWN_BEFORE.get(node.op, ()):
        if node.has(index) and node.inputs[index] not in known:
            return f": its input {node.inputs[index]!r} is not known before the model runs"
    check = _CHECKS.get(node.op)
    reason = check(node) if check is not None else ""
    return f": {reason}" if reason else ""


def _of_planes(node: Node, contents: Contents) -> str:
    """Why a convolution is none of planes, by its weights: it need not say how large they are."""
    weight = contents.constants.get(node.inputs[1]) if node.op in _CONVOLUTIONS else None
    return "" if weight is None or weight.ndim == 4 else ": its windows have not two axes"


def _two_axes(node: Node) -> str:
    shape = node.get("kernel_shape")
    return "" if shape is None or len(shape) == 2 else "its windows have not two axes"


def _resize(node: Node) -> str:
    modes = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
    transformation = node.get("coordinate_transformation_mode", "half_pixel")
    if node.get("mode", "nearest") not in ("nearest", "linear"):
        return f"mode {node.get('mode')!r}"
    if transformation not in modes:
        return f"coordinates {transformation!r}"
    if node.get("antialias", 0) or node.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return "antialias or keep_aspect_ratio_policy"
    return ""


def _pool(node: Node) -> str:
    two = _two_axes(node)
    return two or ("more than one output" if len(node.outputs) > 1 else "")


_CHECKS: dict[str, Callable[[Node], str]] = {
    "ArgMax": lambda node: "the last of equals" if node.get("select_last_index", 0) else "",
    "AveragePool": _pool,
    "BatchNormalization": lambda node: "training" if node.get("training_mode", 0) else "",
    "Cast": lambda node: "" if node.get("to") in CASTS else f"to type {node.get('to')}",
    "Conv": _two_axes,
    "ConvTranspose": _two_axes,
    "GatherND": lambda node: "batch_dims" if node.get("batch_dims", 0) else "",
    "Gemm": lambda node: "transA" if node.get("transA", 0) else "",
    "MaxPool": _pool,
    "Mod": lambda node: "fmod" if node.get("fmod", 0) else "",
    "Pad": lambda node: (
        "" if node.get("mode", "constant") in movement.BORDERS else f"mode {node.get('mode')!r}"
    ),
    "Resize": _resize,
    "Upsample": _resize,
}
