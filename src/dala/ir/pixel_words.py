"""Rewrites programs that only move whole pixels: a pixel of four bytes is moved as one word."""

from __future__ import annotations

from dala.base.record import changed, remembered
from dala.ir.nodes import Load, Program, Value, walk
from dala.ir.simplify import Rewriter, drop_dead
from dala.ir.types import U16, U32, U64, Scalar

_WORDS = {2: U16, 4: U32, 8: U64}


@remembered
def as_words(program: Program) -> Program:
    """Returns the program with pixels as words, or as it is where they are more than moved."""
    output = program.output
    word = _WORDS.get(output.type.size_bytes * (output.channels or 1))
    loads = program.body.results
    if word is None or len(program.outputs) > 1 or len(loads) == 1 or not _is_moved(program):
        return program
    source = loads[0].source  # type: ignore[attr-defined]
    rewriter = _Words(word)
    with rewriter.builder.block() as body:
        body.results = rewriter.copy(program.body)[:1]
    drop_dead(body)
    inputs = tuple(
        changed(item, type=word, channels=None) if item.name == source else item
        for item in program.inputs
    )
    return changed(
        program,
        inputs=inputs,
        outputs=(changed(output, type=word, channels=None),),
        body=body,
    )


def _is_moved(program: Program) -> bool:
    """Whether all that is read is one pixel, which is stored as it is."""
    loads = [item for item in walk(program.body) if isinstance(item, Load)]
    first = loads[0] if loads else None
    if first is None or tuple(loads) != program.body.results:
        return False
    source = program.input(first.source)
    is_pixel = (source.type, source.channels) == (program.output.type, program.output.channels)
    return is_pixel and all(
        (item.source, item.index, item.border) == (first.source, first.index, first.border)
        and item.channel == channel
        for channel, item in enumerate(loads)
    )


class _Words(Rewriter):
    """Copies statements, turning reads of channels into reads of words."""

    def __init__(self, word: Scalar) -> None:
        super().__init__()
        self._word = word

    def load(self, old: Load) -> Value:
        index = None if old.index is None else self._values(old.index)
        return self.builder.load(self._word, old.source, index, None, old.border)
