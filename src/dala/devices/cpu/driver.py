"""The native part of sharing a launch: claiming chunks, and handing jobs to threads that are awake.

A job's chunks are dealt to its threads in equal shares of neighbours, so that a thread finds the
rows of the launch before in its own cache; whoever has finished its share takes from the others'.

Each worker has a box of eight words. The first is the job posted there, the same plus 1 while the
worker is in it, or 0; the second is 1 while the worker sleeps; the third tells the poster what the
worker needs: 0 nothing, 1 to be woken, 2 the job by way of its queue, since the box is taken.
"""

from __future__ import annotations

import platform

from dala.devices.cpu.signals import LOOK
from dala.plan.watchdog import STOPPED

BOX_WORDS = 8
ASLEEP, NEED = 1, 2
TO_WAKE, TO_QUEUE = 1, 2

ENTRIES = (
    "dala_drive",
    "dala_post",
    "dala_serve",
    "dala_finish",
    "dala_launch",
    "dala_alone",
    "dala_sequence",
    "dala_look",
)
FUNCTION, SLOTS, COUNT, SIZE, ROWS, WIDTH, BY_ROWS, THREADS, DONE, STATUS, TURNS, NEXT = range(12)
"""The words of a job; of the last there is one for each thread."""
JOB, WATCH, BOXES, WORKERS, SPINS = range(5)
"""The words of a launch."""


def _words(*names: str) -> str:
    """Returns the code that loads words of a job."""
    return "\n".join(
        f"  %p.{name} = getelementptr i64, ptr %job, i64 {globals()[name.upper()]}\n"
        f"  %{name} = load i64, ptr %p.{name}"
        for name in names
    )


_PAUSES = {
    "x86_64": "call void @llvm.x86.sse2.pause()",
    "amd64": "call void @llvm.x86.sse2.pause()",
    "aarch64": "call void @llvm.aarch64.hint(i32 1)",
    "arm64": "call void @llvm.aarch64.hint(i32 1)",
}
_PAUSE = _PAUSES.get(platform.machine().lower(), "")
"""Tells the processor that a thread only polls, so that its sibling gets more of it."""
_DECLARED = _PAUSE.replace("call", "declare").replace("i32 1", "i32")

DRIVER = f"""
{_DECLARED}
define void @dala_drive(ptr %job, ptr %look, ptr %own, i64 %self) {{
entry:
  %function = load ptr, ptr %job
  %p.theirs = getelementptr i64, ptr %job, i64 {SLOTS}
  %theirs = load ptr, ptr %p.theirs
  %alike = icmp eq ptr %own, null
  %slots = select i1 %alike, ptr %theirs, ptr %own
{_words("count", "size", "rows", "width", "by_rows", "threads")}
  %cut = icmp ne i64 %by_rows, 0
  %done = getelementptr i64, ptr %job, i64 {DONE}
  %status = getelementptr i64, ptr %job, i64 {STATUS}
  %nexts = getelementptr i64, ptr %job, i64 {NEXT}
  %blind = icmp eq ptr %look, null
  br label %share
share:
  %k = phi i64 [ 0, %entry ], [ %k.after, %empty ]
  %turned = add i64 %self, %k
  %whose = urem i64 %turned, %threads
  %next = getelementptr i64, ptr %nexts, i64 %whose
  %above = add i64 %whose, 1
  %product = mul i64 %above, %count
  %limit = udiv i64 %product, %threads
  br label %claim
claim:
  %i = atomicrmw add ptr %next, i64 1 monotonic
  %some = icmp slt i64 %i, %limit
  br i1 %some, label %strip, label %empty
empty:
  %k.after = add i64 %k, 1
  %others = icmp slt i64 %k.after, %threads
  br i1 %others, label %share, label %over
strip:
  %length = select i1 %cut, i64 %rows, i64 %width
  %begin = mul i64 %i, %size
  %far = add i64 %begin, %size
  %short = icmp slt i64 %far, %length
  %end = select i1 %short, i64 %far, i64 %length
  %row0 = select i1 %cut, i64 %begin, i64 0
  %row1 = select i1 %cut, i64 %end, i64 %rows
  %x0 = select i1 %cut, i64 0, i64 %begin
  %x1 = select i1 %cut, i64 %width, i64 %end
  %failed = load atomic i64, ptr %status monotonic, align 8
  %stop = icmp ne i64 %failed, 0
  br i1 %stop, label %counted, label %run
run:
  %code = call i32 %function(ptr %slots, i64 %row0, i64 %row1, i64 %x0, i64 %x1)
  %wide = zext i32 %code to i64
  %old = atomicrmw or ptr %status, i64 %wide monotonic
  br label %counted
counted:
  %before = atomicrmw add ptr %done, i64 1 release
  br i1 %blind, label %claim, label %seeing
seeing:
  %seen = call i32 @dala_look(ptr %look)
  %calm = icmp eq i32 %seen, 0
  br i1 %calm, label %claim, label %signalled
signalled:
  %known = atomicrmw or ptr %status, i64 {STOPPED} monotonic
  br label %claim
over:
  ret void
}}

; Posts a job in all boxes; returns how many workers need more than that.
define i64 @dala_post(ptr %job, ptr %boxes, i64 %workers) {{
entry:
  %address = ptrtoint ptr %job to i64
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %i.after, %posted ]
  %needy = phi i64 [ 0, %entry ], [ %needy.after, %posted ]
  %word = mul i64 %i, {BOX_WORDS}
  %box = getelementptr i64, ptr %boxes, i64 %word
  %pair = cmpxchg ptr %box, i64 0, i64 %address seq_cst seq_cst
  %free = extractvalue {{ i64, i1 }} %pair, 1
  %p.asleep = getelementptr i64, ptr %box, i64 1
  %asleep = load atomic i64, ptr %p.asleep seq_cst, align 8
  %need = select i1 %free, i64 %asleep, i64 {TO_QUEUE}
  %p.need = getelementptr i64, ptr %box, i64 {NEED}
  store i64 %need, ptr %p.need
  %any = icmp ne i64 %need, 0
  %one = zext i1 %any to i64
  %needy.after = add i64 %needy, %one
  br label %posted
posted:
  %i.after = add i64 %i, 1
  %more = icmp slt i64 %i.after, %workers
  br i1 %more, label %each, label %over
over:
  ret i64 %needy.after
}}

; Computes what is posted in a box, until nothing has come for a number of looks.
define void @dala_serve(ptr %box, i64 %self, i64 %spins) {{
entry:
  %asleep = getelementptr i64, ptr %box, i64 1
  br label %awake
awake:
  store atomic i64 0, ptr %asleep seq_cst, align 8
  br label %look
look:
  %n = phi i64 [ 0, %awake ], [ %n.after, %again ], [ 0, %served ]
  %posted = load atomic i64, ptr %box acquire, align 8
  %some = icmp ne i64 %posted, 0
  br i1 %some, label %take, label %again
again:
  {_PAUSE}
  %n.after = add i64 %n, 1
  %more = icmp slt i64 %n.after, %spins
  br i1 %more, label %look, label %tired
take:
  %busy = or i64 %posted, 1
  %pair = cmpxchg ptr %box, i64 %posted, i64 %busy seq_cst seq_cst
  %taken = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %taken, label %serve, label %served
serve:
  %job = inttoptr i64 %posted to ptr
  call void @dala_drive(ptr %job, ptr null, ptr null, i64 %self)
  store atomic i64 0, ptr %box release, align 8
  br label %served
served:
  br label %look
tired:
  store atomic i64 1, ptr %asleep seq_cst, align 8
  %late = load atomic i64, ptr %box seq_cst, align 8
  %missed = icmp ne i64 %late, 0
  br i1 %missed, label %awake, label %over
over:
  ret void
}}

; Computes what is left of a job; returns 1 once all of it is done and no worker is in it anymore.
define i64 @dala_finish(ptr %job, ptr %look, ptr %own, ptr %boxes, i64 %workers, i64 %spins) {{
entry:
  call void @dala_drive(ptr %job, ptr %look, ptr %own, i64 %workers)
  %address = ptrtoint ptr %job to i64
  %busy = or i64 %address, 1
{_words("count")}
  %done = getelementptr i64, ptr %job, i64 {DONE}
  br label %chunks
chunks:
  %n = phi i64 [ 0, %entry ], [ %n.after, %undone ]
  %ready = load atomic i64, ptr %done acquire, align 8
  %all = icmp sge i64 %ready, %count
  br i1 %all, label %box, label %undone
undone:
  {_PAUSE}
  %n.after = add i64 %n, 1
  %patient = icmp slt i64 %n.after, %spins
  br i1 %patient, label %chunks, label %no
box:
  %i = phi i64 [ 0, %chunks ], [ %i, %inside ], [ %i.after, %out ]
  %m = phi i64 [ %n, %chunks ], [ %m.after, %inside ], [ %m, %out ]
  %word = mul i64 %i, {BOX_WORDS}
  %place = getelementptr i64, ptr %boxes, i64 %word
  %pair = cmpxchg ptr %place, i64 %address, i64 0 seq_cst seq_cst
  %found = extractvalue {{ i64, i1 }} %pair, 0
  %within = icmp eq i64 %found, %busy
  br i1 %within, label %inside, label %out
inside:
  {_PAUSE}
  %m.after = add i64 %m, 1
  %wait = icmp slt i64 %m.after, %spins
  br i1 %wait, label %box, label %no
out:
  %i.after = add i64 %i, 1
  %more = icmp slt i64 %i.after, %workers
  br i1 %more, label %box, label %yes
yes:
  ret i64 1
no:
  ret i64 0
}}

; Computes all of a job on this thread.
define void @dala_alone(ptr %job) {{
entry:
  %function = load ptr, ptr %job
  %p.slots = getelementptr i64, ptr %job, i64 {SLOTS}
  %slots = load ptr, ptr %p.slots
{_words("rows", "width")}
  %status = call i32 %function(ptr %slots, i64 0, i64 %rows, i64 0, i64 %width)
  ret void
}}

; Posts a job that may have been done before, and computes it unless a worker has to be woken first.
; Returns 1 once all of it is done and no worker is in it anymore.
define i64 @dala_launch(ptr %launch) {{
entry:
  %job = load ptr, ptr %launch
  %p.look = getelementptr i64, ptr %launch, i64 {WATCH}
  %look = load ptr, ptr %p.look
  %p.boxes = getelementptr i64, ptr %launch, i64 {BOXES}
  %boxes = load ptr, ptr %p.boxes
  %p.workers = getelementptr i64, ptr %launch, i64 {WORKERS}
  %workers = load i64, ptr %p.workers
  %p.spins = getelementptr i64, ptr %launch, i64 {SPINS}
  %spins = load i64, ptr %p.spins
{_words("count", "threads")}
  %done = getelementptr i64, ptr %job, i64 {DONE}
  store i64 0, ptr %done
  %status = getelementptr i64, ptr %job, i64 {STATUS}
  store i64 0, ptr %status
  br label %share
share:
  %i = phi i64 [ 0, %entry ], [ %i.after, %share ]
  %product = mul i64 %i, %count
  %first = udiv i64 %product, %threads
  %place = add i64 %i, {NEXT}
  %next = getelementptr i64, ptr %job, i64 %place
  store i64 %first, ptr %next
  %i.after = add i64 %i, 1
  %more = icmp slt i64 %i.after, %threads
  br i1 %more, label %share, label %post
post:
  %needy = call i64 @dala_post(ptr %job, ptr %boxes, i64 %workers)
  %awake = icmp eq i64 %needy, 0
  br i1 %awake, label %finish, label %no
finish:
  %all = call i64 @dala_finish(ptr %job, ptr %look, ptr null, ptr %boxes, i64 %workers, i64 %spins)
  ret i64 %all
no:
  ret i64 0
}}

; Makes launches one after another, from one on; those of one chunk on this thread. Writes the
; number of the first that is posted, but not done, or of the end.
define void @dala_sequence(ptr %launches, ptr %reached, i64 %first, i64 %count) {{
entry:
  br label %each
each:
  %i = phi i64 [ %first, %entry ], [ %i.after, %done ]
  %some = icmp slt i64 %i, %count
  br i1 %some, label %take, label %over
take:
  %place = getelementptr ptr, ptr %launches, i64 %i
  %launch = load ptr, ptr %place
  %job = load ptr, ptr %launch
  %p.chunks = getelementptr i64, ptr %job, i64 {COUNT}
  %chunks = load i64, ptr %p.chunks
  %single = icmp eq i64 %chunks, 1
  br i1 %single, label %alone, label %shared
alone:
  call void @dala_alone(ptr %job)
  br label %done
shared:
  %all = call i64 @dala_launch(ptr %launch)
  %complete = icmp ne i64 %all, 0
  br i1 %complete, label %done, label %over
done:
  %i.after = add i64 %i, 1
  br label %each
over:
  store i64 %i, ptr %reached
  ret void
}}
{LOOK}"""
