"""Protocol Buffers messages as plain records, with nothing copied that is large.

The format's own parsers make room for what a file claims, and small messages grow a hundredfold in
them. This one reads by a table of the fields that matter, gives long ones as views of the data, and
counts: a message of more than `FIELDS_LIMIT` fields is refused before another library sees it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from dala.errors import LimitError, ModelError

FIELDS_LIMIT = 1 << 21
"""How many fields a message may have in all; a model of 10,000 nodes has about 300,000."""
DEPTH_LIMIT = 90
"""How deep messages may lie in each other: the libraries that read them next stop at 100."""

Schema = dict[str, dict[int, str]]
"""What the fields of each message are, as "name kind" or, where one may come often, "name kind*".

A kind is `int` (a varint, signed), `float` (four bytes), `text`, `bytes` (a view), `numbers` (views
of what is packed, and of each value that is not), or the name of another message. Other fields are
passed over.
"""
Message = dict[str, Any]
"""A field's name and what it holds: a list where it may come often, nothing where it is absent."""

_VARINT, _EIGHT, _LENGTH, _FOUR = 0, 1, 2, 5
_FIXED_BYTES = {_EIGHT: 8, _FOUR: 4}


def read_message(what: str, data: memoryview, schema: Schema, kind: str) -> Message:
    """Returns the message that is all of `data`; `what` names it in errors."""
    reader = _Reader(what, data, schema)
    return reader.message(kind, 0, len(data), 0)


def varints_in(packed: memoryview) -> int:
    """Returns how many packed varints there are: the last byte of each is below 128."""
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(packed, np.uint8) < 128))


def floats_in(numbers: Sequence[tuple[int, memoryview]], form: str = "f") -> list[float]:
    """The values of a field of floats, packed or not; `form` "d" is for those of eight bytes."""
    size = struct.calcsize(form)
    return [x for _, view in numbers for x in struct.unpack(f"<{len(view) // size}{form}", view)]


def integers_in(numbers: Sequence[tuple[int, memoryview]]) -> list[int]:
    """Returns the values of a field of varints, packed or not, as signed ones."""
    found: list[int] = []
    for _, view in numbers:
        value, shift = 0, 0
        for byte in view:
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                value &= (1 << 64) - 1
                found.append(value - (1 << 64) if value >> 63 else value)
                value, shift = 0, 0
    return found


class _Reader:
    def __init__(self, what: str, data: memoryview, schema: Schema) -> None:
        self.what, self.data, self.fields_left = what, data, FIELDS_LIMIT
        self.fields = {
            kind: {number: tuple(field.split()) for number, field in fields.items()}
            for kind, fields in schema.items()
        }

    def message(self, kind: str, start: int, end: int, depth: int) -> Message:
        if depth > DEPTH_LIMIT:
            raise LimitError(
                f"{self.what} has messages {depth} deep in each other at byte {start:,}, "
                f"of at most {DEPTH_LIMIT}."
            )
        known = self.fields[kind]
        found: Message = {}
        for number, wire, at, stop in self._fields(start, end):
            if number not in known:
                continue
            name, held = known[number]
            many = held.endswith("*")
            if held == "numbers*":
                found.setdefault(name, []).append((wire, self.data[at:stop]))
                continue
            if many and wire == _LENGTH and held == "int*":
                found.setdefault(name, []).extend(self._packed(at, stop))
                continue
            value = self._value(held.rstrip("*"), wire, at, stop, f"{kind}.{name}", depth)
            if many:
                found.setdefault(name, []).append(value)
            elif name in found and isinstance(value, dict):
                # Parsers merge such twins, each in its own way: what is checked might not be run.
                raise ModelError(f"{self.what} has {kind}.{name} twice, again at byte {at:,}.")
            else:
                found[name] = value
        return found

    def _value(self, held: str, wire: int, at: int, stop: int, where: str, depth: int) -> Any:
        if wire != {"int": _VARINT, "float": _FOUR}.get(held, _LENGTH):
            raise ModelError(
                f"{self.what} is no ONNX file, or is damaged: {where} at byte {at:,} has the wire "
                f"type {wire}."
            )
        if held == "int":
            return self._varint(at, stop)[0]
        if held == "float":
            return struct.unpack("<f", self.data[at:stop])[0]
        if held == "bytes":
            return self.data[at:stop]
        if held == "text":
            try:
                return str(self.data[at:stop], "utf-8")
            except UnicodeDecodeError:
                raise ModelError(
                    f"{self.what} is no ONNX file, or is damaged: {where} at byte {at:,} is no "
                    f"UTF-8 text."
                ) from None
        return self.message(held, at, stop, depth + 1)

    def _packed(self, at: int, stop: int) -> Iterator[int]:
        while at < stop:
            self._count(at)
            value, at = self._varint(at, stop)
            yield value

    def _fields(self, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Yields each field: its number, its wire type, and where its value begins and ends."""
        data = self.data
        while at < end:
            self._count(at)
            begin, tag = at, data[at]
            # Nearly all tags and lengths are one byte, for which a call takes too long.
            if tag < 128:
                at += 1
            else:
                tag, at = self._varint(at, end)
            number, wire = tag >> 3, tag & 7
            if wire == _LENGTH:
                if at < end and data[at] < 128:
                    length, at = data[at], at + 1
                else:
                    length, at = self._varint(at, end)
                stop = at + length
            elif wire == _VARINT:
                stop = self._varint(at, end)[1]
            elif wire in _FIXED_BYTES:
                stop = at + _FIXED_BYTES[wire]
            else:
                number = stop = 0
            if not 0 < number < 1 << 29:
                raise ModelError(
                    f"{self.what} is no ONNX file, or is damaged: at byte {begin:,} there is no "
                    f"field of a message."
                )
            if not at <= stop <= end:
                raise ModelError(
                    f"{self.what} is cut or damaged: field {number} at byte {begin:,} claims "
                    f"{stop - at:,} bytes, and {end - at:,} are left. Get the file again."
                )
            yield number, wire, at, stop
            at = stop

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        data, value = self.data, 0
        for shift in range(0, 70, 7):
            if at >= end:
                raise ModelError(
                    f"{self.what} is cut or damaged: it ends within a number at byte {at:,}. "
                    f"Get the file again."
                )
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                value &= (1 << 64) - 1
                return (value - (1 << 64) if value >> 63 else value), at
        raise ModelError(
            f"{self.what} is no ONNX file, or is damaged: the number that ends at byte {at:,} has "
            f"more than 10 bytes."
        )

    def _count(self, at: int) -> None:
        self.fields_left -= 1
        if self.fields_left < 0:
            raise LimitError(
                f"{self.what} has more than {FIELDS_LIMIT:,} fields up to byte {at:,}: that is "
                f"more than any model needs."
            )
