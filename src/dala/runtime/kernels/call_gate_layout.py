"""Where native code of the call gate finds what: words of its context and of known calls."""

from __future__ import annotations

from enum import IntEnum

BUCKETS, WAYS = 64, 4
"""The known calls: so many buckets, which a kernel's address chooses, of so many each."""
MOST_BUFFERS, MOST_PARAMS = 6, 6
BUFFER_WORDS = 6
SIZE, ITEMS, VALUE = 16, 24, 16
"""Offsets: of the length of a list or tuple, of its items, and of the number in a float."""
CONTEXT = 32
"""The offset of the bytes in a bytes object, which the context is."""


class Context(IntEnum):
    """The words of the context: addresses, and offsets of slots."""

    CALLS = 0
    KERNELS = 1
    PROFILES = 2
    STR = 3
    LIST = 4
    TUPLE = 5
    DICT = 6
    FLOAT = 7
    NONE = 8
    TRUE = 9
    FALSE = 10
    BUFFER = 11
    MEMORY_SLOT = 12
    SCALAR_SLOT = 13
    SHAPE_SLOT = 14
    ADDRESS_SLOT = 15
    GET_ITEM = 16
    COUNT_ITEMS = 17
    COMPARE = 18
    TO_INTEGER = 19
    INCREASE = 20
    HOST_TYPES = 21
    """How many types of host memory there are, which follow."""


class Known(IntEnum):
    """The words of a known call."""

    KERNEL = 0
    BUFFERS = 1
    PARAMS = 2
    LAUNCHES = 3
    LAUNCH_LIST = 4
    POINTERS = 5
    POINTER_LIST = 6
    BUFFER = 8
    """Of each buffer: its scalar, shape, size and address, then the first as object and number."""
    PARAM = BUFFER + BUFFER_WORDS * MOST_BUFFERS
    """Of each parameter: its name and its value."""
    PLACE = PARAM + 2 * MOST_PARAMS
    """Where each buffer is now."""
    WORDS = PLACE + MOST_BUFFERS


def bucket_of(address: int) -> int:
    """Returns the bucket of a kernel's calls."""
    return ((address ^ (address >> 10)) >> 4) & (BUCKETS - 1)


def word(name: str, base: str, place: int | str, type: str = "ptr") -> str:
    """Returns the code that loads a word."""
    return (
        f"  %{name}.at = getelementptr i64, ptr {base}, i64 {place}\n"
        f"  %{name} = load {type}, ptr %{name}.at"
    )


def field(name: str, base: str, offset: int | str, type: str = "ptr") -> str:
    """Returns the code that loads a field of an object."""
    return (
        f"  %{name}.at = getelementptr i8, ptr {base}, i64 {offset}\n"
        f"  %{name} = load {type}, ptr %{name}.at"
    )


def context(name: str, place: Context, type: str = "ptr") -> str:
    return word(name, "%context", place, type)
