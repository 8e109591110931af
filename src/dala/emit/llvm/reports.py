"""Emits what positions say: records in memory, in the order in which one thread makes them.

Programs that check or print run element by element on one thread. The block of a launch holds the
number of lines, whether a check failed, the record of the first that did, and the first lines.
"""

from __future__ import annotations

from dala.emit.llvm.ir_writer import Operand
from dala.emit.llvm.scatters import Scatters
from dala.ir.nodes import Report
from dala.plan.reports import HEAD_WORDS, MOST_LINES, record_words

COUNT, FAILED, FIRST = 0, 2, 4
"""The words where the number of lines, the failure and the first record are."""


class Reports(Scatters):
    """Adds reports to a body."""

    def report(self, node: Report) -> None:
        writer, size = self.writer, record_words(self.program)
        write, skip = writer.label("say"), writer.label("said")
        if self.program.sites[node.site].kind == "check":
            word, limit, first, step = FAILED, 1, FIRST, 0
        else:
            word, limit, first, step = COUNT, MOST_LINES, FIRST + size, size
        counter = self._word(str(word))
        before = writer.emit("i64", f"load i64, {counter}, align 4")
        after = writer.emit("i64", f"add {before}, 1")
        writer.line(f"store {after}, {counter}, align 4")
        writer.branch(writer.emit("i1", f"icmp ult {before}, {limit}"), write, skip)
        writer.begin(write)
        offset = writer.emit("i64", f"mul {before}, {step}")
        at = writer.emit("i64", f"add {offset}, {first}")
        self._put(at, 0, self.here())
        self._put(at, 2, Operand(str(node.site), "i32"))
        place = HEAD_WORDS
        for value in node.values:
            self._put(at, place, self.value(value))
            place += value.type.bits // 32
        writer.jump(skip)
        writer.begin(skip)

    def _word(self, index: str) -> Operand:
        return self.writer.emit("ptr", f"getelementptr i32, ptr %report, i64 {index}")

    def _put(self, at: Operand, offset: int, value: Operand) -> None:
        index = self.writer.emit("i64", f"add {at}, {offset}")
        self.writer.line(f"store {value}, {self._word(index.text)}, align 4")
