"""Runs a batch in threads: decoding, filters and encoding release the GIL."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn

from dala.base.printable import printable
from dala.cli.batch_plan import Job
from dala.cli.conversion import Converted, Settings, make
from dala.cli.filter_syntax import Filter
from dala.cli.progress import Step
from dala.cli.terminal import errors, label, one_line, say
from dala.errors import DalaError

_BAR_COLUMNS = 20


class _Stopped(Exception):
    """Raised inside a run to stop it, so that it cleans up."""


class BatchRun:
    """A run over many files, with what was converted, skipped and failed."""

    def __init__(
        self,
        jobs: Sequence[Job],
        filters: Sequence[Filter],
        settings: Settings,
        *,
        kept: Sequence[Path] = (),
        workers: int,
        quiet: bool,
    ) -> None:
        self._jobs, self._filters, self._settings = jobs, filters, settings
        self._kept = frozenset(kept)
        """Existing targets that are left alone."""
        self._workers = workers
        self._stop = threading.Event()
        self._show: _Lines | _Bars = _Lines(len(jobs), quiet=quiet)
        if not quiet and errors().is_terminal:
            self._show = _Bars(len(jobs))
        self.made: list[Converted] = []
        self.left_out: list[str] = []
        self.failed: dict[str, str] = {}
        self.seconds = 0.0

    def run(self) -> None:
        """Converts all files; Ctrl-C leaves none half done."""
        started_s = time.perf_counter()
        with self._show, ThreadPoolExecutor(self._workers) as pool:
            waiting = {pool.submit(copy_context().run, self._one, job): job for job in self._jobs}
            try:
                while waiting:
                    # With a timeout, so that Ctrl-C is reported on every system.
                    done, _ = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
                    for future in done:
                        self._take(waiting.pop(future), future)
            except BaseException:
                self._stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        self.seconds = time.perf_counter() - started_s

    def _one(self, job: Job) -> Converted | None:
        """Converts one file; returns None if that was done before."""
        if self._stop.is_set():
            raise _Stopped
        if job.target in self._kept or (self._settings.resume and _is_newer(job)):
            return None
        job.target.parent.mkdir(parents=True, exist_ok=True)
        with self._show.running(job.source.name) as tell:

            def progress(step: Step) -> None:
                if self._stop.is_set():
                    raise _Stopped
                tell(step)

            source, target = str(job.source), str(job.target)
            return make(source, target, self._filters, self._settings, progress)

    def _take(self, job: Job, future: Future[Converted | None]) -> None:
        name = str(job.source)
        try:
            made = future.result()
        except DalaError as error:
            self._fail(name, one_line(error))
        except OSError as error:
            self._fail(name, one_line(error.strerror or error))
        except MemoryError:
            self._fail(name, "there is not enough memory for it.")
        else:
            if made is None:
                self.left_out.append(name)
                self._show.finished(f"{name}: left out, it is there already")
            else:
                self.made.append(made)
                self._show.finished(made.line())

    def _fail(self, name: str, error: str) -> None:
        said = printable(name)  # as the error spells it
        self.failed[name] = error.removeprefix(f"{said} ").removeprefix(f"{said}: ")
        self._show.finished(f"{name}: failed")

    def describe(self) -> dict[str, Any]:
        """Returns the results as JSON values."""
        return {
            "ok": not self.failed,
            "made": [item.describe() for item in self.made],
            "left_out": self.left_out,
            "failed": [{"source": name, "error": text} for name, text in self.failed.items()],
            "seconds": round(self.seconds, 3),
        }


def _is_newer(job: Job) -> bool:
    """Returns whether the target exists and is newer than its source."""
    if not job.target.is_file() or not job.source.exists():
        return False
    return job.target.stat().st_mtime_ns >= job.source.stat().st_mtime_ns


class _Running:
    """The progress of one file."""

    def __init__(self, tell: Callable[[Step], None], end: Callable[[], None]) -> None:
        self._tell, self._end = tell, end

    def __enter__(self) -> Callable[[Step], None]:
        return self._tell

    def __exit__(self, *raised: object) -> None:
        self._end()


class _Lines:
    """Prints a line for each finished file, if there is no terminal."""

    def __init__(self, count: int, *, quiet: bool) -> None:
        self._count, self._quiet, self._done = count, quiet, 0

    def running(self, name: str) -> _Running:
        return _Running(lambda step: None, lambda: None)

    def finished(self, line: str) -> None:
        self._done += 1
        say(f"[{self._done}/{self._count}] {line}", quiet=self._quiet)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *raised: object) -> None:
        pass


class _Bars:
    """Shows a progress bar for all files, and one for each that is running."""

    def __init__(self, count: int) -> None:
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(_BAR_COLUMNS),
            TextColumn("{task.fields[said]}", markup=False),
            console=errors(),
            transient=True,
        )
        self._done, self._count = 0, count
        self._all = self._bars.add_task("all", total=count, said=f"0 of {count} files")

    def running(self, name: str) -> _Running:
        task = self._bars.add_task(label(name, _BAR_COLUMNS), total=None, said="")

        def tell(step: Step) -> None:
            of = f" of {step.of_frames}" if step.of_frames else ""
            said = f"{step.frames}{of} frames"
            self._bars.update(task, completed=step.frames, total=step.of_frames, said=said)

        return _Running(tell, lambda: self._bars.remove_task(task))

    def finished(self, line: str) -> None:
        self._done += 1
        said = f"{self._done} of {self._count} files"
        self._bars.update(self._all, completed=self._done, said=said)

    def __enter__(self) -> None:
        self._bars.start()

    def __exit__(self, *raised: object) -> None:
        self._bars.stop()
