"""Size classes of memory blocks, so that blocks of similar sizes serve each other's requests."""

from __future__ import annotations


def size_class(size_bytes: int, smallest_bytes: int) -> int:
    """Returns the size of the block for a request: at most an eighth larger.

    It is a multiple of `smallest_bytes`, a power of two.
    """
    step = max(smallest_bytes, 1 << max(0, size_bytes.bit_length() - 4))
    return max(step, -(-size_bytes // step) * step)
