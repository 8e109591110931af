"""Loops that may be long, as LLVM IR: they pay for their turns, and are heard of now and then.

A strip has a tank, filled a slice at a time. A loop takes from it what its turns cost, many of them
at once, so that all that a turn has of this is a subtraction and a jump that is not taken. Where
the tank is empty it asks for the next slice: then it is seen whether the run was stopped, whether a
position has gone too far, whether all of them together have, and on the main thread whether a
signal came. What is left in the tank at the end of a strip goes back.

Memory that a watched program gets, as its control: the address of what all threads share (its
status, and the turns that are left to all), that of what sees signals or 0, and how often it asked.
"""

from __future__ import annotations

from dala.emit.llvm_text import Writer
from dala.plan.limits import ALL_TOO_FAR, SLICE, STEP_LIMIT, STOPPED, TOO_FAR

LOOK_EVERY = 4
"""Slices after which it is looked whether a signal came."""
LOOK_FUNCTION = 9
"""The place of the function that looks, in what it is given."""
REFUELLED = "{ i64, i64, i32 }"
"""What is in the tank then, what was ever filled into it, and a status."""


def begin_strip(writer: Writer) -> None:
    """An empty tank, and no complaint."""
    writer.line("%tank = alloca [2 x i64]")
    writer.line("%fuel = getelementptr i64, ptr %tank, i64 0")
    writer.line("%taken = getelementptr i64, ptr %tank, i64 1")
    writer.line("store i64 0, ptr %fuel")
    writer.line("store i64 0, ptr %taken")
    _begin(writer)


def end_strip(writer: Writer) -> None:
    """What is left goes back."""
    left = writer.emit("i64", "load i64, ptr %fuel")
    shared = writer.emit("ptr", "load ptr, ptr %control")
    total = writer.emit("ptr", f"getelementptr i64, {shared}, i64 1")
    writer.emit("i64", f"atomicrmw add {total}, {left} monotonic")


def begin_span(writer: Writer) -> None:
    """The strip's tank, held where registers are."""
    for place, name in enumerate(("fuel", "taken")):
        writer.line(f"%{name} = alloca i64")
        at = writer.emit("ptr", f"getelementptr i64, ptr %tank, i64 {place}")
        held = writer.emit("i64", f"load i64, {at}")
        writer.line(f"store {held}, ptr %{name}")
    _begin(writer)


def end_span(writer: Writer) -> None:
    """The strip has its tank again."""
    for place, name in enumerate(("fuel", "taken")):
        held = writer.emit("i64", f"load i64, ptr %{name}")
        at = writer.emit("ptr", f"getelementptr i64, ptr %tank, i64 {place}")
        writer.line(f"store {held}, {at}")


def _begin(writer: Writer) -> None:
    writer.line("%mark = alloca i64")
    writer.line("store i64 0, ptr %mark")
    writer.line("%status = alloca i32")
    writer.line("store i32 0, ptr %status")


def begin_position(writer: Writer) -> None:
    """Turns are counted from here on."""
    taken = writer.emit("i64", "load i64, ptr %taken")
    left = writer.emit("i64", "load i64, ptr %fuel")
    used = writer.emit("i64", f"sub {taken}, {left.text}")
    writer.line(f"store {used}, ptr %mark")


def refuel(name: str) -> str:
    """The function that fills the tank, or says why it does not."""
    return _REFUEL.format(
        name=name,
        found=REFUELLED,
        slice=SLICE,
        limit=STEP_LIMIT,
        every=LOOK_EVERY - 1,
        place=LOOK_FUNCTION,
        too_far=TOO_FAR,
        stopped=STOPPED,
        all_too_far=ALL_TOO_FAR,
    )


_REFUEL = """\
define internal {found} @{name}(ptr %control, i64 %fuel, i64 %taken, i64 %mark, i64 %turns) #1 {{
entry:
  %shared = load ptr, ptr %control
  %status = load atomic i64, ptr %shared monotonic, align 8
  %over = icmp ne i64 %status, 0
  br i1 %over, label %refused, label %going
going:
  %used = sub i64 %taken, %fuel
  %here = sub i64 %used, %mark
  %wanted = add i64 %here, %turns
  %far = icmp sgt i64 %wanted, {limit}
  br i1 %far, label %refused, label %near
near:
  %total = getelementptr i64, ptr %shared, i64 1
  %before = atomicrmw sub ptr %total, i64 {slice} monotonic
  %empty = icmp slt i64 %before, {slice}
  br i1 %empty, label %refused, label %some
some:
  %eye = getelementptr i64, ptr %control, i64 1
  %look = load ptr, ptr %eye
  %blind = icmp eq ptr %look, null
  br i1 %blind, label %filled, label %seeing
seeing:
  %place = getelementptr i64, ptr %control, i64 2
  %asked = load i64, ptr %place
  %times = add i64 %asked, 1
  store i64 %times, ptr %place
  %part = and i64 %times, {every}
  %now = icmp eq i64 %part, 0
  br i1 %now, label %looking, label %filled
looking:
  %call = getelementptr i64, ptr %look, i64 {place}
  %function = load ptr, ptr %call
  %seen = call i32 %function(ptr %look)
  %signal = icmp ne i32 %seen, 0
  br i1 %signal, label %refused, label %filled
filled:
  %more = add i64 %fuel, {slice}
  %left = sub i64 %more, %turns
  %all = add i64 %taken, {slice}
  %a = insertvalue {found} poison, i64 %left, 0
  %b = insertvalue {found} %a, i64 %all, 1
  %c = insertvalue {found} %b, i32 0, 2
  ret {found} %c
refused:
  %why = phi i32 [ {stopped}, %entry ], [ {too_far}, %going ], [ {all_too_far}, %near ], \
[ {stopped}, %looking ]
  %wide = zext i32 %why to i64
  %said = atomicrmw or ptr %shared, i64 %wide monotonic
  %d = insertvalue {found} poison, i64 %fuel, 0
  %e = insertvalue {found} %d, i64 %taken, 1
  %f = insertvalue {found} %e, i32 %why, 2
  ret {found} %f
}}"""
