"""The memory in which a launch on the CPU leaves what its positions say."""

from __future__ import annotations

import numpy as np

from dala.emit.llvm.reports import COUNT, FAILED, FIRST
from dala.plan.reports import MOST_LINES, Said, record_words, tell
from dala.plan.task import Task


class ReportBlock:
    """The records of one launch."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._size = record_words(task.program)
        self._words = np.zeros(FIRST + (1 + MOST_LINES) * self._size, np.uint32)
        self.address = self._words.ctypes.data

    def tell(self) -> None:
        """Print the lines; raises KernelCheckError if a check failed."""
        words, size = self._words, self._size
        count = int(words[COUNT : COUNT + 2].view(np.uint64)[0])
        records = words[FIRST:].reshape(-1, size)
        failed = records[0] if words[FAILED] or words[FAILED + 1] else None
        said = Said(list(records[1 : 1 + min(count, MOST_LINES)]), count, failed)
        tell(self.task.name, self.task.program, self.task.positions, said)
