"""An ONNX graph that grows node by node, in which every shape is known and constants are folded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.checker import ValidationError
from onnx.reference import ReferenceEvaluator
from onnx.shape_inference import InferenceError, infer_node_outputs

from dala.errors import ModelError

OPSET = 17
IR_VERSION = 8
MOST_ELEMENTS = 2**31 - 1
MOST_FOLDED = 2**24
MOST_FOLDED_IN_ALL = 2**27

# What gives the same bits on every machine: the converted model's hash depends on it.
FOLDED = frozenset(
    {
        *("Abs", "Add", "And", "Cast", "Ceil", "Concat", "Div", "Equal", "Expand"),
        *(
            "Floor",
            "Gather",
            "GatherND",
            "Greater",
            "GreaterOrEqual",
            "Less",
            "LessOrEqual",
            "Max",
            "Min",
        ),
        *("Mod", "Mul", "Neg", "Not", "Or", "Pad", "Range", "Reshape", "Slice"),
        *("Split", "Sqrt", "Sub", "Tile", "Transpose", "Where"),
    }
)
CODES = {
    **{"float32": TensorProto.FLOAT, "int32": TensorProto.INT32, "int64": TensorProto.INT64},
    **{"uint8": TensorProto.UINT8, "bool": TensorProto.BOOL},
}
NAMES = {int(code): name for name, code in CODES.items()}
Shape = tuple[int, ...]


class OnnxGraph:
    """Nodes and constants, by the names of what they give; in the end only what is used is kept."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._types: dict[str, tuple[str, Shape]] = {}
        self._arrays: dict[str, np.ndarray] = {}
        self._inputs: list[str] = []
        self._folded_elements = 0

    def shape(self, name: str) -> Shape:
        """Returns the sizes of what is called that."""
        return self._types[name][1]

    def dtype(self, name: str) -> str:
        """Returns the dtype of what is called that, as NumPy calls it."""
        return self._types[name][0]

    def array(self, name: str) -> np.ndarray | None:
        """Returns the values of what is called that, if it is constant."""
        return self._arrays.get(name)

    def input(self, name: str, dtype: str, shape: Shape) -> str:
        """Returns the name of a new input of the model."""
        self._inputs.append(self._declare(name, dtype, shape))
        return self._inputs[-1]

    def constant(self, array: np.ndarray, hint: str) -> str:
        """Returns the name of a new constant."""
        name = self._declare(hint, array.dtype.name, array.shape)
        self._arrays[name] = array
        return name

    def add(
        self, op: str, inputs: Sequence[str], hint: str, count: int = 1, **attrs: Any
    ) -> list[str]:
        """The names of what a new node gives; constants where all that it takes is constant."""
        node = helper.make_node(op, inputs, [f"{hint}#{index}" for index in range(count)], **attrs)
        results = self._inferred(node)
        arrays = self._folded(node, results)
        if arrays is not None:
            return [self.constant(array, hint) for array in arrays]
        names = [self._declare(hint, *result) for result in results]
        del node.output[:]
        node.output.extend(names)
        node.name = names[0]
        self._nodes.append(node)
        return names

    def finish(self, outputs: Sequence[tuple[str, str]], name: str) -> onnx.ModelProto:
        """The model that gives these under those names: pairs of public name and inner name."""
        public = self._published(outputs)
        used = {inner for _, inner in public}
        kept = []
        for node in reversed(self._nodes):
            if used.intersection(node.output):
                used.update(node.input)
                kept.append(node)
        constants = [each for each in self._arrays if each in used]
        graph = helper.make_graph(
            kept[::-1],
            name,
            [self._value(each) for each in self._inputs],
            [self._value(inner, label) for label, inner in public],
            [numpy_helper.from_array(self._arrays[each], each) for each in constants],
        )
        _rename(graph, {inner: label for label, inner in public if label != inner})
        return helper.make_model(
            graph,
            producer_name="dala",
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid("", OPSET)],
        )

    def _published(self, outputs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """The outputs, each made by a node of its own, so that it can be called as it should."""
        seen: set[str] = set()
        public = []
        for label, inner in outputs:
            made = inner
            if inner in self._inputs or inner in self._arrays or inner in seen:
                (made,) = self.add("Identity", [inner], label)
            seen.add(made)
            public.append((label, made))
        return public

    def _declare(self, hint: str, dtype: str, shape: Shape) -> str:
        if math.prod(shape) > MOST_ELEMENTS:
            raise ModelError(
                f"its result has the shape {shape}, {math.prod(shape):,} elements, but at most "
                f"{MOST_ELEMENTS:,} can be held."
            )
        name, suffix = hint, 1
        while name in self._types:
            suffix += 1
            name = f"{hint}_{suffix}"
        self._types[name] = dtype, shape
        return name

    def _inferred(self, node: onnx.NodeProto) -> list[tuple[str, Shape]]:
        given = [name for name in node.input if name]
        types = {
            name: helper.make_tensor_type_proto(CODES[self.dtype(name)], self.shape(name))
            for name in given
        }
        # Only sizes, axes and the like say something about shapes: weights are not passed around.
        data = {
            name: numpy_helper.from_array(self._arrays[name], name)
            for name in given
            if name in self._arrays and self._arrays[name].size <= 64
        }
        try:
            inferred = infer_node_outputs(
                onnx.defs.get_schema(node.op_type, OPSET),
                node,
                types,
                data,
                opset_imports=[helper.make_opsetid("", OPSET)],
                ir_version=IR_VERSION,
            )
        except (InferenceError, ValidationError) as error:
            shapes = ", ".join(f"{self.dtype(name)} {self.shape(name)}" for name in given)
            raise ModelError(f"its inputs ({shapes}) do not fit each other: {error}") from error
        return [self._known(inferred.get(name)) for name in node.output]

    def _known(self, inferred: onnx.TypeProto | None) -> tuple[str, Shape]:
        tensor = inferred.tensor_type if inferred is not None else None
        if tensor is None or not tensor.HasField("shape"):
            raise ModelError("the shape of its result depends on values that are only known later.")
        if not all(dim.HasField("dim_value") and dim.dim_value >= 0 for dim in tensor.shape.dim):
            raise ModelError("the size of its result depends on values that are only known later.")
        return NAMES[tensor.elem_type], tuple(dim.dim_value for dim in tensor.shape.dim)

    def _folded(
        self, node: onnx.NodeProto, results: list[tuple[str, Shape]]
    ) -> list[np.ndarray] | None:
        if node.op_type not in FOLDED or not all(
            name in self._arrays for name in node.input if name
        ):
            return None
        elements = sum(math.prod(shape) for _, shape in results)
        if elements > min(MOST_FOLDED, MOST_FOLDED_IN_ALL - self._folded_elements):
            return None  # a small file is not to become a large one
        self._folded_elements += elements
        graph = helper.make_graph(
            [node],
            "folded",
            [self._value(name) for name in dict.fromkeys(node.input) if name],
            [
                helper.make_tensor_value_info(name, CODES[dtype], shape)
                for name, (dtype, shape) in zip(node.output, results, strict=True)
            ],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        feeds = {name: self._arrays[name] for name in node.input if name}
        with np.errstate(all="ignore"):
            arrays = ReferenceEvaluator(model).run(None, feeds)
        return [
            np.ascontiguousarray(array, dtype).reshape(shape)
            for array, (dtype, shape) in zip(arrays, results, strict=True)
        ]

    def _value(self, name: str, label: str | None = None) -> onnx.ValueInfoProto:
        dtype, shape = self._types[name]
        return helper.make_tensor_value_info(label or name, CODES[dtype], shape)


def _rename(graph: onnx.GraphProto, names: dict[str, str]) -> None:
    """Give results their public names, and whatever has such a name by chance another one."""
    taken = set(names.values())
    inner = {value.name for value in graph.input}
    names = dict(names)
    for node in graph.node:
        for name in node.output:
            if name in taken and name not in names:
                names[name] = f"{name}#inner"
    for tensor in graph.initializer:
        if tensor.name in taken:
            tensor.name = names[tensor.name] = f"{tensor.name}#inner"
    clash = inner & taken
    if clash:
        raise ModelError(f"{sorted(clash)[0]!r} is the name of an input and of an output.")
    for node in graph.node:
        for place, name in enumerate(node.input):
            node.input[place] = names.get(name, name)
        for place, name in enumerate(node.output):
            node.output[place] = names.get(name, name)
