"""Einsum: products of elements, summed along the axes that the result has not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain
from string import ascii_uppercase

from dala.errors import ModelError
from dala.kernels.base.builtin import written
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.sizes import require
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage


def einsum(context: NodeContext) -> Iterator[Stage]:
    """Einsum of any number of inputs, with what "..." stands for."""
    node = context.node
    given = [context.input(i) for i in range(len(node.inputs))]
    terms, made = labels(context, [len(item.shape) for item in given])
    sizes: dict[str, int] = {}
    for term, item in zip(terms, given, strict=True):
        for label, size in zip(term, item.shape, strict=True):
            known = sizes.get(label, 1)
            alike = known in (1, size) or size == 1
            require(node, alike, f"{label} is {known}, and {size} as well")
            sizes[label] = max(known, size)
    ones = tuple(
        tuple(item.shape[i] == 1 < sizes[label] for i, label in enumerate(term))
        for term, item in zip(terms, given, strict=True)
    )
    out = context.output([sizes[label] for label in made], given[0].scalar)
    summed = "".join(label for label in sizes if label not in made)
    params: dict[str, int] = {"count": 1}
    for i, label in enumerate(summed):
        params |= {f"n{i}": sizes[label], f"s{i}": params["count"]}
        params["count"] *= sizes[label]
    seen = [item if item.shape else reshaped(item, (1,)) for item in given]
    target = out if made else reshaped(out, (1,))
    yield Stage(_kernel(tuple(terms), made, summed, ones), seen, target, params)


def labels(context: NodeContext, ranks: list[int]) -> tuple[list[str], str]:
    """Returns the letters of the axes of each input and of the result."""
    equation = context.node.get("equation", "").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ModelError(f"{context.node}: {equation!r} is not for {len(ranks)} inputs.")
    spare = [letter for letter in ascii_uppercase if letter not in equation]
    counts = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    more = "".join(spare[: max(*counts, 0)])
    found = []
    for term, rank, count in zip(terms, ranks, counts, strict=True):
        whole = term.replace("...", more[len(more) - count :] if count else "")
        require(context.node, len(whole) == rank, f"{equation!r} has not {rank} axes of an input")
        found.append(whole)
    if not arrow:
        every = list(chain(*found))
        right = more + "".join(sorted({x for x in every if every.count(x) == 1 and x not in more}))
    return found, right.replace("...", more)


@cache
def _kernel(
    terms: tuple[str, ...], made: str, summed: str, ones: tuple[tuple[bool, ...], ...]
) -> Kernel:
    places = {label: f"p_{label}" for label in made}
    for i, label in enumerate(summed):
        places[label] = "q" if len(summed) == 1 else f"(q // s{i} % n{i})"
    reads = []
    for i, (term, alone) in enumerate(zip(terms, ones, strict=True)):
        at = ["0" if one else places[label] for label, one in zip(term, alone, strict=True)]
        reads.append(f"x{i}[{', '.join(at) or '0'}]")
    value = " * ".join(reads)
    names = ", ".join(f"p_{label}" for label in made)
    lines = [f"({names},) = dala.position({len(made)})"] if made else []
    lines.append(f"return sum({value} for q in range(count))" if summed else f"return {value}")
    inputs = [f"x{i}" for i in range(len(terms))]
    sizes = [f"{name}{i}: dala.s32" for i in range(len(summed)) for name in "ns"]
    given = ", ".join([*inputs, "count: dala.s32", *sizes])
    body = "\n    ".join(lines)
    return written("einsum", f"def einsum({given}):\n    {body}")
