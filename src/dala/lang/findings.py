"""What lowering learns about a kernel besides its program."""

from __future__ import annotations

from dala.ir.types import Scalar


class Findings:
    """How a kernel uses its buffers and what it yields; filled in even where lowering fails."""

    def __init__(self) -> None:
        self.indexed: dict[str, int] = {}
        """The number of indices that each buffer was last indexed with."""
        self.asked_rank: int | None = None
        """The number of axes that `dala.position` or `dala.shape` was last asked for."""
        self.bare: set[str] = set()
        """The inputs that are read at the kernel's own position."""
        self.conditions: set[str] = set()
        """The inputs that are conditions, though they were given as numbers."""
        self.yielded: list[Scalar] = []
        """The types of what is returned, or written to `out`, before they are converted."""
        self.asks_f32 = False
        """Whether a float is converted to f32 though it is computed in f32 already."""
        self.pixels = False
        """Whether the kernel returns pixels."""
