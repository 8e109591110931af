"""Recurrent layers: LSTM, GRU and RNN, one step after another, in both directions.

What inputs contribute to all steps is one product; each step is a product with the state before
it, and an elementwise kernel for each state that it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from dala.base.record import record
from dala.errors import ModelError
from dala.kernels.base.builtin import written
from dala.kernels.tensor.elementwise import fill
from dala.kernels.tensor.gathering import concat
from dala.ml.executor.activations import Activation, activations_of
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.sizes import require
from dala.ml.executor.steps import Steps
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
USUAL = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@record
class Layer:
    """One direction of a recurrent layer, where it is laid out."""

    context: NodeContext
    steps: Steps
    direction: int
    size: int
    gates: int
    activations: Sequence[Activation]
    inputs: Buffer
    """What inputs contribute: (places, batch, gates · size), with the biases."""
    lengths: Buffer | None

    def weights(self, index: int, first: int, count: int) -> Buffer:
        """Some gates of weights, as a matrix that states or inputs are multiplied with."""
        return gates_of(self.context, self.steps, index, self.direction, first, count)

    def run(self, text: str, names: str, given: Sequence[Buffer], step: int) -> Buffer:
        """What a kernel makes of a state, (batch, size); the last of those given is the one before.

        Where a sequence has ended, its state stays what it was.
        """
        lengths = [] if self.lengths is None else [self.lengths]
        kernel = _step_kernel(text, names, self.lengths is not None)
        shape = (self.inputs.shape[1], self.size)
        return self.steps.run(kernel, [*given, *lengths], shape, {"t": step})


Run = Callable[[Layer, Buffer, Buffer | None], tuple[list[Buffer], Buffer | None]]
"""The states after each step, and the last cells, from those before the first."""


def recurrent(run: Run) -> Callable[[NodeContext], Iterable[Stage]]:
    """Returns what lays out a layer, given what lays out one direction of it."""

    def expand(context: NodeContext) -> Iterable[Stage]:
        return _layer(context, run)

    return expand


def _layer(context: NodeContext, run: Run) -> Iterable[Stage]:
    node, steps, x = context.node, Steps(), context.input()
    require(node, len(x.shape) == 3, f"its input is {x.shape}, not of three axes")
    turned = bool(node.get("layout", 0))
    if turned:
        x = steps.transpose(x, (1, 0, 2))
    count, batch, taken = x.shape
    weight, state = context.shape(1), context.shape(2)
    how, gates = node.get("direction", "forward"), GATES[node.op]
    if how not in DIRECTIONS:
        raise ModelError(f"{node}: direction is {how!r}, not one of {', '.join(DIRECTIONS)}.")
    directions, size = len(DIRECTIONS[how]), state[-1] if state else 0
    fits = weight == (directions, gates * size, taken) and state == (directions, gates * size, size)
    require(node, fits and count > 0, f"x is {x.shape}, weights are {weight} and {state}")
    bias = context.input(3) if node.has(3) else None
    fits = bias is None or bias.shape == (directions, 2 * gates * size)
    require(node, fits, f"biases are {bias and bias.shape}, not for {gates} gates of {size}")
    lengths = context.input(4) if node.has(4) else None
    fits = lengths is None or lengths.shape == (batch,)
    require(node, fits, f"lengths are {lengths and lengths.shape}, not ({batch},)")
    activations = activations_of(node, USUAL[node.op], directions)
    each = len(USUAL[node.op])
    made: list[tuple[Buffer, Buffer, Buffer | None]] = []
    for direction, backward in enumerate(DIRECTIONS[how]):
        by = gates_of(context, steps, 1, direction, 0, gates)
        rows = steps.multiply(reshaped(x, (count * batch, taken)), by)
        inputs = reshaped(rows, (count, batch, gates * size))
        if bias is not None:
            linear = node.op == "GRU" and bool(node.get("linear_before_reset", 0))
            joined = gates - 1 if linear else gates
            kernel = _bias_kernel(direction, joined * size, gates * size)
            row = steps.run(kernel, [bias], (gates * size,))
            inputs = steps.elementwise("x0 + x1", inputs, row)
        if backward:
            inputs = _turned_back(steps, inputs, lengths)
        own = activations[direction * each : (direction + 1) * each]
        layer = Layer(context, steps, direction, size, gates, own, inputs, lengths)
        shape = (batch, size)
        states, cell = run(
            layer,
            _first(context, steps, 5, direction, shape),
            _first(context, steps, 6, direction, shape) if node.op == "LSTM" else None,
        )
        whole = (count, batch, size)
        parts = [reshaped(item, (1, *shape)) for item in states]
        found = steps.run(concat, parts, whole, {"axis": 0}) if len(parts) > 1 else parts[0]
        if lengths is not None:
            found = steps.run(_ending_kernel(), [reshaped(found, whole), lengths], whole)
        if backward:
            found = _turned_back(steps, reshaped(found, whole), lengths)
        made.append((reshaped(found, whole), states[-1], cell))
    _give_out(context, steps, made, turned=turned)
    return steps


def gates_of(
    context: NodeContext, steps: Steps, index: int, direction: int, first: int, count: int
) -> Buffer:
    """Some gates of weights (directions, gates · size, inputs), transposed."""
    size = context.shape(2)[-1]
    start, stop = first * size, (first + count) * size
    if context.is_constant(index):
        role = ("gates", index, direction, first, count)
        return context.weight(index, role, lambda given: given[direction, start:stop].T)
    text = f"k, j = dala.position(2)\n    return w[{direction}, {start} + j, k]"
    kernel = written("gates", f"def gates(w):\n    {text}")
    return steps.run(kernel, [context.input(index)], (context.shape(index)[-1], stop - start))


def _first(
    context: NodeContext, steps: Steps, index: int, direction: int, shape: tuple[int, int]
) -> Buffer:
    """The state before the first step: what is given, or zeros."""
    node = context.node
    if not node.has(index):
        return steps.run(fill, [], shape, {"value": 0})
    given = context.input(index)
    directions = len(DIRECTIONS[node.get("direction", "forward")])
    turned = bool(node.get("layout", 0))
    wanted = (shape[0], directions, shape[1]) if turned else (directions, *shape)
    require(node, given.shape == wanted, f"a first state is {given.shape}, not {wanted}")
    at = f"i, {direction}, j" if turned else f"{direction}, i, j"
    text = f"i, j = dala.position(2)\n    return x[{at}]"
    return steps.run(written("first", f"def first(x):\n    {text}"), [given], shape)


def _give_out(
    context: NodeContext,
    steps: Steps,
    made: Sequence[tuple[Buffer, Buffer, Buffer | None]],
    *,
    turned: bool,
) -> None:
    """All states, the last ones, and the last cells, where they are wanted."""
    node, many = context.node, len(made)
    count, batch, size = made[0][0].shape
    for index in range(len(node.outputs)):
        if not node.outputs[index]:
            continue
        parts = [item for one in made if (item := one[index]) is not None]
        inner = (count, many, batch, size) if index == 0 else (many, batch, size)
        axis, each = len(inner) - 3, (*inner[:-3], 1, batch, size)
        order = (2, 0, 1, 3) if index == 0 else (1, 0, 2)
        shape = tuple(inner[place] for place in order) if turned else inner
        out = context.output(shape, parts[0].scalar, index)
        seen = [reshaped(item, each) for item in parts]
        if not turned:
            steps.run(concat, seen, inner, {"axis": axis}, into=out)
            continue
        joined = seen[0] if many == 1 else steps.run(concat, seen, inner, {"axis": axis})
        steps.transpose(joined, order, into=out)


def _turned_back(steps: Steps, x: Buffer, lengths: Buffer | None) -> Buffer:
    """Sequences from their last place to their first."""
    given = [x] if lengths is None else [x, lengths]
    return steps.run(_turning_kernel(lengths is not None), given, x.shape)


# -- kernels ---------------------------------------------------------------------------------------


@cache
def _step_kernel(text: str, names: str, has_lengths: bool) -> Kernel:
    *_, before = names.split(", ")
    lines = ["i, j = dala.position(2)", *text.split("\n")]
    if has_lengths:
        lines.append(f"made = made if t < lengths[i] else {before}[i, j]")
    given = f"{names}, lengths" if has_lengths else names
    lines.append("return made")
    return written("step", f"def step({given}, t: dala.s32):\n    " + "\n    ".join(lines))


@cache
def _bias_kernel(direction: int, joined: int, gates: int) -> Kernel:
    """A kernel for the biases of inputs, with those of states for the first gates."""
    lines = [
        "(j,) = dala.position(1)",
        f"both = b[{direction}, j] + b[{direction}, {gates} + j]",
        f"return both if j < {joined} else b[{direction}, j]",
    ]
    return written("biases", "def biases(b):\n    " + "\n    ".join(lines))


@cache
def _turning_kernel(has_lengths: bool) -> Kernel:
    lines = ["t, i, j = dala.position(3)"]
    if has_lengths:
        lines.append("return x[lengths[i] - 1 - t, i, j] if t < lengths[i] else 0.0")
        return written("turn", "def turn(x, lengths):\n    " + "\n    ".join(lines))
    lines.append("return x[x.shape[0] - 1 - t, i, j]")
    return written("turn", "def turn(x):\n    " + "\n    ".join(lines))


@cache
def _ending_kernel() -> Kernel:
    text = "t, i, j = dala.position(3)\n    return x if t < lengths[i] else 0.0"
    return written("end", f"def end(x, lengths):\n    {text}")
