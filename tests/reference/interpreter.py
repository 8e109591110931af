"""A plain NumPy interpreter of programs: the whole domain at once, one statement after another."""

from collections.abc import Iterator, Sequence

import numpy as np

from dala.ir import nodes as ir
from dala.ir.evaluate import evaluate
from dala.ir.types import F32, F64, Scalar

Array = np.ndarray
INEXACT = {"add", "sub", "mul", "fma", "div", "sqrt", "neg", "convert"}
MOST_TURNS = 1 << 17
"""Turns after which a loop is taken for one that does not end."""
Inputs = dict[str, Array]
Params = dict[str, bool | int | float]
_UPDATES = {"add": np.add, "min": np.minimum, "max": np.maximum}


def run(
    program: ir.Program,
    inputs: Inputs,
    params: Params,
    out_shape: tuple[int, ...],
    out_dtype: np.dtype | type,
    shaken_by: np.random.Generator | None = None,
) -> Array:
    """What the program leaves in an output of this shape, which starts as zeros.

    With a generator, every float that is computed is off by up to a unit in the last place.
    """
    (out,) = run_all(program, inputs, params, [(out_shape, out_dtype)], shaken_by)
    return out


def run_all(
    program: ir.Program,
    inputs: Inputs,
    params: Params,
    wanted: Sequence[tuple[tuple[int, ...], np.dtype | type]],
    shaken_by: np.random.Generator | None = None,
) -> tuple[Array, ...]:
    """What the program leaves in outputs of these shapes and dtypes."""
    outputs = tuple(np.zeros(*each) for each in wanted)
    shape = ir.domain_of(outputs[0].shape, program.output.channels)
    if program.output.scattered and program.inputs:
        first = program.inputs[0]
        shape = ir.domain_of(inputs[first.name].shape, first.channels)
    with np.errstate(all="ignore"):
        _Run(program, inputs, params, outputs, shape, shaken_by).store_results()
    return outputs


class Endless(Exception):
    """A loop took more turns than the interpreter waits for."""


class _Run:
    """Each value is an array that broadcasts to the domain; masks say which positions take part."""

    def __init__(
        self,
        program: ir.Program,
        inputs: Inputs,
        params: Params,
        outputs: tuple[Array, ...],
        domain: tuple[int, ...],
        shaken_by: np.random.Generator | None,
    ) -> None:
        self.shaken_by = shaken_by
        self.program, self.inputs, self.params = program, inputs, params
        self.outputs, self.out = outputs, outputs[0]
        self.domain = domain
        self.values: dict[ir.Value, Array] = {}
        self.results: dict[ir.If | ir.For | ir.While, list[Array]] = {}

    def store_results(self) -> None:
        left = self.block(self.program.body, np.ones(self.domain, bool))
        for out, channels in zip(
            self.outputs, ir.by_output(self.program.outputs, left), strict=True
        ):
            planes = out.reshape(*self.domain, len(channels)) if channels else out
            for channel, value in enumerate(channels):
                planes[..., channel] = value

    def block(self, block: ir.Block, mask: Array) -> list[Array]:
        for statement in block.statements:
            self.statement(statement, mask)
        return [self.value(value) for value in block.results]

    def shaken(self, computed: Array) -> Array:
        """The values, floats among them each moved to a neighbour or not.

        Zeros take either sign. What is not finite, or nearly so, may become anything: WGSL lets a
        driver take it that there is no such number.
        """
        if self.shaken_by is None or computed.dtype.kind != "f":
            return computed
        most = np.finfo(computed.dtype).max
        computed = np.broadcast_to(computed, self.domain)
        step = self.shaken_by.integers(-1, 2, computed.shape).astype(computed.dtype)
        sign = self.shaken_by.choice([-1, 1], computed.shape).astype(computed.dtype)
        moved = np.where(step == 0, computed, np.nextafter(computed, step * np.inf))
        moved = np.where(computed == 0, np.copysign(computed, sign), moved)
        far = ~(np.abs(computed) <= most / 16)
        anything = self.shaken_by.choice([np.nan, np.inf, most, 0.0], computed.shape) * sign
        return np.where(far & (step != 0), anything, moved).astype(computed.dtype)

    def interpolated(
        self, type: Scalar, computed: Array, a: ir.Value, b: ir.Value, t: ir.Value
    ) -> Array:
        """a + (b - a) · t, or a · (1 - t) + b · t: Mesa makes either of the other."""
        if self.shaken_by is None or self.shaken_by.integers(2):
            return computed
        x, y, share = map(self.value, (a, b, t))
        rest = evaluate("sub", type, np.ones_like(share), share)
        sides = evaluate("mul", type, x, rest), evaluate("mul", type, y, share)
        return evaluate("add", type, *sides)

    # -- values ----------------------------------------------------------------------------------

    def value(self, value: ir.Value) -> Array:
        match value:
            case ir.Const():
                return np.asarray(value.value, value.type.numpy)
            case ir.Param():
                return np.asarray(self.params[value.name]).astype(value.type.numpy)
            case ir.Position():
                along = [1] * len(self.domain)
                along[value.axis] = self.domain[value.axis]
                return np.arange(self.domain[value.axis], dtype=np.int32).reshape(along)
            case ir.Extent():
                sized = self.out if value.source == ir.OUTPUT else self.inputs[value.source]
                return np.asarray(sized.shape[value.axis], np.int32)
            case ir.Result():
                return self.results[value.node][value.index]
        return self.values[value]

    def load(self, load: ir.Load) -> Array:
        stored = self.inputs[load.source]
        item = self.program.input(load.source)
        if item.channels is not None:
            shape = ir.domain_of(stored.shape, item.channels)
            stored = stored.reshape(*shape, item.channels)[..., load.channel]
        if load.index is None:
            return stored
        if stored.size == 0:
            return np.zeros((), item.type.numpy)
        places, inside = [], np.asarray(True)
        for value, size in zip(load.index, stored.shape, strict=True):
            index = self.value(value).astype(np.int64)
            inside = inside & ((index >= 0) & (index < size))
            places.append(inside_by(load.border, index, size))
        found = np.asarray(stored[tuple(places)])
        return np.where(inside, found, found.dtype.type(0)) if load.border == "zero" else found

    # -- statements ------------------------------------------------------------------------------

    def statement(self, node: ir.Statement, mask: Array) -> None:
        match node:
            case ir.Apply():
                computed = evaluate(node.op, node.type, *map(self.value, node.args))
                if self.shaken_by is not None and (parts := _interpolation(node)) is not None:
                    computed = self.interpolated(node.type, computed, *parts)
                self.values[node] = self.shaken(computed) if node.op in INEXACT else computed
            case ir.Load():
                self.values[node] = self.load(node)
            case ir.Reduce():
                self.values[node] = self.shaken(self.reduce(node, mask))
            case ir.If():
                holds = self.value(node.condition)
                then = self.block(node.then, mask & holds)
                otherwise = self.block(node.otherwise, mask & ~holds)
                pairs = zip(then, otherwise, strict=True)
                self.results[node] = [np.where(holds, a, b) for a, b in pairs]
            case ir.For():
                self.begin(node)
                for alive in self.turns(node.counter, node.start, node.stop, node.step, mask):
                    self.go_on(node, alive)
            case ir.While():
                self.begin(node)
                alive = mask & self.block(node.condition, mask)[0]
                turns = 0
                while alive.any():
                    turns += 1
                    if turns > MOST_TURNS:
                        raise Endless
                    self.go_on(node, alive)
                    alive = alive & self.block(node.condition, alive)[0]
            case ir.Store() | ir.AtomicUpdate():
                self.write(node, mask)

    def begin(self, loop: ir.For | ir.While) -> None:
        self.carry(loop, [self.value(value) for value in loop.initial])

    def go_on(self, loop: ir.For | ir.While, alive: Array) -> None:
        """One turn; the positions that have left the loop keep what they had."""
        pairs = zip(self.block(loop.body, alive), self.results[loop], strict=True)
        self.carry(loop, [np.where(alive, new, old) for new, old in pairs])

    def carry(self, loop: ir.For | ir.While, values: list[Array]) -> None:
        self.results[loop] = values
        self.values.update(zip(loop.carried, values, strict=True))

    def turns(
        self, counter: ir.Variable, start: ir.Value, stop: ir.Value, step: int, mask: Array
    ) -> Iterator[Array]:
        """The positions alive in each turn, with the counter set as Python's range counts."""
        first, last = self.value(start), self.value(stop)
        counts = _length(first.astype(object), last.astype(object), step)
        most = int(np.max(np.broadcast_to(counts, mask.shape), where=mask, initial=0))
        if most > MOST_TURNS:
            raise Endless
        for turn in range(most):
            alive = mask & (turn < counts)
            shift = np.where(turn < counts, turn * step, 0).astype(first.dtype)
            self.values[counter] = np.asarray(first + shift)
            yield alive

    def reduce(self, node: ir.Reduce, mask: Array) -> Array:
        type = F64 if node.op == "add" and node.type == F32 else node.type
        total = np.asarray(_neutral(node.op, type), type.numpy)
        for alive in self.turns(node.counter, node.start, node.stop, 1, mask):
            term = self.block(node.body, alive)[0].astype(type.numpy)
            total = np.where(alive, evaluate(node.op, type, total, term), total)
        return total.astype(node.type.numpy)

    def write(self, node: ir.Store | ir.AtomicUpdate, mask: Array) -> None:
        """Row-major in positions; whatever lies outside of the output is left out."""
        places = [np.broadcast_to(self.value(i), self.domain).astype(np.int64) for i in node.index]
        taken = mask.copy()
        for place, size in zip(places, self.out.shape, strict=True):
            taken &= (place >= 0) & (place < size)
        where = tuple(place[taken] for place in places)
        value = np.broadcast_to(self.value(node.value), self.domain)[taken]
        if isinstance(node, ir.Store):
            self.out[where] = value
        else:
            _UPDATES[node.op].at(self.out, where, value)


def _interpolation(node: ir.Apply) -> tuple[ir.Value, ir.Value, ir.Value] | None:
    """(a, b, t) if the value is a + (b - a) · t of floats, else None."""
    if node.op != "add" or not node.type.is_float:
        return None
    for a, product in (node.args, node.args[::-1]):
        if isinstance(product, ir.Apply) and product.op == "mul":
            for apart, t in (product.args, product.args[::-1]):
                if isinstance(apart, ir.Apply) and apart.op == "sub" and apart.args[1] is a:
                    return a, apart.args[0], t
    return None


def inside_by(border: str, index: Array, size: int) -> Array:
    """The index that the border rule reads for this one, along an axis of `size` ≥ 1."""
    if border == "wrap":
        return index % size
    if border == "mirror":
        period = max(1, 2 * (size - 1))
        return np.minimum(index % period, period - index % period)
    if border == "reflect":
        return np.minimum(index % (2 * size), 2 * size - 1 - index % (2 * size))
    return np.clip(index, 0, size - 1)


@np.vectorize(otypes=[np.int64])
def _length(start: int, stop: int, step: int) -> int:
    """The turns of a range, in Python's own integers; positions that are masked may ask for any."""
    return min(max(0, -((start - stop) // step)), 1 << 62)


def _neutral(op: str, type: Scalar) -> int | float:
    if op == "add":
        return 0
    if type.is_float:
        return float("inf") if op == "min" else float("-inf")
    return type.highest if op == "min" else type.lowest
