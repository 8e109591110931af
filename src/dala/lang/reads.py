"""Lowers reads: elements and pixels of inputs, their sizes, items of tuples."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from dala.base.suggestions import hint
from dala.errors import KernelTypeError, ShapeError
from dala.ir.nodes import Input, Value
from dala.ir.types import F32, S32, S64, U8, U16, U32, U64
from dala.lang.expressions import Expressions
from dala.lang.hints import instead_of_attribute
from dala.lang.matrices import transposed
from dala.lang.source import MISSING
from dala.lang.structs import fields_of
from dala.lang.values import (
    InputRef,
    Literal,
    Local,
    LoweredValue,
    Matrix,
    Number,
    OutRef,
    Pixel,
    Static,
    Tuple,
    Vector,
    describe,
)
from dala.lang.vectors import swizzle, swizzled

_CHANNELS = {"r": 0, "g": 1, "b": 2, "a": 3}


class Reads(Expressions):
    """Lowers subscripts and attributes of inputs and other values."""

    def load(self, source: InputRef, index: tuple[Value, ...] | None) -> LoweredValue:
        """Returns an element of a plain input, a vector, or a pixel of an image."""
        item = source.input
        if index is None:
            self.findings.bare.add(item.name)
            index = self._stretched(item)
        if index is None and item.rank != self.domain.rank:
            raise ShapeError(
                f"{self.frames[0].source.name}: input {item.name!r} has {item.rank} axes, but is "
                f"read at its own position by a kernel that runs over {self.domain.rank}."
            )
        if item.channels is None:
            found = self.build.load(item.type, item.name, index, None, self.border)
            return Number(self.build.convert(found, item.type.computed))
        stored = [
            self.build.load(item.type, item.name, index, channel, self.border)
            for channel in range(item.channels)
        ]
        if source.vectors:
            computed = item.type.computed
            return Vector(tuple(Number(self.build.convert(part, computed)) for part in stored))
        return self.pixel(source, stored)

    def pixel(self, source: InputRef, stored: Sequence[Value]) -> Pixel:
        """Returns the pixel that an image's stored channels are."""
        channels = [self._level(item) if source.levels else self._unit(item) for item in stored]
        opaque = Number(self.build.const(F32, 1.0))
        if channels[0].type == S32:
            opaque = Number(self.build.const(S32, source.input.type.white))
        if len(channels) == 1:
            return Pixel((channels[0], channels[0], channels[0], opaque))
        if len(channels) == 3:
            return Pixel((channels[0], channels[1], channels[2], opaque))
        return Pixel((channels[0], channels[1], channels[2], channels[3]))

    def _stretched(self, item: Input) -> tuple[Value, ...] | None:
        """Returns where an input that is broadcast is read, or None if it is not broadcast."""
        if item.name not in self.domain.broadcast:
            return None
        stretched = self.domain.broadcast[item.name]
        first = self.domain.rank - len(stretched)
        return tuple(
            self.build.const(S32, 0) if once else self.build.position(axis)
            for axis, once in enumerate(stretched, first)
        )

    def _unit(self, stored: Value) -> Number:
        """Returns a stored channel as f32 in 0..1."""
        value = self.build.convert(stored, F32)
        if stored.type in (U8, U16):
            value = self.build.apply("mul", value, self.build.const(F32, 1 / stored.type.white))
        return Number(value)

    def _level(self, stored: Value) -> Number:
        """Returns a channel as stored: s32 for u8 and u16, up to 255 or 65535, else f32."""
        type = S32 if stored.type in (U8, U16) else stored.type.computed
        return Number(self.build.convert(stored, type))

    def luma(self, pixel: Pixel) -> Number:
        """Returns 0.299 R + 0.587 G + 0.114 B; for a gray pixel, its own value."""
        red, green, blue, _ = pixel.channels
        if red.value is green.value is blue.value:
            return red
        weights = (0.299, 0.587, 0.114)
        total: LoweredValue | None = None
        for weight, channel in zip(weights, (red, green, blue), strict=True):
            term = self.arithmetic.binary("mul", channel, Literal(weight))
            total = term if total is None else self.arithmetic.binary("add", total, term)
        assert isinstance(total, Number)
        return total

    def attribute(self, node: ast.Attribute) -> LoweredValue:
        owner = self.value(node.value)
        name = node.attr
        match owner:
            case Static():
                found = getattr(owner.object, name, MISSING)
                if found is not MISSING:
                    return self.static(found, node)
                instead = instead_of_attribute(owner.object, name)
                raise self.error(node, f"`{ast.unparse(node)}` does not exist.", instead)
            case Pixel() if name in _CHANNELS:
                return owner.channels[_CHANNELS[name]]
            case Vector() if (found := swizzled(owner, name)) is not None:
                return found
            case Tuple() if name in fields_of(owner):
                return fields_of(owner)[name]
            case Matrix() if name == "T":
                return transposed(owner)
            case InputRef() if owner.vectors and swizzle(owner.input.channels or 0, name):
                found = self.load(owner, None)
                assert isinstance(found, Vector)
                return swizzled(found, name) or found
            case InputRef() if name == "pixel" and owner.is_image:
                return self.load(owner, None)
            case InputRef() if name == "levels" and owner.is_image:
                return InputRef(owner.input, levels=True)
            case InputRef() if name == "shape" or (name == "size" and owner.is_image):
                return self.extents(owner.input.name, owner.input.rank)
            case OutRef() if name == "shape":
                return self.extents("out", owner.output.rank)
        has = {
            Pixel: "r, g, b and a",
            Vector: "its components by their letters: v.x, v.xy",
            Matrix: "its transpose, m.T, and elements, m[i, j]",
            OutRef: "shape, and the method add",
            InputRef: "pixel, shape, levels, sample and sample_uv",
        }.get(type(owner), "no attributes")
        if isinstance(owner, Tuple) and owner.named is not None:
            names = list(fields_of(owner))
            what = f"{describe(owner)} has no `{name}`.{hint(name, names)}"
            raise self.error(node, what, f"It has {', '.join(names)}.", KernelTypeError)
        if isinstance(owner, InputRef) and not owner.is_image:
            has = "its components by their letters, shape and sample"
        if isinstance(owner, InputRef) and owner.input.channels is None:
            has = "shape and sample; annotated with dala.Image, it would have pixel and levels, too"
        raise self.error(
            node, f"{describe(owner)} has no `{name}`.", f"It has {has}.", KernelTypeError
        )

    def subscript(self, node: ast.Subscript) -> LoweredValue:
        owner = self.value(node.value)
        if isinstance(owner, InputRef):
            return self.load(owner, self.index(node.slice, owner.input.rank, owner.input.name))
        if isinstance(owner, Pixel):
            owner = Tuple(owner.channels)
        if isinstance(owner, Vector | Local):
            owner = Tuple(owner.items)
        if isinstance(owner, Matrix):
            return self._element(node, owner, self.operand(node.slice))
        if isinstance(owner, Tuple):
            return self._item(node, owner, self.operand(node.slice))
        if isinstance(owner, OutRef):
            raise self.error(
                node,
                "the output cannot be read: it may not be written yet.",
                "Keep the value in a variable, or give the buffer as an input as well.",
            )
        raise self.error(
            node,
            f"{describe(owner)} cannot be indexed.",
            "Index an input, with all indices at once: x[i, j].",
            KernelTypeError,
        )

    def index(self, node: ast.expr, rank: int, name: str) -> tuple[Value, ...]:
        """Returns the integer values of an index; raises unless there is one per axis."""
        lowered = self.operand(node)
        items = lowered.items if isinstance(lowered, Tuple) else (lowered,)
        self.findings.indexed[name] = len(items)
        if len(items) != rank:
            raise self.error(
                node,
                f"`{name}` has {rank} ax{'i' if rank == 1 else 'e'}s, but is indexed by "
                f"{len(items)}.",
                f"Give {rank}: {name}[{', '.join('ijklmnop'[:rank])}].",
                KernelTypeError,
            )
        values = []
        for item in items:
            number = self.arithmetic.typed(item)
            if not number.type.is_integer:
                raise self.error(
                    node,
                    f"an index is an integer, not {describe(item)}.",
                    "Convert it: dala.s32(dala.floor(…)).",
                    KernelTypeError,
                )
            values.append((number if number.type == U32 else self.counting(number)).value)
        return tuple(values)

    def counting(self, number: Number) -> Number:
        """Returns an integer as s32 or s64, the types of loop counters."""
        if number.type in (S32, S64):
            return number
        if number.type == U64:
            most = self.build.const(U64, S64.highest)
            return Number(self.build.convert(self.build.apply("min", number.value, most), S64))
        return self.arithmetic.convert(number, S64 if number.type == U32 else S32)

    def _element(self, node: ast.Subscript, owner: Matrix, index: LoweredValue) -> LoweredValue:
        """Returns a row of a matrix, or one of its elements."""
        places = index.items if isinstance(index, Tuple) else (index,)
        if len(places) not in (1, 2):
            raise self.error(
                node,
                f"a matrix is indexed by 1 or 2 integers, not {len(places)}.",
                "m[i] is a row, m[i, j] an element.",
                KernelTypeError,
            )
        found = self._item(node, Tuple(owner.rows), places[0])
        if len(places) == 1:
            return found
        assert isinstance(found, Vector)
        return self._item(node, Tuple(found.items), places[1])

    def _item(self, node: ast.Subscript, owner: Tuple, index: LoweredValue) -> LoweredValue:
        count = len(owner.items)
        if isinstance(index, Literal) and type(index.value) is int:
            if -count <= index.value < count:
                return owner.items[index.value]
            raise self.error(
                node,
                f"index {index.value} is outside: there are {count}.",
                f"Use 0 to {count - 1}.",
                KernelTypeError,
            )
        number = self.arithmetic.typed(index)
        if not number.type.is_integer or not count:
            raise self.error(
                node, "a tuple is indexed by an integer.", "Use dala.s32(…).", KernelTypeError
            )
        chosen = owner.items[0]
        for i in range(1, count):
            here = self.arithmetic.condition(self.arithmetic.binary("ge", number, Literal(i)))
            chosen = self.arithmetic.choose(here, owner.items[i], chosen)
        return chosen
