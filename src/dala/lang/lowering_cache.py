"""The cache of lowered programs: the only place that keeps them."""

from __future__ import annotations

from typing import Any

from dala.base.lru_cache import LruCache
from dala.ir.nodes import Program
from dala.lang.lower import Definition, Specialization

MOST_PROGRAMS = 4096

_programs: LruCache[tuple[Any, ...], Program] = LruCache(MOST_PROGRAMS)


def lowered(definition: Definition, specialization: Specialization) -> Program:
    """Returns the kernel's program for a specialization: the same object each time."""
    consts = tuple((name, repr(number)) for name, number in specialization.consts)  # 1 is not 1.0
    key = (
        *(definition, specialization.inputs, specialization.outputs, consts, specialization.types),
        specialization.broadcast,
    )
    return _programs.find(key, lambda: definition.lower(specialization))
