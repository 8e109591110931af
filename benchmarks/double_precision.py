"""Models run in f64, by NumPy: what all their f32 runs are compared with.

The evaluator of the onnx package runs the graph; what it computes element by element in Python,
convolutions, pools and resizing, is computed here by whole arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

FLOAT, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE


def run_in_f64(data: bytes, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the outputs of a model whose constants and inputs are f64 instead of f32."""
    model = widened(onnx.load_model_from_string(data))
    ops = [Conv, ConvTranspose, Resize, AveragePool, MaxPool]
    evaluator = ReferenceEvaluator(model, new_ops=ops)
    given = {
        name: item.astype(np.float64) if item.dtype == np.float32 else item
        for name, item in inputs.items()
    }
    names = [item.name for item in model.graph.output]
    return dict(zip(names, evaluator.run(names, given), strict=True))


def widened(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with f64 wherever it says f32; sizes and scales of Resize stay what they are."""
    graph = model.graph
    scales = {name for node in graph.node if node.op_type == "Resize" for name in node.input[1:]}
    for tensor in graph.initializer:
        if tensor.data_type == FLOAT and tensor.name not in scales:
            _widen(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t") and attribute.t.data_type == FLOAT:
                _widen(attribute.t)
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == FLOAT:
                attribute.i = DOUBLE
    for value in (*graph.input, *graph.output):
        if value.type.tensor_type.elem_type == FLOAT:
            value.type.tensor_type.elem_type = DOUBLE
    del graph.value_info[:]
    return model


def _widen(tensor: TensorProto) -> None:
    array = numpy_helper.to_array(tensor).astype(np.float64)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _windows(
    x: np.ndarray, kernel: Any, strides: Any, pads: Any, dilations: Any, fill: float
) -> np.ndarray:
    """The windows of the last two axes: (n, c, rows, columns, kh, kw)."""
    top, left, bottom, right = pads
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    reach = [(size - 1) * by + 1 for size, by in zip(kernel, dilations, strict=True)]
    seen = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(2, 3))
    return seen[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]


def _pads(x: np.ndarray, kernel: Any, strides: Any, dilations: Any, auto: str, pads: Any) -> Any:
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        return pads or [0, 0, 0, 0]
    each = []
    for size, taps, step, by in zip(x.shape[2:], kernel, strides, dilations, strict=True):
        total = max((-(-size // step) - 1) * step + (taps - 1) * by + 1 - size, 0)
        small = total // 2
        each.append((small, total - small) if auto == "SAME_UPPER" else (total - small, small))
    return [each[0][0], each[1][0], each[0][1], each[1][1]]


class Conv(OpRun):
    """A convolution of two axes."""

    def _run(  # type: ignore[no-untyped-def]
        self,
        x,
        w,
        b=None,
        auto_pad="NOTSET",
        dilations=None,
        group=1,
        kernel_shape=None,
        pads=None,
        strides=None,
    ):
        kernel, by, step = w.shape[2:], dilations or [1, 1], strides or [1, 1]
        seen = _windows(x, kernel, step, _pads(x, kernel, step, by, auto_pad, pads), by, 0.0)
        n, channels, rows, columns = seen.shape[:4]
        parts = seen.reshape(n, group, channels // group, rows, columns, -1)
        weights = w.reshape(group, w.shape[0] // group, channels // group, -1)
        made = np.stack(
            [
                np.tensordot(weights[g], parts[:, g], axes=([1, 2], [1, 4])).swapaxes(0, 1)
                for g in range(group)
            ],
            axis=1,
        ).reshape(n, w.shape[0], rows, columns)
        return (made if b is None else made + b.reshape(1, -1, 1, 1),)


class ConvTranspose(OpRun):
    """A transposed convolution whose windows do not overlap: strides are the kernel's size."""

    def _run(self, x, w, b=None, strides=None, kernel_shape=None, group=1, **_):  # type: ignore[no-untyped-def]
        assert list(strides) == list(w.shape[2:])
        assert group == 1
        made = np.einsum("nchw,cokl->nohkwl", x, w)
        n, channels, rows, kh, columns, kw = made.shape
        made = made.reshape(n, channels, rows * kh, columns * kw)
        return (made if b is None else made + b.reshape(1, -1, 1, 1),)


class AveragePool(OpRun):
    """A mean over windows that lie inside."""

    def _run(self, x, kernel_shape=None, strides=None, pads=None, **_):  # type: ignore[no-untyped-def]
        assert not any(pads or [])
        seen = _windows(x, kernel_shape, strides or [1, 1], [0] * 4, [1, 1], 0.0)
        return (seen.mean(axis=(4, 5)),)


class MaxPool(OpRun):
    """The largest of each window."""

    def _run(self, x, kernel_shape=None, strides=None, pads=None, auto_pad="NOTSET", **_):  # type: ignore[no-untyped-def]
        step = strides or [1, 1]
        around = _pads(x, kernel_shape, step, [1, 1], auto_pad, pads)
        return (_windows(x, kernel_shape, step, around, [1, 1], -np.inf).max(axis=(4, 5)),)


class Resize(OpRun):
    """Linear resizing, one axis after another."""

    def _run(self, x, roi=None, scales=None, sizes=None, **options):  # type: ignore[no-untyped-def]
        assert options["mode"] == "linear"
        if sizes is None or not len(sizes):
            sizes = [int(size * by) for size, by in zip(x.shape, scales, strict=True)]
        for axis, (size, made) in enumerate(zip(x.shape, sizes, strict=True)):
            if size != made:
                weights = _weights(size, int(made), options["coordinate_transformation_mode"])
                x = np.moveaxis(np.tensordot(weights, x, axes=(1, axis)), 0, axis)
        return (x,)


def _weights(size: int, made: int, mode: str) -> np.ndarray:
    """What each of the elements that are made takes of each that is there."""
    at = np.arange(made, dtype=np.float64)
    if mode == "align_corners":
        at = at * (size - 1) / max(made - 1, 1)
    elif mode == "asymmetric":
        at = at * size / made
    else:
        at = (at + 0.5) * size / made - 0.5
    at = np.clip(at, 0, size - 1)
    below = np.minimum(np.floor(at).astype(int), size - 1)
    above = np.minimum(below + 1, size - 1)
    found = np.zeros((made, size))
    rows = np.arange(made)
    np.add.at(found, (rows, below), 1 - (at - below))
    np.add.at(found, (rows, above), at - below)
    return found
