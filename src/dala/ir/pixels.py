"""Rewrites programs over channels that lie side by side as ones over pixels."""

from __future__ import annotations

from collections.abc import Set

from dala.base.record import changed
from dala.ir.access import accesses
from dala.ir.nodes import OUTPUT, Extent, Load, Position, Program, Value, by_output
from dala.ir.simplify import Rewriter, drop_dead
from dala.ir.types import S32


def over_pixels(program: Program, channels: int, images: Set[str]) -> Program | None:
    """Returns the program with a position for every so many columns, or None if it has no such.

    Its outputs and the inputs `images`, which are read in the position's own column only, have an
    axis of channels then.
    """
    read = accesses(program)
    if any(across for name in images for _, across in read[name].offsets):
        return None
    copied = _OverPixels(channels, images)
    found = []
    with copied.builder.block() as body:
        for copied.channel in range(channels):
            found.append(by_output(program.outputs, copied.copy(program.body)))
        body.results = tuple(
            part[number][0] for number in range(len(program.outputs)) for part in found
        )
    drop_dead(body)
    return changed(
        program,
        body=body,
        inputs=tuple(
            changed(item, channels=channels) if item.name in images else item
            for item in program.inputs
        ),
        outputs=tuple(changed(item, channels=channels) for item in program.outputs),
    )


class _OverPixels(Rewriter):
    """Copies a program's block once for each channel."""

    channel = 0

    def __init__(self, channels: int, images: Set[str]) -> None:
        super().__init__()
        self.channels = channels
        self.images = images

    def value(self, old: Value) -> Value:
        build, new = self.builder, super().value(old)
        if isinstance(old, Position) and old.axis == 1:
            first = build.apply("mul", new, build.const(S32, self.channels))
            return build.apply("add", first, build.const(S32, self.channel))
        if isinstance(old, Extent) and old.axis == 1 and old.source in {OUTPUT, *self.images}:
            return build.apply("mul", new, build.const(S32, self.channels))
        return new

    def load(self, old: Load) -> Value:
        if old.source not in self.images:
            return super().load(old)
        index = None
        if old.index is not None:
            index = (self.value(old.index[0]), self.builder.position(1))
        return self.builder.load(old.type, old.source, index, self.channel, old.border)
