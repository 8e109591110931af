"""Writes LLVM IR as text: names, types, constants, and values that may be vectors."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

from dala.base.record import value
from dala.ir.types import BOOL, Scalar


@value
class Operand:
    """An LLVM operand: its type, whether it is a vector, and its name or constant."""

    text: str
    type: str
    vector: bool = False

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


def llvm_type(scalar: Scalar, lanes: int = 1) -> str:
    """Returns the LLVM type of a scalar, or of a vector of them."""
    return scalar.llvm if lanes == 1 else f"<{lanes} x {scalar.llvm}>"


def constant(scalar: Scalar, value: bool | int | float) -> Operand:
    """Returns a constant; floats are written as their bits, so that nothing is rounded."""
    if scalar == BOOL:
        return Operand("true" if value else "false", "i1")
    if scalar.is_storage:
        return Operand(str(int(scalar.numpy.type(value).view("uint16"))), scalar.llvm)
    if scalar.is_float:
        (bits,) = struct.unpack("<Q", struct.pack("<d", value))
        return Operand(f"0x{bits:016X}", scalar.llvm)
    return Operand(str(int(value)), scalar.llvm)


def _counted(count: int) -> str:
    return f"<{', '.join(f'i32 {i}' for i in range(count))}>"


class Writer:
    """Collects the lines of one function; `lanes` is its vector width.

    `has_halves` says that the CPU converts from and to f16, `has_extremes` that it has minima and
    maxima of floats as they are meant.
    """

    def __init__(
        self, lanes: int = 1, *, has_halves: bool = False, has_extremes: bool = True
    ) -> None:
        self.lanes = lanes
        self.has_halves = has_halves
        self.has_extremes = has_extremes
        self.lines: list[str] = []
        self.block = "entry"
        self._count = 0
        self._declared: set[str] = set()
        self._splats: list[dict[str, Operand]] = [{}]

    def name(self, stem: str = "v") -> str:
        self._count += 1
        return f"%{stem}{self._count}"

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def emit(self, type: str, text: str, vector: bool = False) -> Operand:
        """Emits an instruction and returns its result."""
        name = self.name()
        self.line(f"{name} = {text}")
        return Operand(name, type, vector)

    def scalar(self, type: str, text: str) -> Operand:
        return self.emit(type, text)

    def call(self, function: str, type: str, *args: Operand) -> Operand:
        """Emits a call of an intrinsic, and declares it."""
        self._declared.add(f"declare {type} @{function}({', '.join(a.type for a in args)})")
        text = f"call {type} @{function}({', '.join(map(str, args))})"
        return self.emit(type, text, any(arg.vector for arg in args))

    def call_void(self, function: str, *args: Operand) -> None:
        """Emits a call of an intrinsic without a result."""
        self._declared.add(f"declare void @{function}({', '.join(a.type for a in args)})")
        self.line(f"call void @{function}({', '.join(map(str, args))})")

    def below(self, count: int, limit: Operand) -> Operand:
        """Returns a mask of `count` lanes: those whose index is below the limit, an i32."""
        limits = self.repeated(count, limit)
        text = f"icmp slt {limits.type} {_counted(count)}, {limits.text}"
        return self.emit(f"<{count} x i1>", text, True)

    def numbered(self, count: int, first: Operand) -> Operand:
        """Returns a vector of so many i32: the first, and each one more than that before it."""
        firsts = self.repeated(count, first)
        return self.emit(firsts.type, f"add {firsts}, {_counted(count)}")

    def repeated(self, count: int, value: Operand) -> Operand:
        """Returns a vector of a value, as often as asked for."""
        type = f"<{count} x {value.type}>"
        one = self.emit(type, f"insertelement {type} poison, {value}, i64 0")
        zeros = f"<{count} x i32> zeroinitializer"
        return self.emit(type, f"shufflevector {one}, {type} poison, {zeros}")

    def joined(self, parts: list[Operand], element: str) -> Operand:
        """Returns one vector of several of the same length, one after another."""
        count = int(parts[0].type[1:].split(" x ")[0])
        total = count * len(parts)
        while len(parts) > 1:
            if len(parts) % 2:
                parts = [*parts, Operand("poison", parts[0].type, vector=True)]
            count *= 2
            picks = ", ".join(f"i32 {i}" for i in range(count))
            parts = [
                self.emit(
                    f"<{count} x {element}>", f"shufflevector {a}, {b}, <{count} x i32> <{picks}>"
                )
                for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
        (whole,) = parts
        if count != total:
            picks = ", ".join(f"i32 {i}" for i in range(total))
            text = f"shufflevector {whole}, {whole.type} poison, <{total} x i32> <{picks}>"
            whole = self.emit(f"<{total} x {element}>", text)
        return Operand(whole.text, whole.type, vector=True)

    def gather(
        self, function: str, type: str, places: Operand, align: int, mask: Operand, rest: Operand
    ) -> Operand:
        """Emits a gather of one element per lane."""
        given = (places, Operand(str(align), "i32"), mask, rest)
        return self.call(function, type, *given)

    @property
    def declarations(self) -> set[str]:
        return self._declared

    def label(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def begin(self, label: str) -> None:
        """Starts a basic block."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.line(f"br label %{label}")

    def branch(self, condition: Operand, then: str, otherwise: str, metadata: str = "") -> None:
        self.line(f"br i1 {condition.text}, label %{then}, label %{otherwise}{metadata}")

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forgets at its end what was cached inside: it may not dominate what follows."""
        self._splats.append({})
        try:
            yield
        finally:
            self._splats.pop()

    # -- vectors ---------------------------------------------------------------------------------

    def vector_type(self, type: str) -> str:
        return f"<{self.lanes} x {type}>"

    def splat(self, value: Operand) -> Operand:
        """Returns the value broadcast to every lane."""
        if value.vector or self.lanes == 1:
            return value
        type = self.vector_type(value.type)
        if not value.text.startswith("%"):
            return Operand(f"splat ({value})", type, vector=True)
        for known in reversed(self._splats):
            if value.text in known:
                return known[value.text]
        one = self.emit(type, f"insertelement {type} poison, {value}, i64 0")
        mask = f"<{self.lanes} x i32> zeroinitializer"
        text = f"shufflevector {type} {one.text}, {type} poison, {mask}"
        self._splats[-1][value.text] = self.emit(type, text, vector=True)
        return self._splats[-1][value.text]

    def alike(self, *values: Operand) -> tuple[Operand, ...]:
        """Returns all operands as vectors if any of them is one."""
        if any(value.vector for value in values):
            return tuple(self.splat(value) for value in values)
        return values

    def iota(self, type: str) -> Operand:
        """Returns the vector 0, 1, 2, …"""
        lanes = ", ".join(f"{type} {i}" for i in range(self.lanes))
        return Operand(f"<{lanes}>", self.vector_type(type), vector=True)

    def suffix(self, value: Operand) -> str:
        """Returns the type suffix of overloaded intrinsics for a value."""
        short = {"float": "f32", "double": "f64"}
        element = value.type.split(" x ")[-1].rstrip(">") if value.vector else value.type
        element = short.get(element, element)
        return f"v{self.lanes}{element}" if value.vector else element
