"""The call gate: makes small calls that were made before without a line of Python in between.

What Python does for such a call takes 2 µs, and the kernel itself often less. So a function that
LLVM compiles compares the arguments with those of earlier calls, by the addresses of what they are
made of, and launches. It is there on CPython with its GIL, whose objects it reads; elsewhere, and
for calls that take long, calls go the usual way.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dala.devices import CPU
from dala.devices.cpu.memory import HostMemory
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels import call_gate_layout as layout
from dala.runtime.kernels.call_gate_code import CODE, ENTRY
from dala.runtime.kernels.call_gate_layout import MOST_BUFFERS, MOST_PARAMS, Context, Known
from dala.runtime.profiling.profile import ACTIVE

if TYPE_CHECKING:
    from dala.runtime.kernels.repeated_calls import BoundCall

Again = Callable[[Any, Any, Any, Any], bool]

_FASTCALL = 0x80
"""The flag of functions that are given an array of arguments."""
_PLAIN = (bool, int, float, str, type(None))


def _no_call(kernel: Any, inputs: Any, output: Any, params: Any) -> bool:
    return False


again: Again = _no_call
"""Makes a call that was made before: on a kernel or its name, inputs, an output, and parameters.

Returns whether it did; until the first call was learned, it never does.
"""
_gate: CallGate | None = None


def learn(
    kernel: object,
    buffers: Sequence[Buffer],
    params: Mapping[str, Any] | None,
    call: BoundCall,
) -> None:
    """Has a brief call made by `again` from now on."""
    global _gate, again  # noqa: PLW0603  # one to a process, as the registry of kernels is
    if _gate is None:
        if not _is_cpython():
            return
        from dala.runtime.kernels.kernel import KERNELS

        _gate = CallGate(KERNELS)
        again = _gate.again
    _gate.learn(kernel, buffers, params, call)


class CallGate:
    """Calls that were made before, and the function that makes them again."""

    def __init__(self, kernels: Mapping[str, object]) -> None:
        self._calls = (ctypes.c_int64 * (layout.BUCKETS * layout.WAYS * Known.WORDS))()
        self._kept: dict[int, tuple[object, ...]] = {}
        """What the addresses in a known call belong to, by its number."""
        self._turns = [0] * layout.BUCKETS
        self._lock = threading.Lock()
        self._code = CPU.compiler.compile(CODE, ENTRY)
        words = _context(ctypes.addressof(self._calls), kernels)
        self._context = struct.pack(f"={len(words)}q", *words)
        self._name = ctypes.create_string_buffer(b"again")
        address = self._code.addresses[ENTRY]
        self._method = _Method(ctypes.addressof(self._name), address, _FASTCALL, None)
        new_function = ctypes.pythonapi.PyCFunction_NewEx
        new_function.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        new_function.restype = ctypes.py_object
        self.again: Again = new_function(ctypes.addressof(self._method), self._context, None)

    def learn(
        self,
        kernel: object,
        buffers: Sequence[Buffer],
        params: Mapping[str, Any] | None,
        call: BoundCall,
    ) -> None:
        """Makes a call known, which is on an output and inputs."""
        launches, given = call.again.brief(), dict(params or {})
        if launches is None or len(buffers) > MOST_BUFFERS or len(given) > MOST_PARAMS:
            return
        if any(type(name) is not str or not _is_plain(given[name]) for name in given):
            return
        launch_words = _words([word for launch in launches for word in launch])
        pointer_words = _words(
            [
                item
                for words, word, number, offset in call.pointers
                for item in (ctypes.addressof(words) + 8 * word, number, offset)
            ]
        )
        places = [item.memory.address for item in buffers]  # type: ignore[attr-defined]
        entry: dict[int, int] = {
            Known.BUFFERS: len(buffers),
            Known.PARAMS: len(given),
            Known.LAUNCHES: len(launches),
            Known.LAUNCH_LIST: ctypes.addressof(launch_words),
            Known.POINTERS: len(call.pointers),
            Known.POINTER_LIST: ctypes.addressof(pointer_words),
        }
        for number, (item, place) in enumerate(zip(buffers, places, strict=True)):
            first = Known.BUFFER + layout.BUFFER_WORDS * number
            size = item.memory.size_bytes
            words = (id(item.scalar), id(item.shape), size, place, id(place), place)
            entry.update(enumerate(words, first))
        for number, (name, value) in enumerate(given.items()):
            entry.update(enumerate((id(name), id(value)), Known.PARAM + 2 * number))
        kept = (call, launch_words, pointer_words, places, given, [item.shape for item in buffers])
        self._put(kernel, entry, kept)

    def _put(self, kernel: object, entry: Mapping[int, int], kept: tuple[object, ...]) -> None:
        bucket = layout.bucket_of(id(kernel))
        with self._lock:
            number = bucket * layout.WAYS + self._turns[bucket]
            self._turns[bucket] = (self._turns[bucket] + 1) % layout.WAYS
            first = number * Known.WORDS
            self._calls[first + Known.KERNEL] = 0  # so that nobody makes it meanwhile
            for word, value in entry.items():
                self._calls[first + word] = value
            gone = weakref.ref(kernel, lambda _: self._forget(number))
            self._kept[number] = (gone, *kept)
            self._calls[first + Known.KERNEL] = id(kernel)

    def _forget(self, number: int) -> None:
        self._calls[number * Known.WORDS + Known.KERNEL] = 0
        self._kept.pop(number, None)


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def _is_cpython() -> bool:
    """Whether this Python lays out its objects as the gate reads them."""
    if sys.implementation.name != "cpython" or struct.calcsize("P") != 8:
        return False
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    number, item = 2.5, object()
    items, pair = [item], (item, number)
    return (
        all(_word(id(x) + 8) == id(type(x)) for x in (number, items, pair, "name", item, None))
        and _word(id(items) + layout.SIZE) == 1
        and _word(_word(id(items) + layout.ITEMS)) == id(item)
        and _word(id(pair) + layout.SIZE) == 2
        and _word(id(pair) + layout.ITEMS) == id(item)
        and _word(id(number) + layout.VALUE) == struct.unpack("=q", struct.pack("=d", number))[0]
        and ctypes.string_at(id(b"dala gate") + layout.CONTEXT, 9) == b"dala gate"
    )


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _words(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(1, len(values)))(*values)


def _is_plain(value: Any) -> bool:
    """Whether a value can never change."""
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return type(value) in _PLAIN


def _slot(owner: type, name: str) -> int:
    """Returns where objects keep an attribute of their slots."""
    member = _word(id(owner.__dict__[name]) + 40)
    return _word(member + 16)


def _context(calls: int, kernels: Mapping[str, object]) -> list[int]:
    python = ctypes.pythonapi
    functions = {
        Context.GET_ITEM: python.PyDict_GetItemWithError,
        Context.COUNT_ITEMS: python.PyDict_Size,
        Context.COMPARE: python.PyObject_RichCompareBool,
        Context.TO_INTEGER: python.PyLong_AsLongLong,
        Context.INCREASE: python.Py_IncRef,
    }
    objects = {
        Context.KERNELS: kernels,
        Context.PROFILES: ACTIVE,
        Context.STR: str,
        Context.LIST: list,
        Context.TUPLE: tuple,
        Context.DICT: dict,
        Context.FLOAT: float,
        Context.NONE: None,
        Context.TRUE: True,
        Context.FALSE: False,
        Context.BUFFER: Buffer,
    }
    types = [HostMemory, *HostMemory.__subclasses__()]
    words = {
        Context.CALLS: calls,
        Context.MEMORY_SLOT: _slot(Buffer, "_memory"),
        Context.SCALAR_SLOT: _slot(Buffer, "scalar"),
        Context.SHAPE_SLOT: _slot(Buffer, "shape"),
        Context.ADDRESS_SLOT: _slot(HostMemory, "address"),
        Context.HOST_TYPES: len(types),
    }
    words.update({key: id(item) for key, item in objects.items()})
    for key, function in functions.items():
        words[key] = ctypes.cast(function, ctypes.c_void_p).value or 0
    return [*(words[key] for key in Context), *map(id, types)]
