"""Parts of a model that are models of their own: some of its nodes, fed with known values."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from dala.base.record import changed, record
from dala.errors import ModelError
from dala.ml.executor.operators import OPERATORS
from dala.ml.onnx.contents import Contents, Node
from dala.ml.onnx.signature import Tensor

Values = Mapping[str, np.ndarray]
FROM_SHAPES = ("Constant", "Shape", "Size")
"""Operators whose results are known before a model runs."""
MOST_TOGETHER = 12
"""Nodes of a region that are tried together."""


@record
class Subgraph:
    """Nodes by their numbers in the model, what goes into them, and what comes out."""

    contents: Contents
    numbers: tuple[int, ...]
    inputs: Mapping[str, np.ndarray]
    """By name; known values are among the constants of the contents."""

    @property
    def operators(self) -> set[str]:
        return {node.op for node in self.contents.nodes}


class Parts:
    """The parts of one model, whose values are known for some inputs."""

    def __init__(self, contents: Contents, values: Values) -> None:
        self.contents = contents
        self.values = values
        self.maker = {
            name: i for i, node in enumerate(contents.nodes) for name in node.outputs if name
        }
        self._users: dict[str, int] = {}
        for node in contents.nodes:
            for name in filter(None, node.inputs):
                self._users[name] = self._users.get(name, 0) + 1
        for item in contents.outputs:
            self._users[item.name] = self._users.get(item.name, 0) + 1
        self.known = self._known()

    def _known(self) -> set[str]:
        """The values that follow from constants and shapes alone."""
        found = {*self.contents.constants, ""}
        for node in self.contents.nodes:
            if node.op in FROM_SHAPES or found.issuperset(node.inputs):
                found.update(node.outputs)
        return found

    def of(self, numbers: Iterable[int]) -> Subgraph:
        """Returns these nodes as a model, fed with the values of the whole; the last gives out."""
        chosen = tuple(sorted(numbers))
        nodes = tuple(self.contents.nodes[number] for number in chosen)
        made = {name for node in nodes for name in node.outputs}
        needed = dict.fromkeys(name for node in nodes for name in node.inputs if name)
        outside = [name for name in needed if name not in made]
        constants = {
            name: self.contents.constants.get(name, self.values.get(name))
            for name in outside
            if name in self.known
        }
        inputs = {name: _storable(self.values[name]) for name in outside if name not in self.known}
        last = [name for name in nodes[-1].outputs if name in self.values]
        contents = changed(
            self.contents,
            nodes=nodes,
            constants={name: item for name, item in constants.items() if item is not None},
            inputs=tuple(Tensor(name, item.shape, item.dtype) for name, item in inputs.items()),
            outputs=tuple(
                Tensor(name, self.values[name].shape, self.values[name].dtype) for name in last
            ),
        )
        return Subgraph(contents, chosen, inputs)

    def region(self, number: int) -> tuple[int, ...]:
        """The nodes that may be computed by one kernel together with this one, itself last.

        These are what it needs of values that nobody else uses, as far as it goes element by
        element, and one more node before that, such as a convolution.
        """
        found = {number}
        waiting = [number]
        while waiting and len(found) < MOST_TOGETHER:
            node = self.contents.nodes[waiting.pop()]
            operator = OPERATORS.get(node.op)
            if operator is None or operator.write is None:
                continue
            for name in node.inputs:
                before = self.maker.get(name)
                if before is not None and name not in self.known and self._users[name] == 1:
                    found.add(before)
                    waiting.append(before)
        return tuple(sorted(found))


def _storable(value: np.ndarray) -> np.ndarray:
    """Returns integers of 64 bits as s32, where they fit, as the engine holds them."""
    if value.dtype != np.int64 or np.abs(value).max(initial=0) >= 2**31:
        return value
    return value.astype(np.int32)


def write_model(path: Path, whole: bytes, part: Subgraph, values: Values) -> None:
    """Writes a part of a model as an ONNX file, and what it is fed with beside it, as .npz."""
    try:
        from onnx import ModelProto, ValueInfoProto, helper, numpy_helper
    except ImportError as error:
        raise ModelError(
            "a standalone model is written by onnx, which is not installed: pip install "
            "'dala-gpu[ml]'."
        ) from error
    read = ModelProto.FromString(whole)
    wanted = {name for node in part.contents.nodes for name in node.outputs if name}
    nodes = [node for node in read.graph.node if wanted & set(node.output)]

    def declared(names: Sequence[str]) -> list[ValueInfoProto]:
        kind = helper.np_dtype_to_tensor_dtype
        return [
            helper.make_tensor_value_info(name, kind(values[name].dtype), values[name].shape)
            for name in names
        ]

    graph = helper.make_graph(
        nodes,
        "part",
        declared([*part.inputs]),
        declared([item.name for item in part.contents.outputs]),
        [numpy_helper.from_array(item, name) for name, item in part.contents.constants.items()],
    )
    made = helper.make_model(
        graph, opset_imports=list(read.opset_import), functions=list(read.functions)
    )
    made.ir_version = read.ir_version
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(made.SerializeToString())
    # Not by np.savez, to which a name such as "file" would be an argument.
    with zipfile.ZipFile(path.with_suffix(".npz"), "w") as archive:
        for name in part.inputs:
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, np.asarray(values[name], order="C"))


def label(node: Node) -> str:
    """Returns what a node is called: by its name, or by what it makes."""
    return node.name or next(filter(None, node.outputs), "?")
