"""What lowering learns about a kernel besides its program."""

from __future__ import annotations

from dala.base.record import value
from dala.ir.types import Scalar


@value
class Returned:
    """A value that is returned: its type, before it is converted, and its components.

    The type is None for what has none, and cannot be stored.
    """

    type: Scalar | None
    is_pixel: bool = False
    vector: int | None = None


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
        """The types of what is written to `out`, before they are converted."""
        self.returned: list[Returned] = []
        """What is returned for each output."""
        self.asks_f32 = False
        """Whether a float is converted to f32 though it is computed in f32 already."""
