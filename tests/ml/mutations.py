"""Small ONNX models, damaged at random: each is refused in our words, or computes something.

Run by itself it goes through as many as it is told to, from a seed, and prints those that fail:

    python tests/ml/mutations.py --seed 1 --count 3000 --engine dala
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LIMIT_S = 5.0
LIMIT_BYTES = 512 << 20
MOST_GIVEN = 1 << 18
"""Elements of an input: a model that declares more is not fed."""
NUMBERS = (0, 1, -1, 2, 3, 7, 255, 4096, 65_537, 2**20, 2**31 - 1, 2**31, 2**40, 2**62, -(2**63))
"""What sizes, axes and counts are changed to."""
KINDS = (1, 2, 3, 6, 7, 9, 10, 11, 16, 0, 8, 99)


def models() -> dict[str, onnx.ModelProto]:
    """Small models of many operators, each by a name."""
    return {name: make() for name, make in _MADE.items()}


def mutated(model: onnx.ModelProto, draw: random.Random) -> bytes:
    """Returns the file of a model with one to three things in it changed."""
    if draw.random() < 0.3:
        return _bytes_changed(model.SerializeToString(), draw)
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        draw.choice(_CHANGES)(changed, draw)
    return changed.SerializeToString()


def attempt(data: bytes, engine: str) -> str:
    """Load a model and feed it what it declares; what came of it, in a word or two."""
    from dala import errors, ml

    try:
        model = ml.gpu.load_model(data, engine=engine)
        given = []
        for item in model.takes:
            axes = item.shape if item.shape is not None else (2, 3)
            shape = tuple(axis if isinstance(axis, int) else 2 for axis in axes)
            if np.prod(shape, dtype=object) > MOST_GIVEN:
                return "unfed"
            given.append(np.ones(shape, item.numpy))
        made = ml.gpu.predict(model, given)
    except errors.InternalError:
        raise
    except errors.DalaError as error:
        if not str(error).strip():
            raise AssertionError("an error without a word") from error
        return type(error).__name__
    for item in made.values() if isinstance(made, dict) else [made]:
        assert isinstance(item, np.ndarray)
        item.tobytes()
    return "computed"


def failures(
    seed: int, first: int, count: int, engine: str, tell: Callable[[str], None] = lambda _: None
) -> Iterator[tuple[str, str]]:
    """Yields the mutations that fail, each by what makes it again, with what was wrong."""
    originals = models()
    names = sorted(originals)
    for number in range(first, first + count):
        draw = random.Random(f"{seed} {number}")
        name = names[number % len(names)]
        data = mutated(originals[name], draw)
        label = f"--seed {seed} --first {number} --count 1 --engine {engine} ({name})"
        tell(label)
        _forget_peak()
        before, start = _resident_bytes("VmRSS"), time.process_time()
        try:
            outcome = attempt(data, engine)
        except Exception:
            yield label, traceback.format_exc(limit=-4)
            continue
        tell(f"  {outcome}")
        took = time.process_time() - start
        more = _resident_bytes("VmHWM") - before
        if took > LIMIT_S or more > LIMIT_BYTES:
            yield label, f"{outcome}, but it took {took:.1f} s and {more / 2**20:.0f} MB"


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _resident_bytes(which: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{which}:")) * 1024


# -- what is changed -------------------------------------------------------------------------------


def _bytes_changed(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(changed))
        changed[place : place + draw.randint(0, 2)] = draw.randbytes(draw.randint(0, 2))
    return bytes(changed)


def _change_attribute(model: onnx.ModelProto, draw: random.Random) -> None:
    held = [item for node in model.graph.node for item in node.attribute]
    if not held:
        return
    item = draw.choice(held)
    if item.ints:
        item.ints[draw.randrange(len(item.ints))] = draw.choice(NUMBERS)
    elif item.HasField("i"):
        item.i = draw.choice(NUMBERS)
    elif item.HasField("f"):
        item.f = draw.choice((0.0, -1.0, 1e30, float("nan"), float("inf"), 2.5))
    elif item.HasField("s"):
        item.s = draw.choice((b"", b"linear", b"reflect", b"nonsense", b"\xff"))
    elif item.HasField("t"):
        _change_tensor(item.t, draw)


def _drop_attribute(model: onnx.ModelProto, draw: random.Random) -> None:
    node = draw.choice(model.graph.node)
    if node.attribute:
        del node.attribute[draw.randrange(len(node.attribute))]


def _change_constant(model: onnx.ModelProto, draw: random.Random) -> None:
    if model.graph.initializer:
        _change_tensor(draw.choice(model.graph.initializer), draw)


def _change_tensor(tensor: TensorProto, draw: random.Random) -> None:
    array = numpy_helper.to_array(tensor).copy()
    what = draw.random()
    if what < 0.6 and array.size:
        place = draw.randrange(array.size)
        with np.errstate(over="ignore", invalid="ignore"):
            number = np.array(draw.choice(NUMBERS), np.int64)
            array.reshape(-1)[place] = number.astype(array.dtype)
    elif what < 0.8:
        array = array.reshape(-1)[: draw.randrange(array.size + 1)]
    else:
        array = array.astype(draw.choice((np.int64, np.float32, np.int32, np.uint8, np.bool_)))
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), tensor.name))


def _change_shape(model: onnx.ModelProto, draw: random.Random) -> None:
    graph = model.graph
    held = [item.type.tensor_type.shape for item in (*graph.input, *graph.output)]
    axes = [axis for shape in held for axis in shape.dim]
    what = draw.random()
    if what < 0.6 and axes:
        draw.choice(axes).dim_value = draw.choice(NUMBERS)
    elif what < 0.8:
        draw.choice(held).dim.add().dim_value = draw.choice(NUMBERS)
    else:
        shape = draw.choice(held)
        del shape.dim[:]


def _change_kind(model: onnx.ModelProto, draw: random.Random) -> None:
    graph = model.graph
    held = [*graph.input, *graph.output]
    draw.choice(held).type.tensor_type.elem_type = draw.choice(KINDS)


def _change_names(model: onnx.ModelProto, draw: random.Random) -> None:
    graph = model.graph
    node = draw.choice(graph.node)
    known = [name for item in graph.node for name in item.output]
    known += [item.name for item in (*graph.input, *graph.initializer)]
    if node.input:
        node.input[draw.randrange(len(node.input))] = draw.choice([*known, ""])


def _change_operator(model: onnx.ModelProto, draw: random.Random) -> None:
    node, other = draw.choice(model.graph.node), draw.choice(model.graph.node)
    node.op_type = draw.choice((other.op_type, "Relu", "Reshape", "Expand", "Tile", "Shape"))


def _change_nodes(model: onnx.ModelProto, draw: random.Random) -> None:
    nodes = model.graph.node
    if draw.random() < 0.5 and len(nodes) > 1:
        del nodes[draw.randrange(len(nodes))]
    else:
        del nodes[draw.randrange(len(nodes))].output[:]


def _change_version(model: onnx.ModelProto, draw: random.Random) -> None:
    model.opset_import[0].version = draw.choice((1, 7, 9, 11, 13, 18, 21, 26))


def _drop_input(model: onnx.ModelProto, draw: random.Random) -> None:
    graph = model.graph
    if draw.random() < 0.5:
        del graph.input[:]
    else:
        names = [*graph.node[0].output, *(item.name for item in graph.initializer)]
        graph.output[0].name = draw.choice([*names, *(item.name for item in graph.input)])


_CHANGES: tuple[Callable[[onnx.ModelProto, random.Random], None], ...] = (
    _change_attribute,
    _change_attribute,
    _drop_attribute,
    _change_constant,
    _change_constant,
    _change_constant,
    _change_shape,
    _change_kind,
    _change_names,
    _change_operator,
    _change_nodes,
    _change_version,
    _drop_input,
)


# -- what is damaged -------------------------------------------------------------------------------


def _made(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, tuple[Any, ...]],
    outputs: dict[str, tuple[Any, ...]],
    constants: dict[str, Any] | None = None,
    kinds: dict[str, int] | None = None,
) -> onnx.ModelProto:
    def declared(shapes: dict[str, tuple[Any, ...]]) -> list[onnx.ValueInfoProto]:
        return [
            helper.make_tensor_value_info(name, (kinds or {}).get(name, TensorProto.FLOAT), shape)
            for name, shape in shapes.items()
        ]

    arrays = {
        name: np.asarray(item, np.float32 if isinstance(item, float) else None)
        for name, item in (constants or {}).items()
    }
    kept = [numpy_helper.from_array(item, name) for name, item in arrays.items()]
    graph = helper.make_graph(nodes, "small", declared(inputs), declared(outputs), kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def _ramp(*shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape)) % 7 - 3).astype(np.float32).reshape(shape)


def _network() -> onnx.ModelProto:
    nodes = [
        _node("Conv", "x w b", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        _node("Clip", "c low high", "r"),
        _node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        _node("ConvTranspose", "p t", "u", kernel_shape=[2, 2], strides=[2, 2]),
        _node("Resize", "u s s", "v", mode="nearest"),
        _node("AveragePool", "v", "q", kernel_shape=[2, 2]),
        _node("GlobalAveragePool", "q", "g"),
        _node("Flatten", "g", "f"),
        _node("Gemm", "f m n", "h", transB=1),
        _node("Softmax", "h", "y", axis=1),
    ]
    nodes[4].input[1] = ""
    weights = {"w": _ramp(4, 3, 3, 3), "b": _ramp(4), "t": _ramp(4, 4, 2, 2)}
    weights |= {"m": _ramp(5, 4), "n": _ramp(5), "low": 0.0, "high": 6.0}
    scales = np.array([1, 1, 2, 2], np.float32)
    return _made(nodes, {"x": (1, 3, 8, 8)}, {"y": (1, 5)}, {**weights, "s": scales})


def _movement() -> onnx.ModelProto:
    nodes = [
        _node("Transpose", "x", "t", perm=[0, 2, 1]),
        _node("Reshape", "t s", "r"),
        _node("Slice", "r a b c d", "l"),
        _node("Concat", "l l", "k", axis=1),
        _node("Pad", "k p", "q"),
        _node("Split", "q n", "u v", axis=1),
        _node("Gather", "u i", "g", axis=1),
        _node("Tile", "g z", "e"),
        _node("Expand", "e o", "f"),
        _node("ReduceSum", "f j", "h", keepdims=0),
        _node("Squeeze", "h j", "m"),
        _node("Unsqueeze", "m j", "y"),
    ]
    numbers = {"s": [2, 12], "a": [1], "b": [9], "c": [1], "d": [2], "p": [0, 1, 0, 1]}
    numbers |= {"n": [5, 5], "i": [0, 2, 4], "z": [1, 2], "o": [2, 6], "j": [0]}
    constants = {name: np.array(value, np.int64) for name, value in numbers.items()}
    made = _made(nodes, {"x": (2, 3, 4)}, {"y": (1, 6)}, constants)
    made.graph.node[10].input.pop()
    return made


def _arithmetic_of_shapes() -> onnx.ModelProto:
    nodes = [
        _node("Shape", "x", "s"),
        _node("Gather", "s zero", "n"),
        _node("Unsqueeze", "n axis", "u"),
        _node("Mul", "u two", "d"),
        _node("ConstantOfShape", "d", "c"),
        _node("Range", "start stop step", "r"),
        _node("Cast", "r", "f", to=1),
        _node("Concat", "u minus", "k", axis=0),
        _node("Reshape", "x k", "v"),
        _node("ReduceMean", "v", "m", axes=[1]),
        _node("Add", "m f", "a"),
        _node("ReduceMax", "c", "q"),
        _node("Add", "a q", "y"),
    ]
    constants = {
        "zero": np.array(0, np.int64),
        "axis": np.array([0], np.int64),
        "two": np.array([2], np.int64),
        "minus": np.array([-1], np.int64),
        "start": np.array(0, np.int64),
        "stop": np.array(3, np.int64),
        "step": np.array(1, np.int64),
    }
    return _made(nodes, {"x": ("n", 3)}, {"y": ("n", 3)}, constants)


def _attention() -> onnx.ModelProto:
    nodes = [
        _node("MatMul", "x q", "a"),
        _node("MatMul", "x k", "b"),
        _node("Transpose", "b", "t", perm=[0, 2, 1]),
        _node("MatMul", "a t", "s"),
        _node("Div", "s root", "d"),
        _node("Softmax", "d", "p", axis=-1),
        _node("MatMul", "p x", "o"),
        _node("ReduceMean", "o", "m", axes=[-1]),
        _node("Sub", "o m", "e"),
        _node("Pow", "e two", "w"),
        _node("Sqrt", "w", "v"),
        _node("Erf", "v", "g"),
        _node("LeakyRelu", "g", "y", alpha=0.1),
    ]
    constants = {"q": _ramp(4, 4), "k": _ramp(4, 4), "root": 2.0, "two": 2.0}
    return _made(nodes, {"x": (1, 3, 4)}, {"y": (1, 3, 4)}, constants)


def _looping() -> onnx.ModelProto:
    def info(name: str, kind: int, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    body = helper.make_graph(
        [_node("Identity", "keep", "go_on"), _node("Add", "carried one", "more")],
        "body",
        [
            info("trip", TensorProto.INT64, ()),
            info("keep", TensorProto.BOOL, ()),
            info("carried", TensorProto.FLOAT, (2,)),
        ],
        [info("go_on", TensorProto.BOOL, ()), info("more", TensorProto.FLOAT, (2,))],
        [numpy_helper.from_array(np.ones(2, np.float32), "one")],
    )
    node = helper.make_node("Loop", ["trips", "yes", "x"], ["y"], body=body)
    constants = {"trips": np.array(5, np.int64), "yes": np.array(True)}
    return _made([node], {"x": (2,)}, {"y": (2,)}, constants)


def _integers() -> onnx.ModelProto:
    nodes = [
        _node("Cast", "x", "i", to=7),
        _node("Add", "i one", "a"),
        _node("Gather", "table a", "g"),
        _node("ArgMax", "g", "m", axis=1),
        _node("Where", "larger m one", "h"),
        _node("Cast", "h", "f", to=1),
        _node("QuantizeLinear", "f scale zero", "q"),
        _node("DequantizeLinear", "q scale zero", "y"),
    ]
    constants = {"one": np.array(1, np.int64), "table": _ramp(8, 4), "scale": 0.5}
    constants |= {"zero": np.array(3, np.uint8), "larger": np.array([[True], [False], [True]])}
    kinds = {"x": TensorProto.INT32}
    return _made(nodes, {"x": (3,)}, {"y": (3, 1)}, constants, kinds)


_MADE: dict[str, Callable[[], onnx.ModelProto]] = {
    "network": _network,
    "movement": _movement,
    "shapes": _arithmetic_of_shapes,
    "attention": _attention,
    "looping": _looping,
    "integers": _integers,
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--engine", default="dala")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--trace", action="store_true", help="say what is tried before it is")
    given = parser.parse_args()
    # So that what asks for far too much fails here, and not the machine.
    resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))
    from dala.gpu import compute
    from dala.ml.models import guarded_run

    guarded_run.LOOPS_LIMIT_S = 1.0
    tell = (lambda label: print(label, flush=True)) if given.trace else (lambda _: None)
    found = 0
    with compute.device(given.device):
        for label, wrong in failures(given.seed, given.first, given.count, given.engine, tell):
            found += 1
            print(f"FAILED {label}\n{wrong}", flush=True)
    print(f"{found} of {given.count} failed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
