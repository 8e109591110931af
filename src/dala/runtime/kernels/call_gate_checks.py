"""Native code of the call gate that tells whether a call is one that is known."""

from __future__ import annotations

from dala.runtime.kernels.call_gate_layout import (
    BUFFER_WORDS,
    VALUE,
    Context,
    Known,
    context,
    field,
    word,
)

CHECKS = f"""
; Whether a memory is on the host, so that it has an address.
define internal i1 @is_host(ptr %context, ptr %memory) alwaysinline {{
entry:
{field("type", "%memory", 8)}
{context("count", Context.HOST_TYPES, "i64")}
  br label %each
each:
  %i = phi i64 [ 1, %entry ], [ %i.after, %other ]
  %place = add i64 %i, {Context.HOST_TYPES}
{word("known", "%context", "%place")}
  %same = icmp eq ptr %known, %type
  br i1 %same, label %over, label %other
other:
  %i.after = add i64 %i, 1
  %more = icmp sle i64 %i.after, %count
  br i1 %more, label %each, label %over
over:
  %found = phi i1 [ true, %each ], [ false, %other ]
  ret i1 %found
}}

; Whether a buffer is as that of the known call; notes where it is.
define internal i1 @is_buffer(ptr %context, ptr %known, i64 %number, ptr %buffer) alwaysinline {{
entry:
  %word = mul i64 %number, {BUFFER_WORDS}
  %first = add i64 %word, {Known.BUFFER}
  %own = getelementptr i64, ptr %known, i64 %first
{context("class", Context.BUFFER)}
{field("type", "%buffer", 8)}
  %is_buffer = icmp eq ptr %type, %class
  br i1 %is_buffer, label %scalars, label %no
scalars:
{context("scalar_slot", Context.SCALAR_SLOT, "i64")}
{field("scalar", "%buffer", "%scalar_slot")}
{word("own_scalar", "%own", 0)}
  %same_scalar = icmp eq ptr %scalar, %own_scalar
  br i1 %same_scalar, label %shapes, label %no
shapes:
{context("shape_slot", Context.SHAPE_SLOT, "i64")}
{field("shape", "%buffer", "%shape_slot")}
{word("own_shape", "%own", 1)}
  %same_shape = icmp eq ptr %shape, %own_shape
  br i1 %same_shape, label %memories, label %compare
compare:
{context("equal", Context.COMPARE)}
  %answer = call i32 %equal(ptr %shape, ptr %own_shape, i32 2)
  %alike = icmp eq i32 %answer, 1
  br i1 %alike, label %memories, label %no
memories:
{context("memory_slot", Context.MEMORY_SLOT, "i64")}
{field("memory", "%buffer", "%memory_slot")}
  %host = call i1 @is_host(ptr %context, ptr %memory)
  br i1 %host, label %address, label %no
address:
{context("address_slot", Context.ADDRESS_SLOT, "i64")}
{field("object", "%memory", "%address_slot")}
{word("first_object", "%own", 4)}
{word("first_place", "%own", 5, "i64")}
{word("old", "%own", 3, "i64")}
  %at_first = icmp eq ptr %object, %first_object
  br i1 %at_first, label %placed, label %read
read:
{context("integer", Context.TO_INTEGER)}
  %value = call i64 %integer(ptr %object)
  br label %placed
placed:
  %place = phi i64 [ %first_place, %address ], [ %value, %read ]
  %to = add i64 %number, {Known.PLACE}
  %noted = getelementptr i64, ptr %known, i64 %to
  store i64 %place, ptr %noted
  %apart = xor i64 %place, %old
  %in_line = and i64 %apart, 63
  %aligned = icmp eq i64 %in_line, 0
  ret i1 %aligned
no:
  ret i1 false
}}

; Whether a parameter is as that of the known call; floats may be others of the same bits.
define internal i1 @is_value(ptr %context, ptr %own, ptr %value) alwaysinline {{
entry:
  %same = icmp eq ptr %value, %own
  br i1 %same, label %yes, label %given
given:
  %missing = icmp eq ptr %value, null
  br i1 %missing, label %no, label %types
types:
{context("float", Context.FLOAT)}
{field("type", "%value", 8)}
{field("own_type", "%own", 8)}
  %is_float = icmp eq ptr %type, %float
  %was_float = icmp eq ptr %own_type, %float
  %both = and i1 %is_float, %was_float
  br i1 %both, label %bits, label %no
bits:
{field("number", "%value", VALUE, "i64")}
{field("own_number", "%own", VALUE, "i64")}
  %alike = icmp eq i64 %number, %own_number
  ret i1 %alike
yes:
  ret i1 true
no:
  ret i1 false
}}

; Whether the known call is this one.
define internal i1 @is_call(
    ptr %context, ptr %known, ptr %kernel, ptr %items, i64 %inputs, ptr %output, ptr %params
) alwaysinline {{
entry:
{word("own_kernel", "%known", Known.KERNEL)}
  %same_kernel = icmp eq ptr %own_kernel, %kernel
  br i1 %same_kernel, label %counted, label %no
counted:
{word("buffers", "%known", Known.BUFFERS, "i64")}
  %given = add i64 %inputs, 1
  %as_many = icmp eq i64 %buffers, %given
  br i1 %as_many, label %made, label %no
made:
  %fits = call i1 @is_buffer(ptr %context, ptr %known, i64 0, ptr %output)
  br i1 %fits, label %each, label %no
each:
  %i = phi i64 [ 0, %made ], [ %i.after, %next ]
  %some = icmp slt i64 %i, %inputs
  br i1 %some, label %input, label %named
input:
{word("item", "%items", "%i")}
  %i.after = add i64 %i, 1
  %same = call i1 @is_buffer(ptr %context, ptr %known, i64 %i.after, ptr %item)
  br i1 %same, label %next, label %no
next:
  br label %each
named:
{word("values", "%known", Known.PARAMS, "i64")}
{context("none", Context.NONE)}
  %nothing = icmp eq ptr %params, %none
  br i1 %nothing, label %without, label %with
without:
  %no_values = icmp eq i64 %values, 0
  ret i1 %no_values
with:
{context("dict", Context.DICT)}
{field("kind", "%params", 8)}
  %is_dict = icmp eq ptr %kind, %dict
  br i1 %is_dict, label %measured, label %no
measured:
{context("length", Context.COUNT_ITEMS)}
  %length.of = call i64 %length(ptr %params)
  %as_long = icmp eq i64 %length.of, %values
  br i1 %as_long, label %parameters, label %no
parameters:
  %p = phi i64 [ 0, %measured ], [ %p.after, %parameter.fits ]
  %left = icmp slt i64 %p, %values
  br i1 %left, label %parameter, label %yes
parameter:
  %pair = mul i64 %p, 2
  %name.to = add i64 %pair, {Known.PARAM}
{word("name", "%known", "%name.to")}
  %value.to = add i64 %pair, {Known.PARAM + 1}
{word("value", "%known", "%value.to")}
{context("get", Context.GET_ITEM)}
  %now = call ptr %get(ptr %params, ptr %name)
  %alike = call i1 @is_value(ptr %context, ptr %value, ptr %now)
  br i1 %alike, label %parameter.fits, label %no
parameter.fits:
  %p.after = add i64 %p, 1
  br label %parameters
yes:
  ret i1 true
no:
  ret i1 false
}}
"""
