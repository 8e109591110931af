"""Emits reads and writes of buffers as WGSL: borders, pixels, packed bytes, scatters, atomics.

A storage buffer is an array of its scalars, except that narrow ones are packed into words, and a
pixel of four channels is read and written as one element.
"""

from __future__ import annotations

from dala.emit.wgsl.body import SECOND_EXIT, Body
from dala.emit.wgsl.ops import literal
from dala.emit.wgsl.packing import (
    bit_offset,
    field,
    is_packed,
    stored,
    unpacked,
    word_index,
    words_of_pixel,
)
from dala.ir.nodes import AtomicUpdate, Const, Input, Load, Output, Store, Value
from dala.ir.types import F32, S32, S64, U32, U64, Scalar
from dala.plan.task import InPlace

COMPONENTS = "xyzw"


def output_array(number: int) -> str:
    """Returns the name of an output's array."""
    return f"out_{number}" if number else "out"


def element_type(item: Input | Output) -> str:
    """Returns the element type of a buffer's array."""
    if is_packed(item.type):
        words = words_of_pixel(item.type) if item.channels == 4 else 1
        return "u32" if words == 1 else f"vec{words}<u32>"
    return f"vec4<{item.type.wgsl}>" if item.channels == 4 else item.type.wgsl


def atomic_type(scalar: Scalar) -> str:
    """Returns the element type of an output that is added to or written byte by byte."""
    return f"atomic<{'i32' if scalar == S32 else 'u32'}>"


class Memory(Body):
    """Adds memory access to a body; `here` is the index of this position's element."""

    in_place: InPlace = frozenset()
    atomic = False
    """Whether the output is an array of atomics."""

    def array(self, source: str) -> str:
        """Returns an input's array: the output's, if it is computed in place."""
        number = dict(self.in_place).get(source)
        return f"in_{self.source(source)}" if number is None else output_array(number)

    # -- reads -----------------------------------------------------------------------------------

    def load(self, node: Load) -> str:
        source = self.program.input(node.source)
        element, outside = self._found(("element", node.source, node.index, node.border), node)
        text = self._element(node, source, element)
        if outside:
            text = f"select({text}, {literal(source.type, 0)}, {outside})"
        return self.let(source.type, text)

    def _element(self, node: Load, source: Input, element: str) -> str:
        array, channel, channels = self.array(node.source), node.channel or 0, source.channels or 1
        if channels == 4:
            pixel = self._pixel(node, source, f"{array}[{element}]")
            if is_packed(source.type):
                return self._channel(source.type, pixel, channel)
            return f"{pixel}.{COMPONENTS[channel]}"
        place = element if channels == 1 else f"{element} * {channels}u + {channel}u"
        if is_packed(source.type):
            place = self.let(U32, place, "e") if channels > 1 else element
            word = f"{array}[{word_index(source.type, place)}]"
            return unpacked(source.type, word, bit_offset(source.type, place))
        return f"{array}[{place}]"

    def _channel(self, scalar: Scalar, pixel: str, channel: int) -> str:
        """Returns one of the four channels of a packed pixel."""
        word, place = divmod(channel, scalar.per_word)
        if words_of_pixel(scalar) > 1:
            pixel = f"{pixel}.{COMPONENTS[word]}"
        return unpacked(scalar, pixel, f"{8 * scalar.size_bytes * place}u")

    def _known(self, key: object) -> str | None:
        return next((scope[key] for scope in reversed(self.read) if key in scope), None)

    def _pixel(self, node: Load, source: Input, text: str) -> str:
        """Emits the read of a pixel, once however many of its channels are used."""
        key = ("pixel", node.source, node.index, node.border)
        known = self._known(key)
        if known is None:
            known = self.name("e")
            self.line(f"let {known}: {element_type(source)} = {text};")
            self.read[-1][key] = known
        return known

    def _found(self, key: object, node: Load) -> tuple[str, str]:
        """Returns the index of the element read, and where the zero border applies instead."""
        if node.index is None:
            return "here", ""
        known = self._known(key)
        if known is None:
            known = " ".join(self._index(node, node.index))
            self.read[-1][key] = known
        element, _, outside = known.partition(" ")
        return element, outside

    def _index(self, node: Load, index: tuple[Value, ...]) -> tuple[str, str]:
        element, beyond = "", []
        for axis, value in enumerate(index):
            size = f"{self.arguments}.in_{self.source(node.source)}_size_{axis}"
            place, type = self._integer(value)
            if self.stays_inside(node, axis, value):
                place = f"u32({place})"
            else:
                if node.border == "zero":
                    beyond.append(f"!{self.ops.call(f'inside_{type}', place, size)}")
                rule = "clamp" if node.border == "zero" else node.border
                place = self.ops.call(f"{rule}_{type}", place, size)
            element = f"({element}) * {size} + {place}" if element else place
        outside = self.name("o") if beyond else ""
        if outside:
            self.line(f"let {outside}: bool = {' | '.join(beyond)};")
        return self.let(U32, element, "e"), outside

    def _integer(self, value: Value) -> tuple[str, str]:
        """Returns an index and its integer type."""
        type = value.type.wgsl
        if isinstance(value, Const):
            if S32.lowest <= int(value.value) <= S32.highest:
                return literal(S32, value.value), "i32"
            if value.type == U32:
                return literal(U32, value.value), "u32"
            # Hidden: naga converts no constant of 64 bits.
            return f"({literal(S64, value.value)} | i64(args.zero))", "i64"
        text = self.value(value)
        if type == "bool":
            return f"u32({text})", "u32"
        return text, type

    # -- writes ----------------------------------------------------------------------------------

    def store(self, node: Store | AtomicUpdate) -> None:
        """Emits a scattered write or addition, skipped outside the output."""
        tests, element = [], ""
        for axis, value in enumerate(node.index):
            size = f"args.out_size_{axis}"
            place, type = self._integer(value)
            tests.append(self.ops.call(f"inside_{type}", place, size))
            element = f"({element}) * {size} + u32({place})" if element else f"u32({place})"
        with self.inside(f"if ({' & '.join(tests)})"):
            place = self.let(U32, element, "e")
            text = self.value(node.value)
            if isinstance(node, AtomicUpdate):
                self._update(node, place, text)
            else:
                self.put(place, node.value.type, text)

    def put(self, element: str, scalar: Scalar, text: str) -> None:
        """Emits the write of one scalar; the bytes beside it are kept."""
        if is_packed(scalar):
            self._exchange_part(scalar, element, text)
        elif not self.atomic:
            self.line(f"out[{element}] = {text};")
        elif scalar in (S64, U64):
            bits = self.let(scalar, text)
            low = f"0xffffffff{scalar.suffix}"
            self.line(f"atomicStore(&out[2u * {element}], u32({bits} & {low}));")
            self.line(f"atomicStore(&out[2u * {element} + 1u], u32({bits} >> 32u));")
        else:
            bits = self.ops.bitcast(text, scalar, U32) if scalar == F32 else text
            self.line(f"atomicStore(&out[{element}], {bits});")

    def put_own_part(self, array: str, scalar: Scalar, element: str, text: str) -> None:
        """Emits the write of a part of a word that no other position writes."""
        word, offset = f"{array}[{word_index(scalar, element)}]", bit_offset(scalar, element)
        self.line(f"atomicAnd(&{word}, ~({field(scalar)} << {offset}));")
        self.line(f"atomicOr(&{word}, {stored(scalar, text)} << {offset});")

    def _exchange_part(self, scalar: Scalar, element: str, text: str) -> None:
        """Emits the atomic replacement of a part of a word; the other parts are kept."""
        self._exchange_bits(scalar, element, stored(scalar, text))

    def _exchange_bits(self, scalar: Scalar, element: str, bits: str) -> None:
        offset = bit_offset(scalar, element)
        without = f"(old & ~({field(scalar)} << {offset}))"
        self._exchange(word_index(scalar, element), f"{without} | ({bits} << {offset})")

    def _update(self, node: AtomicUpdate, element: str, text: str) -> None:
        op, scalar = node.op, self.program.output.type
        if is_packed(scalar):
            offset = bit_offset(scalar, element)
            old = self.ops.convert(f"({unpacked(scalar, 'old', offset)})", scalar, scalar.computed)
            total = self._updated(op, scalar.computed, old, text)
            self._exchange_part(
                scalar, element, self.ops.convert(f"({total})", scalar.computed, scalar)
            )
        elif not self.atomic:
            self.line(f"out[{element}] = {self._updated(op, scalar, f'out[{element}]', text)};")
        elif scalar in (S32, U32):
            self.line(f"atomic{op.capitalize()}(&out[{element}], {text});")
        elif scalar in (S64, U64):
            bits, low = self.let(scalar, text), self.name("w")
            self.line(f"let {low}: u32 = u32({bits} & 0xffffffff{scalar.suffix});")
            before = self.let(U32, f"atomicAdd(&out[2u * {element}], {low})")
            carry = f"u32({before} + {low} < {low})"
            self.line(f"atomicAdd(&out[2u * {element} + 1u], u32({bits} >> 32u) + {carry});")
        else:
            total = self._updated(op, scalar, "bitcast<f32>(old)", text)
            self._exchange(element, f"bitcast<u32>({total})")

    def _updated(self, op: str, scalar: Scalar, old: str, text: str) -> str:
        if op != "add":
            return self.ops.extreme(op, scalar, old, text)
        return f"{old} + {text}" if scalar.is_float else self.ops.integer("add", scalar, old, text)

    def _exchange(self, word: str, changed: str) -> None:
        """Emits a compare-and-exchange of a word; `changed` is computed from its `old` value."""
        place = self.let(U32, word, "w")
        with self.inside(""):
            self.line(f"var old = atomicLoad(&out[{place}]);")
            if self.loops == "checked":
                self.line("var done = false;")
            with self.inside("loop"):
                self.line(f"let tried = atomicCompareExchangeWeak(&out[{place}], old, {changed});")
                if self.loops == "checked":
                    self.line("if (tried.exchanged) { done = true; break; }")
                    self.line(SECOND_EXIT)
                else:
                    self.line("if (tried.exchanged) { break; }")
                self.line("old = tried.old_value;")
            if self.loops == "checked":
                self.line("if (!done) { failed = true; }")
