"""What ran inside a block: when, for how long, on how many bytes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any

from dala.base.record import record
from dala.base.text_file import write_text
from dala.devices.device import Device, Memory
from dala.errors import ArgumentError
from dala.runtime.profiling import timeline

ACTIVE: list[Profile] = []
"""The profiles whose blocks are open, in whatever thread: empty is all that a run looks for."""


@record
class Record:
    """One run: of a kernel, of a group of a pipeline, or of a copy.

    `clock` is "device" where the device itself told how long its compute passes took, and "host"
    for the time from the call to its end. Each memory counts once in `bytes_read` and once in
    `bytes_written`, however often it is touched.
    """

    name: str
    device: str
    clock: str
    start_s: float
    """Seconds since the block began, by the host's clock."""
    duration_s: float
    bytes_read: int
    bytes_written: int
    thread_id: int
    thread: str

    @property
    def bytes_moved(self) -> int:
        return self.bytes_read + self.bytes_written

    @property
    def bandwidth(self) -> float:
        """Bytes read and written in a second, in GB/s; 0 where the time is too short to be seen."""
        return self.bytes_moved / self.duration_s / 1e9 if self.duration_s > 0 else 0.0


class Profile:
    """The runs of a block; `records` at any time, the rest once the block has ended."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._began_s: float | None = None
        self._ended = False

    def __enter__(self) -> Profile:
        if self._began_s is not None:
            raise ArgumentError("a profile is of one block: take another from compute.profile().")
        self._began_s = time.perf_counter()
        ACTIVE.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        ACTIVE.remove(self)
        self._ended = True

    def __repr__(self) -> str:
        count = len(self._records)
        return f"<Profile of {count} run{'s' * (count != 1)}>"

    @property
    def records(self) -> tuple[Record, ...]:
        """What has ended so far, in that order."""
        return tuple(self._records)

    def note(self, start_s: float, **fields: Any) -> None:
        """Take down a run, unless the block has ended since it began."""
        if not self._ended and self._began_s is not None:
            self._records.append(Record(start_s=start_s - self._began_s, **fields))

    def table(self) -> str:
        """Returns the runs of each name together, the longest first: a text of aligned columns.

        It has their count, their time in all and in the mean, their share of the time of all runs,
        and the bytes that they moved in a second.
        """
        self._check_ended("table")
        groups: dict[tuple[str, str, str], list[Record]] = {}
        for item in self._records:
            groups.setdefault((item.name, item.device, item.clock), []).append(item)
        whole_s = sum(item.duration_s for item in self._records)
        sums = [
            (key, items, sum(item.duration_s for item in items)) for key, items in groups.items()
        ]
        rows = [("name", "device", "clock", "count", "total ms", "mean ms", "share %", "GB/s")]
        for (name, device, clock), items, spent_s in sorted(sums, key=lambda each: -each[2]):
            moved = sum(item.bytes_moved for item in items)
            rows.append(
                (
                    name,
                    device,
                    clock,
                    str(len(items)),
                    f"{spent_s * 1e3:.3f}",
                    f"{spent_s * 1e3 / len(items):.3f}",
                    f"{100 * spent_s / whole_s:.1f}" if whole_s else "0.0",
                    f"{moved / spent_s / 1e9:.2f}" if spent_s else "0.00",
                )
            )
        return _aligned(rows)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a trace that chrome://tracing and ui.perfetto.dev open: JSON trace events."""
        import json

        self._check_ended("save")
        write_text(path, json.dumps(self._trace(), allow_nan=False) + "\n")

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Write a picture of the runs along time, as SVG: a lane for each device and thread."""
        self._check_ended("plot")
        write_text(path, timeline.drawn(self._records))

    def _trace(self) -> dict[str, Any]:
        """Returns a process for each device, a track for each thread that ran something on it."""
        processes: dict[str, int] = {}
        threads: dict[int, int] = {}
        events: list[dict[str, Any]] = []
        named: set[tuple[int, int]] = set()
        for item in self._records:
            pid = processes.setdefault(item.device, len(processes) + 1)
            tid = threads.setdefault(item.thread_id, len(threads) + 1)
            at = {"pid": pid, "tid": tid}
            if (pid, tid) not in named:
                named.add((pid, tid))
                for what, name in (("process_name", item.device), ("thread_name", item.thread)):
                    events.append({"name": what, "ph": "M", **at, "args": {"name": name}})
            events.append(
                {
                    "name": item.name,
                    "cat": item.clock,
                    "ph": "X",
                    "ts": item.start_s * 1e6,
                    "dur": item.duration_s * 1e6,
                    **at,
                    "args": {
                        "bytes_read": item.bytes_read,
                        "bytes_written": item.bytes_written,
                        "GB/s": item.bandwidth,
                        "clock": item.clock,
                    },
                }
            )
        return {"traceEvents": events, "displayTimeUnit": "ms"}

    def _check_ended(self, what: str) -> None:
        if not self._ended:
            raise ArgumentError(
                f"{what}() shows all that ran inside `with compute.profile() as p:`, so it comes "
                f"after that block; p.records has what ran so far."
            )


def profile() -> Profile:
    """Returns a collector of all that runs inside its block: kernels, groups of pipelines, copies.

    It sees every thread, commands too, and may be nested. On the CPU a run takes the time until it
    returns, which for the first one of a kernel includes compiling it. On a GPU that can tell, it
    takes the time of its compute passes on the device; otherwise that until the device is done.
    To be measured, work on a GPU is sent off piece by piece and waited for.

        import numpy as np
        from dala.gpu import compute

        image = compute.from_numpy(np.zeros((270, 480, 4), np.uint8))
        out = compute.buffer_zeros((270, 480, 4), "u8")
        with compute.profile() as p:
            compute.run_kernel("blur", [image], out)
        print(p.table())
        p.save("trace.json")  # for chrome://tracing and ui.perfetto.dev
        p.plot("timeline.svg")
    """
    return Profile()


def measure(
    name: str,
    device: Device,
    reads: Iterable[Memory],
    writes: Iterable[Memory],
    call: Callable[[], None],
) -> None:
    """Run the call, and have every profile take it down; a call that raises is not a run."""
    profiles = tuple(ACTIVE)
    timing = device.timed(call)
    thread = threading.current_thread()
    for each in profiles:
        each.note(
            timing.start_s,
            name=name,
            device=device.id,
            clock=timing.clock,
            duration_s=timing.duration_s,
            bytes_read=_bytes(reads),
            bytes_written=_bytes(writes),
            thread_id=thread.ident or 0,
            thread=thread.name,
        )


def copy(device: Device, source: Memory, target: Memory) -> None:
    """Copy all bytes from one memory to another, seen by profiles."""
    if ACTIVE:
        measure("copy_buffer", device, (source,), (target,), partial(device.copy, source, target))
    else:
        device.copy(source, target)


def _bytes(memories: Iterable[Memory]) -> int:
    """Returns how large they are together, each counted once."""
    return sum({id(item): item.size_bytes for item in memories}.values())


def _aligned(rows: Sequence[tuple[str, ...]]) -> str:
    """Returns the rows as a table: texts are left-aligned, numbers right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = zip(row, widths, strict=True)
        line = [c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in enumerate(cells)]
        lines.append("  ".join(line))
    return "\n".join(lines)
