"""Handles signals while the main thread computes, since Python handles them only when asked.

Python notes Ctrl-C at once, but handles it when the main thread returns to the interpreter, which
may be minutes later. So compiled code asks now and then whether a signal arrived, and whether its
handler raised.
"""

from __future__ import annotations

import ctypes
import os

from dala.emit.llvm.watchdog import LOOK_FUNCTION

LOOK_NS = 50_000_000
"""The interval between checks: a check takes the GIL, which others may hold."""

_CLOCK, _LATEST, _FIRST_CALL, _RAISED = 0, 1, 2, 6
_WORDS = LOOK_FUNCTION + 1
_CALLS = ("PyGILState_Ensure", "PyErr_CheckSignals", "PyErr_Fetch", "PyGILState_Release")

LOOK = f"""
define i32 @dala_look(ptr %look) {{
entry:
  %raised = getelementptr i64, ptr %look, i64 {_RAISED}
  %first = load ptr, ptr %raised
  %known = icmp ne ptr %first, null
  br i1 %known, label %yes, label %ask
ask:
  %clock = load ptr, ptr %look
  %timed = icmp ne ptr %clock, null
  br i1 %timed, label %measure, label %check
measure:
  %time = alloca [2 x i64]
  %unused = call i32 %clock(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %place = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %place
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  %latest = getelementptr i64, ptr %look, i64 {_LATEST}
  %before = load i64, ptr %latest
  %since = sub i64 %now, %before
  %early = icmp slt i64 %since, {LOOK_NS}
  br i1 %early, label %no, label %late
late:
  store i64 %now, ptr %latest
  br label %check
check:
  %a = getelementptr i64, ptr %look, i64 {_FIRST_CALL}
  %b = getelementptr i64, ptr %look, i64 {_FIRST_CALL + 1}
  %c = getelementptr i64, ptr %look, i64 {_FIRST_CALL + 2}
  %d = getelementptr i64, ptr %look, i64 {_FIRST_CALL + 3}
  %ensure = load ptr, ptr %a
  %signals = load ptr, ptr %b
  %fetch = load ptr, ptr %c
  %release = load ptr, ptr %d
  %state = call i32 %ensure()
  %found = call i32 %signals()
  %some = icmp ne i32 %found, 0
  br i1 %some, label %take, label %leave
take:
  %value = getelementptr i64, ptr %look, i64 {_RAISED + 1}
  %trace = getelementptr i64, ptr %look, i64 {_RAISED + 2}
  call void %fetch(ptr %raised, ptr %value, ptr %trace)
  br label %leave
leave:
  call void %release(i32 %state)
  br i1 %some, label %yes, label %no
yes:
  ret i32 1
no:
  ret i32 0
}}
"""


class Watch:
    """The signal watch of one launch on the main thread, and what a handler raised meanwhile."""

    __slots__ = ("_memory", "address")

    def __init__(self, look: int) -> None:
        self._memory = (ctypes.c_void_p * _WORDS)(*_known())
        self._memory[LOOK_FUNCTION] = look
        self.address = ctypes.addressof(self._memory)

    def check(self) -> None:
        """Raises what a handler raised, if it did."""
        if self._memory[_RAISED]:
            raised = self._memory[_RAISED:LOOK_FUNCTION]
            self._memory[_RAISED:LOOK_FUNCTION] = [None] * 3
            ctypes.pythonapi.PyErr_Restore(*map(ctypes.c_void_p, raised))


def _known() -> list[int | None]:
    """Returns the addresses of the functions that are called: the clock, then Python's."""
    if not _FUNCTIONS:
        clock = getattr(ctypes.CDLL(None), "clock_gettime", None) if os.name == "posix" else None
        calls = [getattr(ctypes.pythonapi, name) for name in _CALLS]
        found = [None if each is None else _address(each) for each in (clock, *calls)]
        _FUNCTIONS.extend([found[0], None, *found[1:], *[None] * 3, None])
    return _FUNCTIONS


_FUNCTIONS: list[int | None] = []


def _address(function: object) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
