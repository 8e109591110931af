"""What one step of an LSTM, a GRU or an RNN computes."""

from __future__ import annotations

from dala.base.record import changed
from dala.ml.executor.recurrent import Layer
from dala.ml.executor.sizes import require
from dala.runtime.buffers.buffer import Buffer

States = tuple[list[Buffer], Buffer | None]


def rnn(layer: Layer, state: Buffer, _: Buffer | None) -> States:
    """RNN: an activation of inputs and state."""
    by, (activation,) = layer.weights(2, 0, 1), layer.activations
    text = f"v = x[t, i, j] + z[i, j]\nmade = {activation.of('v')}"
    found = []
    for step in range(layer.inputs.shape[0]):
        product = layer.steps.multiply(state, by)
        state = layer.run(text, "x, z, h", [layer.inputs, product, state], step)
        found.append(state)
    return found, None


def gru(layer: Layer, state: Buffer, _: Buffer | None) -> States:
    """GRU: a state that is kept in part, by an update gate, and forgotten, by a reset gate."""
    node, size = layer.context.node, layer.size
    inner, outer = layer.activations
    gates = [
        f"v0 = x[t, i, j] + z[i, j]\nupdate = {inner.of('v0')}",
        f"v1 = x[t, i, {size} + j] + z[i, {size} + j]\nreset = {inner.of('v1')}",
    ]
    ended = f"made = (1.0 - update) * {outer.of('v2')} + update * h[i, j]"
    found = []
    if node.get("linear_before_reset", 0):
        by = layer.weights(2, 0, 3)
        names, more, own = "x, z, h", "", []
        if node.has(3):
            names, own = "x, z, b, h", [layer.context.input(3)]
            more = f" + b[{layer.direction}, {5 * size} + j]"
        text = "\n".join(
            [
                *gates,
                f"v2 = x[t, i, {2 * size} + j] + reset * (z[i, {2 * size} + j]{more})",
                ended,
            ]
        )
        for step in range(layer.inputs.shape[0]):
            product = layer.steps.multiply(state, by)
            state = layer.run(text, names, [layer.inputs, product, *own, state], step)
            found.append(state)
        return found, None
    by, last = layer.weights(2, 0, 2), layer.weights(2, 2, 1)
    kept = f"{gates[1]}\nmade = reset * h[i, j]"
    text = "\n".join([gates[0], f"v2 = x[t, i, {2 * size} + j] + y[i, j]", ended])
    for step in range(layer.inputs.shape[0]):
        product = layer.steps.multiply(state, by)
        left = layer.run(kept, "x, z, h", [layer.inputs, product, state], step)
        given = [layer.inputs, product, layer.steps.multiply(left, last), state]
        state = layer.run(text, "x, z, y, h", given, step)
        found.append(state)
    return found, None


def lstm(layer: Layer, state: Buffer, cell: Buffer | None) -> States:
    """LSTM: a cell behind gates for input and forgetting, and a state behind an output gate."""
    assert cell is not None
    node, size, (inner, middle, outer) = layer.context.node, layer.size, layer.activations
    own: list[Buffer] = []
    peeps = ["", "", ""]
    if node.has(7):
        own = [layer.context.input(7)]
        fits = own[0].shape[1:] == (3 * size,)
        require(node, fits, f"peepholes are {own[0].shape}, not three for each of {size}")
        peeps = [f" + p[{layer.direction}, {k * size} + j] * " for k in range(3)]

    def gate(number: int, peep: str, of: str) -> str:
        seen = f"{peep}{of}" if peep else ""
        return f"x[t, i, {number * size} + j] + z[i, {number * size} + j]{seen}"

    forget = inner.of("v1")
    if node.get("input_forget", 0):
        forget = f"1.0 - {inner.of('v0')}"
    of_cell = "\n".join(
        [
            f"v0 = {gate(0, peeps[0], 'c[i, j]')}",
            f"v1 = {gate(2, peeps[2], 'c[i, j]')}",
            f"v2 = {gate(3, '', '')}",
            f"made = ({forget}) * c[i, j] + {inner.of('v0')} * {middle.of('v2')}",
        ]
    )
    # The cell itself is not clipped, as ONNX Runtime has it.
    outer = changed(outer, clip=0.0)
    of_state = "\n".join(
        [
            f"v0 = {gate(1, peeps[1], 'c[i, j]')}",
            "v1 = c[i, j]",
            f"made = {inner.of('v0')} * {outer.of('v1')}",
        ]
    )
    names = "p, " if own else ""
    by, found = layer.weights(2, 0, 4), []
    for step in range(layer.inputs.shape[0]):
        product = layer.steps.multiply(state, by)
        cell = layer.run(of_cell, f"x, z, {names}c", [layer.inputs, product, *own, cell], step)
        given = [layer.inputs, product, *own, cell, state]
        state = layer.run(of_state, f"x, z, {names}c, h", given, step)
        found.append(state)
    return found, cell
