"""Chains of elementwise operators as one epilogue: a kernel of its own, or the end of another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from dala.base.record import value
from dala.emit.wgsl.element_function import element_function
from dala.ir.nodes import Program
from dala.ir.types import F32
from dala.kernels.base.builtin import written
from dala.lang.lower import Specialization
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

Shape = tuple[int, ...]
Mask = tuple[bool, ...]
"""For each axis whether an operand has it, rather than being the same all along it."""


@value
class Epilogue:
    """Lines such as "v1 = max(v0, x0)"; the last one leaves the result.

    `v0` is what a kernel has computed so far; x0, x1 … are elements of operands.
    """

    lines: tuple[str, ...]
    result: str

    def program(self, operands: int) -> Program:
        """Returns the program that is lowered from the lines; it takes v0, x0, x1 …"""
        given = ", ".join(["v0", *(f"x{i}" for i in range(operands))])
        body = "\n    ".join([*self.lines, f"return {self.result}"])
        definition = written("epilogue", f"def epilogue({given}):\n    {body}").definition
        element = (F32, 1, None)
        return definition.lower(Specialization((element,) * (1 + operands), (element,)))

    def in_wgsl(self, operands: int) -> str:
        """Returns WGSL functions; `epilogue` takes v0, x0, x1 …"""
        return element_function(self.program(operands), "epilogue")


def common_axes(shape: Shape, operands: Sequence[Shape]) -> tuple[Shape, list[Mask]]:
    """The output as few axes as tell the operands apart, and which of them each operand has."""
    rank = len(shape)
    padded = [(1,) * (rank - len(item)) + tuple(item) for item in operands]
    axes: list[tuple[int, Mask]] = []
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        has = tuple(item[axis] != 1 for item in padded)
        if axes and axes[-1][1] == has:
            axes[-1] = (axes[-1][0] * size, has)
        else:
            axes.append((size, has))
    sizes = tuple(size for size, _ in axes) or (1,)
    masks = [tuple(has[i] for _, has in axes) or (True,) for i in range(len(operands))]
    return sizes, masks


def pointwise_stage(epilogue: Epilogue, operands: Sequence[Buffer], output: Buffer) -> Stage:
    """The stage that computes an epilogue over its operands, which are broadcast to the output."""
    sizes, masks = common_axes(output.shape, [item.shape for item in operands])
    seen = [reshaped(item, _kept(sizes, mask)) for item, mask in zip(operands, masks, strict=True)]
    return Stage(_pointwise_kernel(epilogue, tuple(masks)), seen, reshaped(output, sizes))


def _kept(sizes: Shape, mask: Mask) -> Shape:
    return tuple(size for size, has in zip(sizes, mask, strict=True) if has) or (1,)


def reads(masks: Sequence[Mask], names: Sequence[str]) -> list[str]:
    """Lines that read each operand, x0 first, at positions of these names."""
    lines = []
    for i, mask in enumerate(masks):
        index = ", ".join(name for name, has in zip(names, mask, strict=True) if has) or "0"
        lines.append(f"x{i} = o{i}" if all(mask) else f"x{i} = o{i}[{index}]")
    return lines


@cache
def _pointwise_kernel(epilogue: Epilogue, masks: tuple[Mask, ...]) -> Kernel:
    rank = len(masks[0])
    names = [f"p{axis}" for axis in range(rank)]
    lines = [f"({', '.join(names)},) = dala.position({rank})", *reads(masks, names)]
    lines += [*epilogue.lines, f"return {epilogue.result}"]
    given = ", ".join(f"o{i}" for i in range(len(masks)))
    return written("pointwise", f"def pointwise({given}):\n    " + "\n    ".join(lines))
