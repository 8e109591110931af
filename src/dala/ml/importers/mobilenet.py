"""MobileNetV2 as an ONNX model, from the weights that torchvision trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dala.errors import ModelError

if TYPE_CHECKING:
    import onnx

CLASSES = 1000
SIZE = 224
BLOCKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""The inverted residual blocks: how often wider inside, channels, how many, stride of the first."""

_FIRST_CHANNELS, _LAST_CHANNELS = 32, 1280
_NORM_EPSILON = 1e-5
_NORM_PARTS = ("weight", "bias", "running_mean", "running_var")
_OPSET, _IR_VERSION = 17, 8


def mobilenet_v2(state: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """Returns the model of a state dict of torchvision's `mobilenet_v2`, from `input` to `logits`.

    `input` is f32 (1, 3, 224, 224) and `logits` (1, 1000). Batch normalization is folded into the
    convolutions, in double precision and one element at a time, so that the same weights give the
    same bytes on every machine. Tensors that are missing, too many, or of another shape are a
    ModelError that names them.
    """
    network = _Network(state)
    network.convolve("features.0.0", "features.0.1", (3, _FIRST_CHANNELS), size=3, stride=2)
    channels, index = _FIRST_CHANNELS, 1
    for expansion, made, count, first_stride in BLOCKS:
        for turn in range(count):
            stride = first_stride if turn == 0 else 1
            network.add_block(f"features.{index}.conv", (channels, made), expansion, stride)
            channels, index = made, index + 1
    network.convolve(f"features.{index}.0", f"features.{index}.1", (channels, _LAST_CHANNELS))
    network.classify()
    network.refuse_others()
    return network.model()


class _Network:
    """A chain of layers under construction; `at` is the value that the last one made."""

    def __init__(self, state: Mapping[str, np.ndarray]) -> None:
        self.state = state
        self.used: set[str] = set()
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {
            "zero": np.array(0, np.float32),
            "six": np.array(6, np.float32),
        }
        self.at = "input"

    def convolve(
        self,
        layer: str,
        norm: str,
        channels: tuple[int, int],
        *,
        size: int = 1,
        stride: int = 1,
        group: int = 1,
        clip: bool = True,
    ) -> None:
        """Add a convolution with its normalization, clipped to 0..6 unless told otherwise."""
        taken, made = channels
        weight = self._tensor(f"{layer}.weight", (made, taken // group, size, size))
        gamma, beta, mean, variance = (self._tensor(f"{norm}.{p}", (made,)) for p in _NORM_PARTS)
        self.used.add(f"{norm}.num_batches_tracked")
        if not (variance + _NORM_EPSILON > 0).all():
            raise ModelError(f"{norm}.running_var has values below 0: no variance can be.")
        scale = gamma / np.sqrt(variance + _NORM_EPSILON)
        self._keep(f"{layer}.weight", weight * scale[:, None, None, None])
        self._keep(f"{layer}.bias", beta - mean * scale)
        self._add(
            "Conv",
            layer,
            [self.at, f"{layer}.weight", f"{layer}.bias"],
            dilations=[1, 1],
            group=group,
            kernel_shape=[size, size],
            pads=[size // 2] * 4,
            strides=[stride, stride],
        )
        if clip:
            self._add("Clip", f"{layer}.clip", [self.at, "zero", "six"])

    def add_block(self, block: str, channels: tuple[int, int], expansion: int, stride: int) -> None:
        """Add an inverted residual block: wider, by channel, narrower, and the way around it."""
        taken, made = channels
        wide, before, part = taken * expansion, self.at, 0
        if expansion != 1:
            self.convolve(f"{block}.0.0", f"{block}.0.1", (taken, wide))
            part = 1
        by_channel = f"{block}.{part}"
        self.convolve(
            f"{by_channel}.0", f"{by_channel}.1", (wide, wide), size=3, stride=stride, group=wide
        )
        self.convolve(f"{block}.{part + 1}", f"{block}.{part + 2}", (wide, made), clip=False)
        if stride == 1 and taken == made:
            self._add("Add", f"{block}.add", [before, self.at])

    def classify(self) -> None:
        """Add the mean of each channel, and from these the logits."""
        weight = self._tensor("classifier.1.weight", (CLASSES, _LAST_CHANNELS))
        self._keep("classifier.1.weight", weight)
        self._keep("classifier.1.bias", self._tensor("classifier.1.bias", (CLASSES,)))
        self._add("GlobalAveragePool", "pool", [self.at])
        self._add("Flatten", "flatten", [self.at], axis=1)
        inputs = [self.at, "classifier.1.weight", "classifier.1.bias"]
        self._add("Gemm", "logits", inputs, transB=1)

    def refuse_others(self) -> None:
        """Refuse tensors that no layer has asked for."""
        others = sorted(self.state.keys() - self.used)
        if others:
            raise ModelError(
                f"the state dict has {len(others)} tensors that MobileNetV2 does not: "
                f"{_some(others)}. Is it of another model?"
            )

    def model(self) -> onnx.ModelProto:
        from onnx import TensorProto, helper, numpy_helper

        graph = helper.make_graph(
            self.nodes,
            "mobilenet_v2",
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, 3, SIZE, SIZE])],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, CLASSES])],
            [numpy_helper.from_array(values, name) for name, values in self.constants.items()],
        )
        opsets = [helper.make_opsetid("", _OPSET)]
        # A version in it would make other bytes of the same weights.
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="dala"
        )

    def _tensor(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        if name not in self.state:
            raise ModelError(
                f"the state dict has no tensor {name!r}, which MobileNetV2 needs: it has "
                f"{_some(sorted(self.state)) or 'none at all'}."
            )
        self.used.add(name)
        found = np.asarray(self.state[name])
        if found.shape != shape or found.dtype.kind != "f":
            raise ModelError(
                f"the tensor {name!r} of the state dict is {found.shape} of {found.dtype}; "
                f"MobileNetV2 has {shape} of float32 there."
            )
        values = found.astype(np.float64)
        if not np.isfinite(values).all():
            raise ModelError(f"the tensor {name!r} of the state dict has infinities or NaN in it.")
        return values

    def _keep(self, name: str, values: np.ndarray) -> None:
        with np.errstate(over="ignore"):
            kept = np.ascontiguousarray(values, dtype=np.float32)
        if not np.isfinite(kept).all():
            raise ModelError(f"{name!r} is too large for float32 once its normalization is folded.")
        self.constants[name] = kept

    def _add(self, operator: str, name: str, inputs: list[str], **attributes: Any) -> None:
        from onnx import helper

        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        self.at = name


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
