"""The native part of the call gate: finds a call among those known, and launches it.

It runs under the GIL, reads objects of CPython at the offsets that its context names, and changes
none of them. A call that it does not know is left to Python.
"""

from __future__ import annotations

from dala.runtime.kernels.call_gate_checks import CHECKS
from dala.runtime.kernels.call_gate_layout import (
    BUCKETS,
    BUFFER_WORDS,
    CONTEXT,
    ITEMS,
    SIZE,
    WAYS,
    Context,
    Known,
    context,
    field,
    word,
)

ENTRY = "dala_call_again"
CODE = f"""{CHECKS}
; Whether the buffers share memory only where those of the known call did: all of it, or nothing.
define internal i1 @may_move(ptr %known, i64 %count) {{
entry:
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.after, %turned ]
  %i.word = mul i64 %i, {BUFFER_WORDS}
  %i.size.to = add i64 %i.word, {Known.BUFFER + 2}
{word("i.size", "%known", "%i.size.to", "i64")}
  %i.old.to = add i64 %i.word, {Known.BUFFER + 3}
{word("i.old", "%known", "%i.old.to", "i64")}
  %i.to = add i64 %i, {Known.PLACE}
{word("i.new", "%known", "%i.to", "i64")}
  %i.end = add i64 %i.new, %i.size
  br label %inner
inner:
  %j = phi i64 [ 0, %outer ], [ %j.after, %next ]
  %below = icmp slt i64 %j, %i
  br i1 %below, label %pair, label %turned
pair:
  %j.word = mul i64 %j, {BUFFER_WORDS}
  %j.size.to = add i64 %j.word, {Known.BUFFER + 2}
{word("j.size", "%known", "%j.size.to", "i64")}
  %j.old.to = add i64 %j.word, {Known.BUFFER + 3}
{word("j.old", "%known", "%j.old.to", "i64")}
  %j.to = add i64 %j, {Known.PLACE}
{word("j.new", "%known", "%j.to", "i64")}
  %j.end = add i64 %j.new, %j.size
  %met = icmp eq i64 %i.old, %j.old
  %meet = icmp eq i64 %i.new, %j.new
  %alike = icmp eq i1 %met, %meet
  %begins = icmp slt i64 %i.new, %j.end
  %ends = icmp slt i64 %j.new, %i.end
  %touches = and i1 %begins, %ends
  %whole = xor i1 %meet, true
  %partly = and i1 %touches, %whole
  %clear = xor i1 %partly, true
  %fine = and i1 %alike, %clear
  br i1 %fine, label %next, label %no
next:
  %j.after = add i64 %j, 1
  br label %inner
turned:
  %i.after = add i64 %i, 1
  %more = icmp slt i64 %i.after, %count
  br i1 %more, label %outer, label %yes
yes:
  ret i1 true
no:
  ret i1 false
}}

; Notes where the buffers are, and tells the launches.
define internal void @move(ptr %known, i64 %count) {{
entry:
{word("pointers", "%known", Known.POINTERS, "i64")}
{word("list", "%known", Known.POINTER_LIST)}
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %i.after, %each ]
  %to = add i64 %i, {Known.PLACE}
{word("place", "%known", "%to", "i64")}
  %word = mul i64 %i, {BUFFER_WORDS}
  %old.to = add i64 %word, {Known.BUFFER + 3}
  %old = getelementptr i64, ptr %known, i64 %old.to
  store i64 %place, ptr %old
  %i.after = add i64 %i, 1
  %more = icmp slt i64 %i.after, %count
  br i1 %more, label %each, label %told
told:
  %p = phi i64 [ 0, %each ], [ %p.after, %tell ]
  %some = icmp slt i64 %p, %pointers
  br i1 %some, label %tell, label %over
tell:
  %first = mul i64 %p, 3
  %own = getelementptr i64, ptr %list, i64 %first
{word("target", "%own", 0)}
{word("number", "%own", 1, "i64")}
{word("offset", "%own", 2, "i64")}
  %from = add i64 %number, {Known.PLACE}
{word("base", "%known", "%from", "i64")}
  %address = add i64 %base, %offset
  store i64 %address, ptr %target
  %p.after = add i64 %p, 1
  br label %told
over:
  ret void
}}

; Makes a known call on the buffers that were noted; returns whether it could be made.
define internal i1 @launch(ptr %known) alwaysinline {{
entry:
{word("count", "%known", Known.BUFFERS, "i64")}
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %i.after, %here ]
  %word = mul i64 %i, {BUFFER_WORDS}
  %old.to = add i64 %word, {Known.BUFFER + 3}
{word("old", "%known", "%old.to", "i64")}
  %new.to = add i64 %i, {Known.PLACE}
{word("new", "%known", "%new.to", "i64")}
  %stays = icmp eq i64 %old, %new
  br i1 %stays, label %here, label %elsewhere
here:
  %i.after = add i64 %i, 1
  %more = icmp slt i64 %i.after, %count
  br i1 %more, label %each, label %ready
elsewhere:
  %may = call i1 @may_move(ptr %known, i64 %count)
  br i1 %may, label %moved, label %no
moved:
  call void @move(ptr %known, i64 %count)
  br label %ready
ready:
{word("launches", "%known", Known.LAUNCHES, "i64")}
{word("list", "%known", Known.LAUNCH_LIST)}
  br label %run
run:
  %n = phi i64 [ 0, %ready ], [ %n.after, %run ]
  %first = mul i64 %n, 4
  %own = getelementptr i64, ptr %list, i64 %first
{word("function", "%own", 0)}
{word("slots", "%own", 1)}
{word("rows", "%own", 2, "i64")}
{word("width", "%own", 3, "i64")}
  %status = call i32 %function(ptr %slots, i64 0, i64 %rows, i64 0, i64 %width)
  %n.after = add i64 %n, 1
  %another = icmp slt i64 %n.after, %launches
  br i1 %another, label %run, label %yes
yes:
  ret i1 true
no:
  ret i1 false
}}

; Called by Python with a kernel or its name, inputs, an output and parameters: True if it was made.
define ptr @{ENTRY}(ptr %self, ptr %arguments, i64 %given) {{
entry:
  %context = getelementptr i8, ptr %self, i64 {CONTEXT}
{context("true", Context.TRUE)}
{context("false", Context.FALSE)}
{context("profiles", Context.PROFILES)}
{field("profiled", "%profiles", SIZE, "i64")}
  %unseen = icmp eq i64 %profiled, 0
  br i1 %unseen, label %named, label %answer
named:
{word("kernel_or_name", "%arguments", 0)}
{word("inputs", "%arguments", 1)}
{word("output", "%arguments", 2)}
{word("params", "%arguments", 3)}
{context("str", Context.STR)}
{field("kind", "%kernel_or_name", 8)}
  %is_name = icmp eq ptr %kind, %str
  br i1 %is_name, label %look_up, label %listed
look_up:
{context("kernels", Context.KERNELS)}
{context("get", Context.GET_ITEM)}
  %registered = call ptr %get(ptr %kernels, ptr %kernel_or_name)
  br label %listed
listed:
  %kernel = phi ptr [ %kernel_or_name, %named ], [ %registered, %look_up ]
  %unknown = icmp eq ptr %kernel, null
  br i1 %unknown, label %answer, label %sequences
sequences:
{field("sequence", "%inputs", 8)}
{context("list", Context.LIST)}
{context("tuple", Context.TUPLE)}
  %is_list = icmp eq ptr %sequence, %list
  %is_tuple = icmp eq ptr %sequence, %tuple
  %is_either = or i1 %is_list, %is_tuple
  br i1 %is_either, label %items, label %answer
items:
{field("count", "%inputs", SIZE, "i64")}
  %inside = getelementptr i8, ptr %inputs, i64 {ITEMS}
  %outside = load ptr, ptr %inside
  %first = select i1 %is_list, ptr %outside, ptr %inside
{context("calls", Context.CALLS)}
  %number = ptrtoint ptr %kernel to i64
  %high = lshr i64 %number, 10
  %mixed = xor i64 %number, %high
  %shifted = lshr i64 %mixed, 4
  %bucket = and i64 %shifted, {BUCKETS - 1}
  %start = mul i64 %bucket, {WAYS * Known.WORDS}
  br label %each
each:
  %way = phi i64 [ 0, %items ], [ %way.after, %next ]
  %step = mul i64 %way, {Known.WORDS}
  %place = add i64 %start, %step
  %known = getelementptr i64, ptr %calls, i64 %place
  %same = call i1 @is_call(
    ptr %context, ptr %known, ptr %kernel, ptr %first, i64 %count, ptr %output, ptr %params
  )
  br i1 %same, label %found, label %next
next:
  %way.after = add i64 %way, 1
  %more = icmp slt i64 %way.after, {WAYS}
  br i1 %more, label %each, label %answer
found:
  %made = call i1 @launch(ptr %known)
  br i1 %made, label %answer, label %refused
refused:
  br label %answer
answer:
  %result = phi ptr [ %false, %entry ], [ %false, %listed ], [ %false, %sequences ],
    [ %false, %next ], [ %true, %found ], [ %false, %refused ]
{context("increase", Context.INCREASE)}
  call void %increase(ptr %result)
  ret ptr %result
}}
"""
