"""Emits what positions say as WGSL: counted in a first run, written in their order in a second.

The buffer `said` has a head, a word for each position, and the records, that of a failed check
first. In the first run a position leaves how many lines it would print, and whether a check failed;
in the second it finds there where its lines begin.
"""

from __future__ import annotations

from dala.emit.wgsl.memory import Memory
from dala.ir.nodes import Report, Value
from dala.ir.types import F64, S64
from dala.plan.reports import record_words

AGAIN, ROOM, WRONG, HEAD = 0, 1, 2, 3
"""The words of the head: whether it is the second run, how many lines there is room for, the first
position where a check failed; and the length of the head."""
FAILED = 1 << 31
"""The bit of a position's word that says that a check failed there."""
PRIVATE = "var<private> lines: u32;\nvar<private> wrong: u32;"
BEGIN = "lines = 0u; wrong = 0u;"
END = f"if (said[{AGAIN}] == 0u) {{ said[{HEAD}u + here] = min(lines, {FAILED - 1}u) | wrong; }}"


class Reports(Memory):
    """Adds reports to a body."""

    def report(self, node: Report) -> None:
        if self.program.sites[node.site].kind == "check":
            with self.inside(
                f"if ((said[{AGAIN}] != 0u) & (said[{WRONG}] == here) & (wrong == 0u))"
            ):
                self._put(node, "0u")
            self.line(f"wrong = {FAILED}u;")
            return
        with self.inside(f"if (said[{AGAIN}] != 0u)"):
            number = self.name("n")
            self.line(f"let {number} = said[{HEAD}u + here] + lines;")
            with self.inside(f"if ({number} < said[{ROOM}])"):
                self._put(node, f"(1u + {number})")
        self.line("lines += 1u;")

    def _put(self, node: Report, number: str) -> None:
        size, base = record_words(self.program), self.name("w")
        self.line(f"let {base} = {HEAD}u + args.count + {number} * {size}u;")
        words = ["here", "0u", f"{node.site}u"]
        for value in node.values:
            words += self._words(value)
        for place, word in enumerate(words):
            self.line(f"said[{base} + {place}u] = {word};")

    def _words(self, value: Value) -> list[str]:
        text, scalar = self.value(value), value.type
        if scalar.bits == 32:
            return [f"bitcast<u32>({text})"]
        bits = self.let(S64, f"bitcast<i64>({text})" if scalar == F64 else f"i64({text})")
        return [f"u32({bits} & 0xffffffffli)", f"u32(({bits} >> 32u) & 0xffffffffli)"]
