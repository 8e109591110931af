"""Reads binary files with bounded memory."""

from __future__ import annotations

from typing import IO

from dala.errors import MemoryLimitError

_CHUNK_BYTES = 1 << 20


def read_at_most(name: str, file: IO[bytes], most_bytes: int, size_bytes: int) -> bytes:
    """Returns the rest of a file, up to `most_bytes`; raises MemoryLimitError if it does not fit.

    `size_bytes` is its expected size, which a pipe does not tell. Reads are no larger than that,
    because a read allocates all that it asks for.
    """
    parts: list[bytes] = []
    left = most_bytes
    try:
        while left > 0:
            part = file.read(min(left, max(size_bytes, _CHUNK_BYTES)))
            if not part:
                break
            parts.append(part)
            left -= len(part)
            size_bytes -= len(part)
        return b"".join(parts)  # of one part it is that part itself
    except MemoryError as error:
        raise MemoryLimitError(
            f"{name} cannot be read: the system did not give memory for its bytes, {size_bytes:,} "
            f"or more. Free some, or give a smaller file."
        ) from error
