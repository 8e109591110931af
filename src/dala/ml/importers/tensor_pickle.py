"""The few things that a pickle of tensors is made of, read without Python's unpickler.

A pickle is a program that may call anything. Here its instructions build numbers, texts, tuples,
lists and dicts; what it names and calls is handed to the caller, and nothing is imported or run.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from dala.base.record import value
from dala.errors import LimitError, ModelError

STEPS_LIMIT = 1 << 20
"""How many instructions a pickle may have; a state dict needs about 40 for each tensor."""


@value
class Global:
    """A class or function that a pickle names; `build` decides whether it may be called."""

    name: str


_MARK = object()
_CONSTANTS: dict[int, Callable[[], Any]] = {
    ord("N"): lambda: None,
    0x88: lambda: True,
    0x89: lambda: False,
    ord(")"): tuple,
    ord("]"): list,
    ord("}"): dict,
}
_NUMBERS = {ord("K"): "<B", ord("M"): "<H", ord("J"): "<i", ord("G"): ">d"}
_TEXTS = {ord("X"): "<I", 0x8C: "<B", 0x8D: "<Q"}
_PUTS = {ord("q"): "<B", ord("r"): "<I"}
_GETS = {ord("h"): "<B", ord("j"): "<I"}
_TUPLES = {0x85: 1, 0x86: 2, 0x87: 3}
_PASSED_OVER = {0x80: 1, 0x95: 8}


class TensorPickle:
    """One pickle within `data`: `load` gives what it makes, `at` is where it ends."""

    def __init__(
        self,
        what: str,
        data: memoryview,
        at: int = 0,
        *,
        find: Callable[[str], Global],
        build: Callable[[Global, tuple[Any, ...]], Any],
        persistent: Callable[[Any], Any],
    ) -> None:
        self.what, self.data, self.at = what, data, at
        self.find, self.build, self.persistent = find, build, persistent
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def load(self) -> Any:
        """Returns what the pickle makes."""
        for _ in range(STEPS_LIMIT):
            opcode = self._take(1)[0]
            if opcode == ord("."):
                return self._pop()
            self._step(opcode)
        raise LimitError(
            f"{self.what} has a pickle of more than {STEPS_LIMIT:,} instructions: that is more "
            f"than a state dict needs."
        )

    def _step(self, opcode: int) -> None:
        push = self.stack.append
        if opcode in _CONSTANTS:
            push(_CONSTANTS[opcode]())
        elif opcode in _NUMBERS:
            push(self._number(_NUMBERS[opcode]))
        elif opcode in _TEXTS:
            push(self._text(self._take(self._number(_TEXTS[opcode]))))
        elif opcode == 0x8A:
            push(int.from_bytes(self._take(self._number("<B")), "little", signed=True))
        elif opcode in _PUTS or opcode == 0x94:
            place = len(self.memo) if opcode == 0x94 else self._number(_PUTS[opcode])
            self.memo[place] = self._top()
        elif opcode in _GETS:
            place = self._number(_GETS[opcode])
            if place not in self.memo:
                raise self._broken(f"it asks for {place}, which it has not kept")
            push(self.memo[place])
        elif opcode == ord("("):
            push(_MARK)
        elif opcode == ord("t"):
            push(tuple(self._pop_to_mark()))
        elif opcode in _TUPLES:
            push(tuple([self._pop() for _ in range(_TUPLES[opcode])][::-1]))
        elif opcode in b"ae":
            items = [self._pop()] if opcode == ord("a") else self._pop_to_mark()
            self._held(list).extend(items)
        elif opcode in b"su":
            items = [self._pop(), self._pop()][::-1] if opcode == ord("s") else self._pop_to_mark()
            self._set_items(items)
        elif opcode == ord("c"):
            module, name = self._line(), self._line()
            push(self.find(f"{module}.{name}"))
        elif opcode == 0x93:
            name, module = self._popped(str), self._popped(str)
            push(self.find(f"{module}.{name}"))
        elif opcode == ord("R"):
            arguments, called = self._popped(tuple), self._popped(Global)
            push(self.build(called, arguments))
        elif opcode == ord("Q"):
            push(self.persistent(self._pop()))
        elif opcode == ord("b"):
            # What an OrderedDict is told about itself: the versions of the layers.
            self._pop()
            self._held(dict)
        elif opcode in _PASSED_OVER:
            self._take(_PASSED_OVER[opcode])
        else:
            raise self._broken(
                f"the instruction {opcode:#04x} has no place in a state dict: only tensors, and "
                f"what holds them, are read"
            )

    def _set_items(self, items: list[Any]) -> None:
        target = self._held(dict)
        if len(items) % 2:
            raise self._broken("a key has no value")
        for key, item in zip(items[::2], items[1::2], strict=True):
            # Others take long to compare, in a pickle that is made for that.
            if not isinstance(key, str | int):
                raise self._broken(f"a key is of type {type(key).__name__}, not a text or a number")
            target[key] = item

    def _take(self, size_bytes: int) -> memoryview:
        end = self.at + size_bytes
        if end > len(self.data):
            raise self._broken(
                f"{size_bytes:,} bytes are wanted, and {len(self.data) - self.at:,} are left"
            )
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def _number(self, format: str) -> Any:
        return struct.unpack(format, self._take(struct.calcsize(format)))[0]

    def _line(self) -> str:
        # No name is as long, and a search of the whole file would be repeated.
        head = bytes(self.data[self.at : self.at + 512])
        length = head.find(b"\n")
        if length < 0:
            raise self._broken("a name has no end")
        return self._text(self._take(length + 1)[:-1])

    def _text(self, data: memoryview) -> str:
        try:
            return str(data, "utf-8")
        except UnicodeDecodeError:
            raise self._broken("a text is not UTF-8") from None

    def _top(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise self._broken("a value is missing")
        return self.stack[-1]

    def _pop(self) -> Any:
        top = self._top()
        self.stack.pop()
        return top

    def _popped(self, kind: type) -> Any:
        top = self._pop()
        if not isinstance(top, kind):
            raise self._broken(f"{type(top).__name__} is where {kind.__name__} has to be")
        return top

    def _held(self, kind: type) -> Any:
        top = self._popped(kind)
        self.stack.append(top)
        return top

    def _pop_to_mark(self) -> list[Any]:
        items: list[Any] = []
        while self.stack and self.stack[-1] is not _MARK:
            items.append(self.stack.pop())
        if not self.stack:
            raise self._broken("a mark is missing")
        self.stack.pop()
        return items[::-1]

    def _broken(self, why: str) -> ModelError:
        return ModelError(
            f"{self.what} is no state dict, or is damaged at byte {self.at:,}: {why}."
        )
