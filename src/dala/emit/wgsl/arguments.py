"""The uniform struct of a shader: sizes, extents and parameters."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from dala.emit.argument_slots import Slot, layout_of
from dala.ir.nodes import Program
from dala.ir.types import S32, U32, Scalar


class Arguments:
    """The struct as WGSL text, and its values as bytes; 64-bit members come first."""

    def __init__(self, program: Program, name: str = "Args") -> None:
        sizes = [slot for slot in layout_of(program) if slot.kind not in ("out", "input", "param")]
        params = list(enumerate(program.params))
        self.wide = [i for i, param in params if param.type.bits == 64]
        self.narrow = [i for i, param in params if param.type.bits != 64]
        fields = [_param_field(i, program.params[i].type) for i in self.wide]
        fields += [(name, "u32", "I") for name in ("count", "rows", "first", "zero")]
        names = [item.name for item in program.inputs]
        fields += [_size_field(slot, names) for slot in sizes]
        fields += [_param_field(i, program.params[i].type) for i in self.narrow]
        members = "\n".join(f"  {name}: {type}," for name, type, _ in fields)
        self.text = f"struct {name} {{\n{members}\n}}"
        self._struct = struct.Struct("=" + "".join(code for _, _, code in fields))
        self.size_bytes = -(-self._struct.size // 16) * 16

    def pack(
        self,
        domain: Sequence[int],
        sizes: Sequence[int],
        params: Sequence[bool | int | float],
        first: int = 0,
    ) -> bytes:
        """Returns the bytes of the struct; `first` is the position where the dispatch begins."""
        rows = math.prod(domain[:-1])
        wide, narrow = ([params[i] for i in which] for which in (self.wide, self.narrow))
        count = rows * domain[-1]
        packed = self._struct.pack(*wide, count, rows, first, 0, *sizes, *narrow)
        return packed.ljust(self.size_bytes, b"\0")


def _param_field(number: int, scalar: Scalar) -> tuple[str, str, str]:
    seen = scalar
    if scalar.bits < 32:  # uniforms hold neither bytes nor bools
        seen = S32 if scalar.kind == "s" else U32
    return f"param_{number}", seen.wgsl, seen.code


def _size_field(slot: Slot, names: list[str]) -> tuple[str, str, str]:
    source = names.index(slot.source) if slot.source in names else "out"
    if slot.kind == "extent":
        return f"extent_{source}_{slot.axis}", "i32", "i"
    stem = {"size": "size", "input size": f"in_{source}_size", "out size": "out_size"}[slot.kind]
    return f"{stem}_{slot.axis}", "u32", "I"
