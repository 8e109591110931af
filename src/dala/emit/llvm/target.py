"""What code is generated for, and how LLVM compiles it."""

from __future__ import annotations

from dala.base.record import record, value
from dala.emit.llvm.lookups import Permutes
from dala.plan.task import InPlace


@record
class Target:
    """What code is generated for: vector width, row width, and how memory is accessed.

    Wide rows are computed two vectors at a time; streaming stores bypass the caches; inputs named
    in `in_place` share the memory of the output with that number; with `tee`, the output is also
    stored to a second memory, whose address is the last slot; `watched` loops are run under the
    watchdog; with `empty`, an input has no elements, so that no index is surely inside; a program
    that scatters and `covers` the output stores to each of its elements once; a CPU that
    `has_halves` converts from and to f16 by an instruction, and one that `has_extremes` finds the
    less of two floats by one, whatever they are, one that `has_ranges` if none of them is NaN;
    `permutes` are those by which it looks bytes up.
    """

    vector_bits: int
    wide: bool = False
    streaming: bool = False
    in_place: InPlace = frozenset()
    tee: bool = False
    watched: bool = False
    empty: bool = False
    covers: bool = False
    has_halves: bool = False
    has_extremes: bool = False
    has_ranges: bool = False
    permutes: Permutes = ""


@value
class Options:
    """How LLVM compiles a module.

    `vectorize` enables its loop vectorizer. `in_order` keeps instructions in the order they were
    emitted in, where several vectors are interleaved: LLVM's scheduler would undo the interleaving
    to save registers, and expose the latency again.
    """

    vectorize: bool = False
    in_order: bool = False
