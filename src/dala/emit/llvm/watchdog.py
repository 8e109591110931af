"""Emits the watchdog for loops that may run long, as LLVM IR.

A chunk holds fuel, granted a slice at a time. A loop spends fuel for many iterations at once: an
iteration costs one subtraction and a branch that is not taken. Out of fuel, a loop requests the
next slice. Only then is it checked whether the run was stopped, whether this position or all
positions together exceeded their limit, and, on the main thread, whether a signal arrived. At the
end of a chunk the remaining fuel is returned.

The `control` block that a watched program receives holds: the address of what all threads share (a
status, and the iterations left), the address of a signal watch or 0, and how often it was asked.
"""

from __future__ import annotations

from dala.emit.llvm.ir_writer import Writer
from dala.plan.watchdog import ALL_TOO_FAR, SLICE, STEP_LIMIT, STOPPED, TOO_FAR

LOOK_EVERY = 4
"""Slices between two checks for signals."""
LOOK_FUNCTION = 9
"""The index of the checking function in the signal watch."""
REFUELLED = "{ i64, i64, i32 }"
"""The fuel after the grant, all fuel ever granted, and a status."""
_TANK = ("fuel", "taken")


def begin_chunk(writer: Writer) -> None:
    """Emits an empty fuel tank and a status of 0."""
    writer.line("%tank = alloca [2 x i64]")
    _begin(writer)


def end_chunk(writer: Writer) -> None:
    """Emits the return of the remaining fuel."""
    left = writer.emit("i64", "load i64, ptr %fuel")
    shared = writer.emit("ptr", "load ptr, ptr %control")
    total = writer.emit("ptr", f"getelementptr i64, {shared}, i64 1")
    writer.emit("i64", f"atomicrmw add {total}, {left} monotonic")


def begin_span(writer: Writer) -> None:
    """Emits a span's own copy of the chunk's fuel, which is held in registers."""
    _begin(writer)
    take_tank(writer)


def take_tank(writer: Writer) -> None:
    """Emits the load of the tank: before the first loop of a span, and after a call of a span.

    The access is volatile, because LLVM's NewGVN pass aborts on some loads and stores that it finds
    to be equal.
    """
    for place, name in enumerate(_TANK):
        at = writer.emit("ptr", f"getelementptr i64, ptr %tank, i64 {place}")
        held = writer.emit("i64", f"load volatile i64, {at}")
        writer.line(f"store {held}, ptr %{name}")


def give_tank(writer: Writer) -> None:
    """Emits the store of the tank: at the end of a span, and before a call of a span."""
    for place, name in enumerate(_TANK):
        held = writer.emit("i64", f"load i64, ptr %{name}")
        at = writer.emit("ptr", f"getelementptr i64, ptr %tank, i64 {place}")
        writer.line(f"store volatile {held}, {at}")


def _begin(writer: Writer) -> None:
    for name, type in (*((name, "i64") for name in _TANK), ("mark", "i64"), ("status", "i32")):
        writer.line(f"%{name} = alloca {type}")
        writer.line(f"store {type} 0, ptr %{name}")


def begin_position(writer: Writer) -> None:
    """Emits the mark from which a position's iterations are counted."""
    taken = writer.emit("i64", "load i64, ptr %taken")
    left = writer.emit("i64", "load i64, ptr %fuel")
    used = writer.emit("i64", f"sub {taken}, {left.text}")
    writer.line(f"store {used}, ptr %mark")


def refuel(name: str) -> str:
    """Returns the function that grants a slice of fuel, or a status that says why not."""
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
define internal {found} @{name}(ptr %control, i64 %fuel, i64 %taken, i64 %mark, i64 %count) #1 {{
entry:
  %shared = load ptr, ptr %control
  %status = load atomic i64, ptr %shared monotonic, align 8
  %over = icmp ne i64 %status, 0
  br i1 %over, label %refused, label %going
going:
  %used = sub i64 %taken, %fuel
  %here = sub i64 %used, %mark
  %wanted = add i64 %here, %count
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
  %left = sub i64 %more, %count
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
