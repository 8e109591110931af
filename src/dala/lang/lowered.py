"""Programs that were lowered before, by what they depend on: the one place where they are kept."""

from __future__ import annotations

from typing import Any

from dala.base.lru_cache import LruCache
from dala.ir.nodes import Program
from dala.lang.lower import Definition, Special

MOST_PROGRAMS = 4096

_programs: LruCache[tuple[Any, ...], Program] = LruCache(MOST_PROGRAMS)


def lowered(definition: Definition, special: Special) -> Program:
    """The program of a kernel for given dtypes, ranks and constants: the same object each time."""
    consts = tuple((name, repr(number)) for name, number in special.consts)  # 1 is not 1.0
    key = (definition, special.inputs, special.output, consts, special.types)
    return _programs.find(key, lambda: definition.lower(special))
