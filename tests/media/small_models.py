"""Models that tests make themselves: small, with answers that can be told from the image."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

MASK_SIZE = 256


def write_bright_mask(path: Path) -> Path:
    """A model like selfie_segmentation: a pixel is of a person as far as it is bright."""
    return _written(
        path,
        [helper.make_node("ReduceMean", ["image"], ["mask"], axes=[3], keepdims=1)],
        [1, MASK_SIZE, MASK_SIZE, 3],
        {"mask": [1, MASK_SIZE, MASK_SIZE, 1]},
    )


def write_bright_class(path: Path) -> Path:
    """A model like mobilenet_v2, sure of class 1 where the image is bright, else of class 0."""
    logits = np.full((1, 1000), -100, np.float32)
    bright, dark = logits.copy(), logits.copy()
    bright[0, 1], dark[0, 0] = 100, 100
    nodes = [
        helper.make_node("ReduceMean", ["image"], ["mean"], keepdims=0),
        helper.make_node("Greater", ["mean", "zero"], ["is_bright"]),
        helper.make_node("Where", ["is_bright", "bright", "dark"], ["logits"]),
    ]
    given = {"bright": bright, "dark": dark, "zero": np.array(0, np.float32)}
    return _written(path, nodes, [1, 3, 224, 224], {"logits": [1, 1000]}, given)


def _written(
    path: Path,
    nodes: list,
    takes: list[int],
    gives: dict[str, list[int]],
    given: dict[str, np.ndarray] | None = None,
) -> Path:
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, takes)],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in gives.items()
        ],
        [numpy_helper.from_array(array, name) for name, array in (given or {}).items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    path.write_bytes(
        helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    )
    return path
