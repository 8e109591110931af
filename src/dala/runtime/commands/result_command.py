"""Commands that give something back: a frame, or what a model says."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from dala.devices.device import Memory
from dala.runtime.commands.command import Command, Status, Work
from dala.runtime.commands.run import submit


class ResultCommand:
    """A command whose result is still being made: look at its `status`, `wait()`, or `await` it.

    `compute.poll`, `compute.wait` and the others take it as they take any command.
    """

    def __init__(self, command: Command, done: list[Any]) -> None:
        self._command = command
        self._done = done

    @property
    def id(self) -> int:
        return self._command.id

    @property
    def status(self) -> Status:
        return self._command.status

    @property
    def done(self) -> bool:
        return self._command.done

    def cancel(self) -> bool:
        """Returns whether the command was still pending and now will never run."""
        return self._command.cancel()

    def wait(self, timeout_s: float | None = None) -> Any:
        """Returns the result, once it is there; raises the command's own error if it failed."""
        self._command.wait(timeout_s)
        return self._done[0]

    def __await__(self) -> Generator[Any, None, Any]:
        yield from self._command.__await__()
        return self._done[0]

    def __index__(self) -> int:
        return self._command.id

    def __repr__(self) -> str:
        return repr(self._command)


def submit_call(call: Callable[[], Any], reads: tuple[Memory, ...], label: str) -> ResultCommand:
    """Returns a command whose result is what the call returns; writes to `reads` come first."""
    done: list[Any] = []
    work = Work(lambda: done.append(call()), reads, (), label)
    return ResultCommand(submit(_Prepared(work)), done)


class _Prepared:
    """Work that can be submitted."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def work(self) -> Work:
        return self._work
